"""What a partition would look like, or does look like: figures, dry runs, pictures."""
