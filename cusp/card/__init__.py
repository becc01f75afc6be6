"""The memory of a GPU that is smaller than a graph: some edges stay on the card, the others in host memory."""
