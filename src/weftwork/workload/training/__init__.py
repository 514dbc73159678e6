"""One iteration of training as programs: how long each part computes, and what is sent in between."""
