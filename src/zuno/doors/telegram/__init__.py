"""The desk in a Telegram chat: what is asked there, and how answers look."""
