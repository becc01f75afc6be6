"""Searches from many nodes in one pass: a bit of a word for each."""
