"""What the folder of a run has besides its tables and numbers, for folders that a test writes by hand."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

import pyarrow as pa

from weftwork.spec.answer import Answer, Culprit, Limit, Took
from weftwork.spec.result import TABLES
from weftwork.store.tables import table_schema

__all__ = ["ABOUT", "ANSWER", "OF_SEVERAL", "PROVENANCE", "all_tables"]

ABOUT: Final = MappingProxyType({"name": "test", "workload": "nothing", "fabric": "none", "transport": "none"})
ANSWER: Final = Answer(
    took=Took(what="all messages", seconds=1.0, number="completion_ps"),
    limited_by=Limit(name="leaf0->host0", share=0.5, number="busiest_link"),
    culprit=Culprit(
        kind="none", name="its size", key=None, text="nothing else", cost_s=None, cost_share=None, how="recorded",
        of="the run",
    ),
)  # fmt: skip
_OF_ALL: Final[Mapping[str, Any]] = {
    "weftwork": "test", "commit": None, "schema": 3, "status": "complete", "engine": "packet", "policies": {},
    "machine": {}, "notes": [], "caveats": [], "files": {}, "started": "2026-06-01T00:00:00+00:00", "wall_s": 1.0,
}  # fmt: skip
# Of a run of one seed and of several; `write_run` and `write_run_set` add the rest.
PROVENANCE: Final[Mapping[str, Any]] = MappingProxyType({
    **_OF_ALL, "seed": 1, "digest": "0", "digest_version": 1, "set_up_s": 0.1, "engine_s": 0.5, "estimate": {},
    "peak_memory_bytes": 1,
})  # fmt: skip
OF_SEVERAL: Final[Mapping[str, Any]] = MappingProxyType({**_OF_ALL, "seeds": [1], "seeds_wanted": 1})


def all_tables(tables: Mapping[str, pa.Table] = MappingProxyType({})) -> dict[str, pa.Table]:
    """Every table of a run, without rows where none are given."""
    return {name: tables.get(name, table_schema(name).empty_table()) for name in TABLES}
