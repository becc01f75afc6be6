"""What benchmarks share: rows and tables, graphs to measure, and the programs that measure inside an MPI job."""
