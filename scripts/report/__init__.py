"""``cusp report``: one page about a partition of a graph and what algorithms do on it."""
