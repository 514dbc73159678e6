"""The package `pyverbs` of this folder: Weftwork's, see ``weftwork.compat.pyverbs.alias``."""

from weftwork.compat.pyverbs.alias import install

install()
