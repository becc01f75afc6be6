"""What algorithms on the structure of a graph need from every device."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from cusp.runtime.devices import Array

if TYPE_CHECKING:
    from cusp.partition import Partition
    from gluon.sync import Sync


Unite = Callable[["Sync", Array, Array], tuple[int, int, Array, dict[str, int]]]  # see Cc.plan_trees


class Cc(Protocol):
    """Connected components: a forest of lids, in which every node leads to a root of its component."""

    def link_first(
        self, part: "Partition", edges: int, rare: int, offsets: Array, targets: Array
    ) -> tuple[Array, Array]:
        """Unite every node with the targets of its first few edges, in a forest where all are alone.

        ``offsets`` and ``targets`` are those of ``part``, or others of its nodes.

        Returns
        -------
        parents : (proxies,) int32
        most : (1,) int32
            As :meth:`most_frequent`.
        """

    def most_frequent(self, rare: int, parents: Array) -> Array:
        """(1,) int32: the root that most nodes of a sample have, the lowest of equals.

        -1 if no more than one node in ``rare`` has it: then its tree is not worth the trouble.
        """

    def link_others(self, part: "Partition", left_out: Array, both_ways: bool, parents: Array) -> None:
        """Unite every node that is not in the tree of root ``left_out[0]`` with all its out-neighbours.

        ``both_ways``: each edge is here in both directions.

        Parents are as :meth:`link_first` left them, unless ``left_out[0]`` is -1 and no node is left out.
        """

    def flatten(self, parents: Array) -> None:
        """Make the root of every node its parent."""

    def large_tree(self, parents: Array, values: Array) -> tuple[Array, int]:
        """Which proxies are in the largest tree, if one in four is in it, and the lowest of their values.

        Returns
        -------
        inside : (proxies, up to a multiple of 64,) bool
        lowest : int
            -1 if there is no such tree. Values are 0 or more.
        """

    def lower_roots(self, parents: Array, values: Array, lowered: Array | None, updated: Array) -> None:
        """Value of a root = minimum over its tree; its bit is set if that lowers it.

        ``lowered``: bits of proxies, of which only those count; None for all.
        """

    def spread_roots(self, parents: Array, values: Array, updated: Array) -> None:
        """Every node takes the value of its root, which is not higher; its bit is set if that lowers it."""

    def name_components(self, labels: Array, gids: Array) -> tuple[Array, int]:
        """The labels of nodes as int64, and how many are the node itself."""

    def count_members(self, parents: Array, size: int) -> Array:
        """(proxies,) int32: how many of the first ``size`` nodes are in the tree of a root."""

    def take_members(self, parents: Array, members: Array, lids: Array) -> tuple[Array, Array]:
        """The roots of some nodes that have members, each once, and how many; they have none afterwards."""

    def plan_trees(self, part: "Partition", sync: "Sync", way: str) -> Unite:
        """What unites the trees of a rank that shares no node (``way`` is ``whole``), or those of peers. Collective.

        On a CPU only the first. It is called with a Sync, parents, which become roots, and ``left_out``. Collective.

        Returns
        -------
        wrong : int
            Bit p says that rank p has left out the tree of ``left_out[0]`` and must not: others have left out another
            component, and edges between the two may be missing. Then there is no answer.
        rounds : int
        component : (masters,) int64
        figures : dict
            The number of ``components`` and the nodes in the ``largest``.
        """


class Kcore(Protocol):
    """k-core: nodes are peeled off, and so are those that this leaves with too few neighbours."""

    def plan_levels(self, part: "Partition", sync: "Sync", way: str) -> Any:
        """What the calls of :meth:`peel_levels` for one graph share. Collective.

        Parameters
        ----------
        part : Partition
            What :func:`~cusp.apps.shared.graphs.undirected.as_undirected` made.
        way : {'whole', 'peers', 'rounds'}
            In one call of a kernel, or in steps with syncs in between.
        """

    def peel_levels(self, part: "Partition", sync: "Sync", plan: Any, first: int, last: int) -> tuple[Array, Any]:
        """Peel from level ``first`` on, up to level ``last``. Collective.

        Returns
        -------
        core : (masters,) int32
            Core numbers, those below ``first`` as ``first``; -1 where it is above ``last``.
        rounds : number
        """


class Cores(Protocol):
    """Core numbers from estimates that are never too low (Montresor, De Pellegrini, Miorandi, IEEE TPDS 2013)."""

    def plan_cores(self, part: "Partition") -> Any:
        """What runs on an undirected graph share."""

    def lower_cores(self, part: "Partition", plan: Any, lowered: Array, cores: Array, updated: Array) -> None:
        """Masters with neighbours among the ``lowered`` look whether they still have enough.

        The estimate of a node falls to the largest k such that k neighbours have estimates of k or more, if that is
        lower. On CPUs until no master of this rank changes any more; on GPUs once for each.

        Parameters
        ----------
        lowered : bits of proxies
        cores : (proxies,) int32
        updated : bits of proxies
        """
