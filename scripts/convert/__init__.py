"""``python -m scripts.convert``: a graph of any known format becomes a graph file."""
