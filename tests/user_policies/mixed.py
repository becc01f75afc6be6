"""A family of pure policies, one for each threshold: random-looking masters and owners."""


def mix(x, seed):
    """A random-looking number of 31 bits."""
    x = (x * 1103515245 + seed * 12345 + 12345) & 0x7FFFFFFF
    x ^= x >> 15
    return (x * 69069 + seed) & 0x7FFFFFFF


def get_master(prop, node, mstate, masters):
    """Random."""
    return mix(node, prop.threshold) % prop.num_parts


def get_edge_owner(prop, src, dst, src_master, dst_master, estate):
    """Random, or at one of the masters."""
    draw = mix(src * 31 + dst, prop.threshold)
    if draw % 3 == 0:
        return dst_master
    if draw % 3 == 1:
        return src_master
    return draw // 3 % prop.num_parts
