"""Files that we write: graphs, partitions, exports; each gets its final name when it is complete."""
