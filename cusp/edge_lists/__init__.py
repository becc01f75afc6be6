"""From a stream of edges, made or read, to CSR: sorted in bounded memory by all ranks together."""
