"""Breadth-first search on one GPU in every textbook form, as the rungs of a ladder."""
