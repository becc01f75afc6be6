"""The Graph500 benchmark: generation, construction, searches, validation, output."""
