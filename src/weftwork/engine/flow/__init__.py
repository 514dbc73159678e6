"""The flow engine: bandwidth shared max-min among flows; the native core does the work, this is its Python side."""
