"""DOORS: parse, call app, render."""
