"""Published measurements that come with Weftwork, as Arrow tables.

Source: `weftwork/data/published/README.md` names each table's source, NOTICE its terms.
Leaves out: distributions of flow sizes, which `weftwork.workload.traffic.sizes` reads.
"""

from __future__ import annotations

from importlib.resources import as_file, files
from typing import TYPE_CHECKING

from pyarrow import csv

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["measured", "measured_names"]

_FLOW_SIZES = "flow_sizes_"


def measured_names() -> tuple[str, ...]:
    """Names of the tables, sorted.

    Examples
    --------
    >>> "htsim-permutation-8192-hosts" in measured_names()
    True
    """
    folder = files("weftwork.data") / "published"
    stems = (entry.name.removesuffix(".csv") for entry in folder.iterdir() if entry.name.endswith(".csv"))
    return tuple(sorted(stem.replace("_", "-") for stem in stems if not stem.startswith(_FLOW_SIZES)))


def measured(name: str) -> pa.Table:
    """Read one table.

    Parameters
    ----------
    name : one of `measured_names`

    Returns
    -------
    columns as in the file, with units in their names; int64, float64 or text

    Raises
    ------
    ConfigError : there is no such table

    Examples
    --------
    >>> measured("nccl-all-reduce-h100-efa").column_names[:2]
    ['gpus', 'size_bytes']
    """
    names = measured_names()
    if name not in names:
        text = f"found '{name}', wanted {', '.join(names[:-1])} or {names[-1]}"
        raise ConfigError("published measurements", [Mistake(path="name", text=text, fix=nearest(name, names))])
    with as_file(files("weftwork.data") / "published" / f"{name.replace('-', '_')}.csv") as path:
        return csv.read_csv(path)
