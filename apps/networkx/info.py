"""What NetworkX shows of the backend; it asks when it is imported, so nothing of ours is loaded here."""

from typing import Any

FUNCTIONS = {  # a function of NetworkX -> what it leaves to NetworkX, or what differs
    "single_source_shortest_path_length": "",
    "single_source_dijkstra_path_length": "Not functions as weights, nor weights below 0.",
    "shortest_path_length": "From one source only. Not functions as weights, nor weights below 0.",
    "all_pairs_shortest_path_length": "",
    "all_pairs_dijkstra_path_length": "Not functions as weights, nor weights below 0.",
    "floyd_warshall_numpy": "No weights below 0.",
    "shortest_simple_paths": "No weights below 0. Paths of the same length come in another order.",
    "connected_components": "",
    "number_connected_components": "",
    "is_connected": "",
    "node_connected_component": "",
    "weakly_connected_components": "",
    "number_weakly_connected_components": "",
    "is_weakly_connected": "",
    "strongly_connected_components": "",
    "number_strongly_connected_components": "",
    "is_strongly_connected": "",
    "core_number": "Undirected graphs only.",
    "triangles": "",
    "clustering": "Undirected graphs without weights only.",
    "average_clustering": "Undirected graphs without weights only.",
    "transitivity": "Undirected graphs only.",
    "pagerank": "Not ``nstart`` nor ``dangling``, and no weights below 0.",
    "betweenness_centrality": "Not ``k`` nor ``endpoints``, no multigraphs, and weights above 0.",
    "edge_betweenness_centrality": "Not ``k``, no multigraphs, and weights above 0.",
    "closeness_centrality": "Weights of 0 or more.",
    "harmonic_centrality": "Weights of 0 or more.",
    "eccentricity": "Not ``sp``; weights of 0 or more.",
    "diameter": "Not ``e`` nor ``usebounds``; weights of 0 or more.",
    "radius": "Not ``e`` nor ``usebounds``; weights of 0 or more.",
    "eigenvector_centrality": "Not ``nstart``, and no weights below 0.",
    "katz_centrality": "Not ``nstart``; ``alpha`` and ``beta`` are numbers above 0. No weights below 0.",
    "hits": "Not ``nstart``, always normalized, and no weights below 0. One of ``max_iter`` is 20 products "
    "with a vector.",
    "louvain_communities": "Undirected graphs, without ``max_level`` and ``threshold``. ``seed`` draws other random "
    "numbers than in NetworkX: communities differ, their modularity hardly.",
    "leiden_communities": "Undirected graphs, without ``max_level``. NetworkX itself has no such function.",
    "k_truss": "Undirected graphs. Of a graph that was converted before, without attributes of nodes and edges.",
    "jaccard_coefficient": "Of given pairs, in undirected graphs without loops.",
    "minimum_spanning_edges": "Without ``data`` of edges, no multigraphs. Of edges that weigh the same, others may be "
    "chosen than in NetworkX.",
    "maximum_spanning_edges": "As for ``minimum_spanning_edges``.",
    "greedy_color": "Undirected graphs, without ``interchange``; ``strategy`` is ``largest_first`` or "
    "``random_sequential``. Nodes of equal degree choose in another order than in NetworkX.",
    "asyn_lpa_communities": "Undirected graphs. ``seed`` draws other random numbers than in NetworkX.",
}


def get_info() -> dict[str, Any]:
    """The backend in the words that NetworkX's documentation takes."""
    return {
        "backend_name": "cusp",
        "project": "cusp-gluon",
        "package": "cusp.apps.networkx",
        "short_summary": "Graphs partitioned across the ranks of MPI, or processed by the threads of one process.",
        "functions": {name: {"additional_docs": text} if text else {} for name, text in FUNCTIONS.items()},
    }
