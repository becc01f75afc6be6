"""Hubs are spread, other nodes stay whole: what a user would write for the built-in policy hvc."""


def is_hub(prop, node):  # type: ignore[no-untyped-def]
    """Whether a node has too many out-edges for one rank."""
    return prop.out_degree(node) > prop.threshold


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):  # type: ignore[no-untyped-def]
    """With the target if the source is a hub, else with the source."""
    return dst_master if is_hub(prop, src) else src_master
