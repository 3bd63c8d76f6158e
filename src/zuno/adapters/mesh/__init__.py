"""What a mesh leaves on this machine: files and processes."""
