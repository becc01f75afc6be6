"""Triangles: operators that count them, and take those of removed edges away."""
