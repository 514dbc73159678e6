"""Public recipes of training: how a release of a framework runs a model on a GPU."""
