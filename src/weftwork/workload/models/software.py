"""The catalogue of software generations, each figure with its source.

The records are `weftwork.spec.training.Software`, by name. What a recipe turns on for one model alone, such as overlap,
is part of a plan and not of a generation.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from weftwork.base.catalogue import Catalogue
from weftwork.base.caveat import Caveat
from weftwork.spec.training import Software

__all__ = ["SOFTWARE", "software", "software_caveats"]

SOFTWARE: Final = Catalogue("software", Path(__file__).with_name("software.toml"))


def software(name: str, *, path: str = "training.software") -> Software:
    """The record of a software generation.

    Parameters
    ----------
    name : of the catalogue
    path : of the key that holds the name, for the error

    Raises
    ------
    ConfigError : there is no such generation; names the nearest

    Examples
    --------
    >>> software("megatron-deepspeed").launch_ps, software("plain") == Software()
    (36000000, True)
    """
    row = SOFTWARE.find(name, path=path)
    return Software(name=name, **{key: figure.value for key, figure in row.figures.items()})


def software_caveats(name: str) -> dict[str, Caveat]:
    """Caveats of a generation, by ``name.key``.

    They are unverified or chosen figures; empty for an unknown name.
    """
    if name not in SOFTWARE:
        return {}
    return {**SOFTWARE["plain"].caveats(), **SOFTWARE[name].caveats()}
