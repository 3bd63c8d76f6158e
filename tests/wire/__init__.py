"""What tests, benches and studies share: worlds to put code into, and local servers that answer as the true ones do."""
