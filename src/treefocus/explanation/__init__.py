"""The answers: rows in the user's units, what is proven of them, and what can be told about them."""
