"""The ways in: command line, shell, chat, Telegram, the page, and the server for assistants."""
