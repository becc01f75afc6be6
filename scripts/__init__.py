"""Tools round the packages: make, convert, test and measure; each has --help."""
