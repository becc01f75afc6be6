"""What learning on graphs takes: samples, and folders that PyG loads."""
