"""The roads of the workloads, one file each."""
