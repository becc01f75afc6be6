"""Operators that sum over rows."""
