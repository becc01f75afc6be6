"""Code shared by benchmarks: rows and tables, graphs to measure, and the programs that measure inside an MPI job."""
