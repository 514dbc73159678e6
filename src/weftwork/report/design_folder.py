"""The folder of a design, read again.

It holds the document, and a scenario for each candidate that was not pruned.

`weftwork design` writes it: ``result.json``, and YAML files in ``fabrics``. Leaves out: run folders.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.plain_file import read_plain
from weftwork.spec.study_ends import STUDY_ENDS
from weftwork.store.sweeps import read_command

__all__ = ["FABRICS", "RESULT", "is_design", "open_design"]

RESULT: Final = "result.json"
FABRICS: Final = "fabrics"
_MOST_BYTES: Final = 50_000_000  # chosen: of a document of some ten thousand candidates
_NAME: Final = re.compile(r"f[0-9]{3,9}")  # of a candidate, and of its file
_NEEDED: Final = frozenset({
    "name", "node", "gpus", "file", "prices", "budget_usd", "power_budget_w", "number", "by", "plan", "chosen_anew",
    "counted", "pruned", "front", "knee", "end", "kept", "candidates", "criterion", "take", "take_packed", "placed_key",
    "cluster", "price_regions", "price_corners", "kinds",
})  # fmt: skip
_OF: Final = {
    "candidates": frozenset({
        "name", "words", "tree", "networks", "switches", "links", "price_usd", "power_w", "money_by_kind_usd",
        "unverified_money_share", "unverified_power_share", "least_bandwidth_share", "time_ps", "useful_share",
        "counting_time_ps", "closed_form_ps", "limited_by", "run", "reason", "is_front", "is_knee",
        "is_take", "placed", "placed_time_ps", "cables", "cluster_usd", "network_life_usd", "work_per_usd",
    }),
    "pruned": frozenset({"reason", "count", "example", "detail", "better"}),
}  # fmt: skip


def is_design(path: Path) -> bool:
    """Whether a folder is the folder of a design, finished or not."""
    return (path / "design.json").is_file()


def open_design(folder: Path) -> tuple[dict[str, Any], dict[str, str]]:
    """Read the document and the scenarios of a `weftwork design` folder.

    Raises
    ------
    ConfigError : the design was ended before it wrote its result, a file cannot be read, is no such document, or was
        written by a version without some of its keys
    """
    again = f"with: {read_command(folder)}"
    if not (folder / RESULT).is_file():
        raise _wrong(folder, "design", f"has no result yet; continue {again}")
    try:
        found = json.loads(_read(folder, RESULT))
    except ValueError as error:
        raise _wrong(folder, RESULT, f"is no JSON: {error}; write it again {again}") from error
    missing = _missing(found)
    if missing:
        raise _wrong(folder, RESULT, f"lacks {', '.join(missing[:3])}; write it again {again}")
    if found["end"] not in list(STUDY_ENDS):
        wanted = f"wanted {', '.join(STUDY_ENDS)}; write it again {again}"
        raise _wrong(folder, RESULT, f"has the end {found['end']!r}, {wanted}")
    names = [one["name"] for one in found["candidates"]]
    strange = next((name for name in names if not isinstance(name, str) or not _NAME.fullmatch(name)), None)
    if strange is not None:
        raise _wrong(folder, RESULT, f"names a candidate {strange!r}, wanted a name such as f003")
    return dict(found), {name: _read(folder, f"{FABRICS}/{name}.yaml") for name in names}


def _missing(found: Any) -> list[str]:  # noqa: ANN401 - whatever JSON holds
    """Keys that a document lacks."""
    if not isinstance(found, Mapping):
        return sorted(_NEEDED)
    missing = sorted(_NEEDED - found.keys())
    return missing or sorted(
        f"{name}[{place}].{key}"
        for name, needed in _OF.items()
        for place, one in enumerate(found[name])
        for key in (needed - one.keys() if isinstance(one, Mapping) else needed)
    )


def _read(folder: Path, name: str) -> str:
    try:
        return read_plain(folder / name, _MOST_BYTES).decode("utf-8", errors="replace")
    except OSError as error:
        raise _wrong(folder, name, f"cannot be read: {error.strerror}") from error


def _wrong(folder: Path, path: str, text: str) -> ConfigError:
    return ConfigError(str(folder), [Mistake(path=path, text=text)])
