"""Operators made from a user's expression."""
