"""What a partition looks like, or would look like: figures, dry runs, pictures."""
