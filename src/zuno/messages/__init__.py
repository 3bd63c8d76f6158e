"""WORDS: frozen, closed, versioned shapes of what crosses a border, and the bytes they are hashed and signed as."""
