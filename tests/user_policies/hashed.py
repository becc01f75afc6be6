"""A user's policy: nodes dealt out in turn, edges to the master of their target."""


def get_master(prop, node, mstate, masters):
    """Deal nodes out in turn."""
    return node % prop.num_parts


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    """Edges go where they end."""
    return dst_master
