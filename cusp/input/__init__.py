"""From a graph file, or a graph in memory, to checked slices."""
