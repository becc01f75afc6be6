"""What programs share: options, tables, warm-up."""
