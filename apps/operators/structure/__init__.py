"""Operators that find components and cores."""
