"""Labels that travel without rounds."""
