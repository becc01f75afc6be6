"""Operators that find components, cores and communities."""
