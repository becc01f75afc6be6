"""A user's policy with a helper function and a constant; its masters are blocks from the last rank to the first."""

STRIDE = 7


def block(node, num_nodes, num_parts):
    """Block of nodes that a node is in."""
    return node * num_parts // num_nodes


def get_master(prop, node, mstate, masters):
    """Blocks, in descending order."""
    return prop.num_parts - 1 - block(node, prop.num_nodes, prop.num_parts)


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    """Any rank: a function of both ends."""
    return (src * STRIDE + dst) % prop.num_parts
