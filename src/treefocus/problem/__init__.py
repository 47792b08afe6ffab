"""What is asked: rows, target, distance and constraints, as a search takes them."""
