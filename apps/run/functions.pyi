"""The functions of ``cusp.apps.library``, written by ``python -m scripts.signatures``."""

from collections.abc import Sequence
from os import PathLike
from typing import Any, Literal

from cusp.apps.run.partitioned_graph import PartitionedGraph
from cusp.apps.run.result import Result

def bfs(
    part: PartitionedGraph,
    source: Any,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    direction: Literal["auto", "push", "pull"] = "auto",
    parents: bool = False,
    start: Any | None = None,
) -> Result:
    """Breadth-first search: hops from a source to every node, or parents; push, pull or whichever is cheaper.

    source : the node to start from, by global id or name
    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    direction : pull scans the unvisited nodes, push the frontier (default: whichever is cheaper)
    parents : find a parent of each node too
    start : go on from this answer on the graph before nodes and edges were added: what --output wrote as HDF5
    """

def sssp(
    part: PartitionedGraph,
    source: Any,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    delta: float | None = None,
    start: Any | None = None,
) -> Result:
    """Single-source shortest paths by delta-stepping, with buckets that all ranks agree on.

    source : the node to start from, by global id or name
    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    delta : width of a bucket (default: chosen from weights and degrees)
    start : go on from this answer on the graph before nodes and edges were added: what --output wrote as HDF5
    """

def widest(
    part: PartitionedGraph,
    source: Any,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
) -> Result:
    """Widest paths: the width of the widest path from a source to every node. A path is as wide as its narrowest edge.

    source : the node to start from, by global id or name
    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    """

def forest(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    roots: Sequence[Any],
) -> Result:
    """Breadth-first search from many sources at once: hops to the nearest of them, and which one that is.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    roots : the sources
    """

def path(
    part: PartitionedGraph,
    source: Any,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    targets: Sequence[Any] = [],
    hops: bool = False,
) -> Result:
    """Shortest paths as lists of nodes: a search from the source, then back-tracking from each target.

    source : the node to start from, by global id or name
    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    targets : print the path to each of these nodes
    hops : count edges, ignoring their weights
    """

def cc(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    start: Any | None = None,
) -> Result:
    """Connected components: the smallest node of each node's component, ignoring edge direction.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    start : go on from this answer on the graph before nodes and edges were added: what --output wrote as HDF5
    """

def scc(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
) -> Result:
    """Strongly connected components: the smallest node of each node's component, every edge in its own direction.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    """

def kcore(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    k: int | None = None,
) -> Result:
    """k-core: the core number of every node, ignoring edge direction; or the nodes in the core of one k.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    k : only find the core of this k (default: all core numbers)
    """

def triangles(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    per_node: bool = False,
) -> Result:
    """Triangles: how many there are, in all and at each node, and how often neighbours of a node are neighbours
    themselves.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    per_node : also count at each node, with clustering coefficients (implied by --output)
    """

def communities(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    algorithm: Literal["louvain", "leiden", "label-propagation"] = "louvain",
    resolution: float = 1.0,
    checkpoint: str | None = None,
    every: float | None = None,
    seed: int = 1,
) -> Result:
    """Communities: groups of nodes with more edges among themselves than to others, by Louvain, Leiden, label
    propagation.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    algorithm : louvain seeks a high modularity, leiden also connected communities, label-propagation is quick
        (default: louvain)
    resolution : of modularity: above 1 for more and smaller communities, below for fewer (default: 1)
    checkpoint : save the progress in this file; if it exists, go on from it; it is removed after the run
    every : time between two checkpoints, such as 30s, 5min or 2h (default: 10min)
    seed : seed of everything random (default: 1)
    """

def pagerank(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    damping: float = 0.85,
    tolerance: float = 1e-06,
    iterations: int | None = None,
    unweighted: bool = False,
    algorithm: Literal["pull", "push-residual"] = "pull",
    precision: Literal["float32", "float64"] = "float64",
    personalize: Any = None,
    checkpoint: str | None = None,
    every: float | None = None,
    start: Any | None = None,
) -> Result:
    """PageRank: how likely a random walk is to be at each node, if each step follows an edge or, sometimes, starts
    anew.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    damping : probability that a walk continues at a node (default: 0.85)
    tolerance : stop when the sum of all changes in one iteration is lower (default: 1e-6)
    iterations : stop after N iterations; with --tolerance 0, run exactly N (default: no limit)
    unweighted : ignore weights: follow all edges of a node with equal probability
    algorithm : pull along all edges, or push along those of nodes with large residuals (default: pull)
    precision : type of the ranks; float32 is faster, and correct to about six digits (default: float64)
    personalize : start walks only at these nodes, by name or number; or a file with one NODE [WEIGHT] per line
    checkpoint : save the progress in this file; if it exists, go on from it; it is removed after the run
    every : time between two checkpoints, such as 30s, 5min or 2h (default: 10min)
    start : go on from this answer on the graph before nodes and edges were added: what --output wrote as HDF5
    """

