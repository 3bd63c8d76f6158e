"""In-memory stand-ins for adapters; each sits the exam of its port beside the real ones."""
