"""What columns mean: names, kinds, units, words; guessed from a table, kept in a file."""
