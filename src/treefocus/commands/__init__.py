"""The commands that work on files, one a file, and what they have in common."""
