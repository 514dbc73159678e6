"""One iteration of training as programs of computing and communication."""
