"""NOUNS: values of the world, standard library only."""
