"""What community detection works on: levels of graphs, sweeps through their nodes, and what is kept of a run."""
