"""Public training recipes: how a framework release runs a model on a GPU."""
