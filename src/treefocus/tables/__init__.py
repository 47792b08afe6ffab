"""The user's tables: in as numbers, out again as the same kind of table."""
