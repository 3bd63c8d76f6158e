"""What both desks need: units, errors, clock, canonical bytes, signing, text, views, arguments, notices."""
