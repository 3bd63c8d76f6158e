"""Series in, bundles out: intake, checks, sources."""
