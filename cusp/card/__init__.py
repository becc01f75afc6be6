"""The memory of a GPU that is smaller than a graph: what stays on the card, and what lies in the host's memory."""
