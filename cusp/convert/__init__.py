"""From a file of any format to rows of a graph, in memory or in a graph file."""
