"""What runs on the edges: for each algorithm a module for the CPU and one for the GPU, with the same names."""
