"""What a desk has to say, as a document: headline, facts, tables, notes, acts. Doors render it and add no words."""
