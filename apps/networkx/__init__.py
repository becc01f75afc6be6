"""NetworkX's functions, answered by our algorithms: ``networkx.pagerank(graph, backend="cusp")``."""
