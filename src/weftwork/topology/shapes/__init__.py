"""The catalogue of topologies: a file of this folder is a value of `fabric.topology`."""
