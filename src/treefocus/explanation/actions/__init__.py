"""Few actions for many people: which changes, the same for all, get as many of them as possible the wanted answer."""
