"""Graphs that grow: edges, and the nodes that they name, are added to graph files and to saved partitions."""
