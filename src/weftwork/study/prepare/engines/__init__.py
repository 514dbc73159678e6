"""The engines of the fidelities, one file each."""
