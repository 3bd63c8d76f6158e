"""SOCKETS: Protocols whose docstring is the promise; nothing runs here."""
