"""A tree ensemble as flat arrays, the cells on which it is constant, and variants of it."""
