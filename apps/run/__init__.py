"""How apps run: options, inputs, results."""
