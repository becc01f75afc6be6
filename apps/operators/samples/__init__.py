"""Random choices of edges: samples of neighbours, and walks."""
