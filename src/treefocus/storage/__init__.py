"""What is kept on the disk: files written whole or not at all, and one writer at a time."""
