"""A user's policy with an edge rule alone: by the target's number and the source's degree."""


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    """Heavy nodes are spread."""
    if prop.out_degree(src) > 3:
        return dst % prop.num_parts
    return src_master
