"""Code shared by programs: options, tables, warm-up."""
