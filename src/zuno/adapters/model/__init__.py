"""Where opinions come from: vendors, a script, or a record."""
