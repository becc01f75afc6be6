"""From a stream of edges, generated or read, to CSR: sorted in bounded memory by all ranks together."""
