"""The sync layer: keeps one value per proxy (a label) consistent between the ranks of a partition."""
