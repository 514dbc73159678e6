"""Floor 2: congestion control, path selection and port selection; pure step functions, one file each."""
