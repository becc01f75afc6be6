"""Breadth-first search on one GPU in every textbook form, one rung above the other: ``python -m scripts.bench ladder``."""
