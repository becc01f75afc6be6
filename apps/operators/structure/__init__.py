"""Operators that find components, cores, triangles and communities."""
