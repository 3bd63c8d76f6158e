"""The mesh's files and processes on this machine."""