def betweenness(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    sources: int | str = "all",
    source: Sequence[Any] | None = None,
    normalized: bool | None = None,
    weighted: bool = False,
    edges: bool = False,
    checkpoint: str | None = None,
    every: float | None = None,
    seed: int = 1,
) -> Result:
    """Betweenness centrality: how large a share of the shortest paths between other nodes each node is on.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    sources : estimate it from K random nodes with out-edges; or all, the default: exact
    source : only paths from these nodes, by name or number; not scaled
    normalized : as a share of all pairs of other nodes, from 0 to 1 (default: yes, but not with --source)
    weighted : shortest paths by weights, which are above 0 (default: by hops)
    edges : also the betweenness of every edge
    checkpoint : save the progress in this file; if it exists, go on from it; it is removed after the run
    every : time between two checkpoints, such as 30s, 5min or 2h (default: 10min)
    seed : seed of everything random (default: 1)
    """

def closeness(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    sources: int | str = "all",
    source: Sequence[Any] | None = None,
    weighted: bool = False,
    checkpoint: str | None = None,
    every: float | None = None,
    seed: int = 1,
) -> Result:
    """Closeness centrality: how near each node is to those that lead to it; also harmonic closeness, and eccentricity.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    sources : estimate it from K random nodes with out-edges; or all, the default: exact
    source : only distances from these nodes, by name or number; not scaled
    weighted : distances by weights, of 0 or more (default: by hops)
    checkpoint : save the progress in this file; if it exists, go on from it; it is removed after the run
    every : time between two checkpoints, such as 30s, 5min or 2h (default: 10min)
    seed : seed of everything random (default: 1)
    """

def eigenvector(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    tolerance: float = 1e-06,
    iterations: int = 1000,
    unweighted: bool = False,
) -> Result:
    """Eigenvector centrality: a node is as central as its in-neighbours are together, up to a factor for all nodes.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    tolerance : stop when one more iteration would change all values together by less (default: 1e-06)
    iterations : give up, with an error, after N iterations (default: 1000)
    unweighted : ignore weights: every edge counts 1
    """

def katz(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    alpha: float | None = None,
    beta: float = 1.0,
    unnormalized: bool = False,
    tolerance: float = 1e-06,
    iterations: int = 1000,
    unweighted: bool = False,
) -> Result:
    """Katz centrality: how many walks end at each node, where each further edge makes a walk count less.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    alpha : worth of an edge, below 1 / the largest eigenvalue (default: 0.85 / the largest weight into a node
        in all)
    beta : worth of a node itself, if --unnormalized (default: 1)
    unnormalized : do not make the squares add up to 1
    tolerance : stop when one more iteration would change the mean, in units of --beta, by less (default: 1e-06)
    iterations : give up, with an error, after N iterations (default: 1000)
    unweighted : ignore weights: every edge counts 1
    """

def hits(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    tolerance: float = 1e-08,
    iterations: int = 1000,
    unweighted: bool = False,
) -> Result:
    """HITS: hubs, which have edges to good authorities, and authorities, which have edges from good hubs.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    tolerance : stop when one more iteration would change all hubs together by less (default: 1e-08)
    iterations : give up, with an error, after N iterations (default: 1000)
    unweighted : ignore weights: every edge counts 1
    """

def mis(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    seed: int = 1,
) -> Result:
    """Maximal independent set: nodes of which no two are neighbours, and to which no other node can be added.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    seed : seed of everything random (default: 1)
    """

def coloring(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    strategy: Literal["largest-first", "random"] = "largest-first",
    seed: int = 1,
) -> Result:
    """Greedy coloring: neighbours have different colors, and each node the lowest that those before it leave free.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    strategy : the order in which nodes choose: those with more neighbours first, or at random (default:
        largest-first)
    seed : seed of everything random (default: 1)
    """

def msf(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    maximum: bool = False,
) -> Result:
    """Minimum spanning forest: edges that connect all that the graph connects, and weigh least in all.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    maximum : the heaviest edges in place of the lightest
    """

