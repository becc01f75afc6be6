"""Operators that find the best community for each node."""
