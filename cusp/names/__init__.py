"""Nodes that have names: collected, numbered on all ranks alike, kept in graph files, looked up."""
