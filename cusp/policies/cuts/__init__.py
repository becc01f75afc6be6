"""Built-in policies that look at the graph before; each in the form of a user's file."""
