"""Rows and columns of the adjacency matrix: what a user would write for the built-in policy cvc."""


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """The rank in the grid row of the source's master and the grid column of the target's."""
    row = src_master // prop.columns
    column = dst_master % prop.columns
    return row * prop.columns + column