def similarity(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    pairs: Sequence[Any] | None = None,
) -> Result:
    """Similarity of pairs of nodes, by the neighbours that they have in common: Jaccard, overlap and cosine.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    pairs : only these pairs: the first node and the second, the third and the fourth ... (default: all
        neighbours)
    """

def truss(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    k: int | None = None,
) -> Result:
    """Trussness of edges: the largest k for which each is in a k-truss; or the edges in the truss of one k.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    k : only find the edges of the truss of this k (default: trussness of all)
    """

def ppr(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    seeds: Sequence[Any],
    top: int = 10,
    damping: float = 0.85,
    tolerance: float = 1e-06,
    iterations: int | None = None,
    unweighted: bool = False,
) -> Result:
    """Personalized PageRank from each of many nodes: which others a random walk is at most often, if it starts anew
    there.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    seeds : where walks start, each at one: nodes by name or number, or a file with one a line
    top : how many nodes of the highest ranks (default: 10)
    damping : probability that a walk continues at a node (default: 0.85)
    tolerance : stop when the sum of all changes in one iteration is lower (default: 1e-6)
    iterations : stop after N iterations; with --tolerance 0, run exactly N (default: no limit)
    unweighted : ignore weights: follow all edges of a node with equal probability
    """

def table(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    origins: Sequence[Any],
    destinations: Sequence[Any] | None = None,
    hops: bool = False,
    landmarks: int | None = None,
    strategy: Literal["degree", "farthest"] | None = None,
    seed: int = 1,
) -> Result:
    """Tables of distances from each of some nodes to each of others: travel times, costs, hops.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    origins : where paths begin: nodes by name or number, or a file with one a line
    destinations : likewise where they end (default: all origins)
    hops : count edges, ignoring their weights
    landmarks : instead of distances, lower and upper bounds of them, from those to K nodes and from these
    strategy : which: those with most edges, or each far from those before (default: by hops degree, else
        farthest)
    seed : seed of everything random (default: 1)
    """

def paths(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    source: Any,
    target: Any,
    k: int = 10,
    hops: bool = False,
) -> Result:
    """The k shortest paths between two nodes, of those that visit no node twice, by weights or hops.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    source : where paths begin, by name or number
    target : where they end, by name or number
    k : how many paths (default: 10)
    hops : count edges, ignoring their weights
    """

def sample(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    sources: int | str = "all",
    source: Sequence[Any] | None = None,
    fan_out: list[int] = [15, 10],
    batch_size: int = 1024,
    weighted: bool = False,
    until: float | None = None,
    replace: bool = False,
    incoming: bool = False,
    numbered: bool = False,
    seed: int = 1,
) -> Result:
    """Samples of neighbours, hop by hop, for learning on graphs: batches of nodes, with some of the edges around them.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    sources : sample around K random nodes with out-edges; or all, the default
    source : sample around these nodes, by name or number
    fan_out : edges of a node that a hop draws, or all (default: 15,10)
    batch_size : seeds of a batch (default: 1024)
    weighted : edges are as likely as they weigh (default: all alike)
    until : weights are times: draw only edges up to this one
    replace : an edge may be drawn several times
    incoming : draw in-edges instead of out-edges
    numbered : tell the number of each edge
    seed : seed of everything random (default: 1)
    """

def walks(
    part: PartitionedGraph,
    *,
    gather: bool = True,
    verify: bool = False,
    execution: str = "auto",
    trace: str | PathLike[str] | None = None,
    sources: int | str = "all",
    source: Sequence[Any] | None = None,
    length: int = 40,
    walks: int = 1,
    weighted: bool = False,
    p: float = 1.0,
    q: float = 1.0,
    seed: int = 1,
) -> Result:
    """Random walks: from each node, along edges at random, or as node2vec does.

    gather : collect the labels of all nodes on every rank; otherwise each rank keeps only its own
    verify : check the answer by invariants, and raise VerificationError if it is wrong
    execution : with rounds (bulk), without (async), or the faster of the two (auto): see ``--execution``
    trace : a file for the timelines of this call, as ``--trace`` writes it
    sources : start at K random nodes with out-edges; or all, the default
    source : start at these nodes, by name or number
    length : steps of a walk (default: 40)
    walks : walks from each node (default: 1)
    weighted : edges are as likely as they weigh (default: all alike)
    p : of node2vec: 1/p as likely are steps back to the node before (default: 1)
    q : of node2vec: 1/q as likely are steps away from the node before (default: 1)
    seed : seed of everything random (default: 1)
    """
