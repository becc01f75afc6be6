"""Master rules: which rank holds the one true value of a node.

Each rule is ``get_master(prop, node, mstate, masters) -> rank``; see :mod:`cusp.policies`.
"""


def contiguous(prop, node, mstate, masters):  # type: ignore[no-untyped-def]
    """Blocks of consecutive nodes with equal numbers of edges (CuSP, IPDPS 2019, rule ContiguousEB).

    ::

        nodes   0 ........ a | a ...... b | b ............. c | c ... N
        master        0      |     1      |        2          |    3

    A node's master is the rank that read it, so masters never travel. Balance is that of the
    reading split: within one node's degree of perfect. Weakness: takes no account of who is whose
    neighbour beyond the order in which the file lists the nodes.
    """
    return prop.reader(node)
