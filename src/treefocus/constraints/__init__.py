"""What an answer may not do: the kinds of constraints, and their text."""
