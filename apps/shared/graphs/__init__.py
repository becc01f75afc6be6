"""Graphs that algorithms make of a partition: undirected, oriented, reversed, or whole on a rank."""
