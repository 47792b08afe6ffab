"""What is kept on the disk: files written whole or not at all, work in parts, and one writer at a time."""
