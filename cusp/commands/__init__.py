"""Commands that are no algorithms: make, convert, describe and draw; and ``cusp`` itself, which finds them by name."""
