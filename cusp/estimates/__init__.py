"""The quality of a partition, measured or estimated: figures, dry runs, pictures."""
