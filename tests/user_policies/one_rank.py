"""A user's policy: all masters on the last rank, all edges on the first."""


def get_master(prop, node, mstate, masters):
    """All on the last rank."""
    return prop.num_parts - 1


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    """All on the first rank."""
    return 0
