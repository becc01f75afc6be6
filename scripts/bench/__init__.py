"""Benchmarks, one file per question; ``python -m scripts.bench WHAT`` runs one, prints a table and keeps its rows."""
