"""``cusp report``: one page about a partition of a graph and runs of algorithms on it."""
