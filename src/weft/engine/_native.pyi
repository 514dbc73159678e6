"""Weft's native core."""



def version() -> str:
    """The version of Weft that this core was built as."""
