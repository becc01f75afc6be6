"""Code shared by several algorithms."""
