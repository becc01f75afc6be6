"""From a file of any format, or a graph in memory, to rows, in memory or in a graph file."""
