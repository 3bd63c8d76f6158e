"""PLUGS: a folder per port, a file per vendor, one shipped fake each."""
