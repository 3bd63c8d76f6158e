"""Stores of the journal, alerts, chats, outbox and samples."""
