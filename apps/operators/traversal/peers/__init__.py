"""Traversals that run on the GPUs of several ranks at once, one kernel on each."""
