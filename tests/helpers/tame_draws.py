"""Random scenarios that are nearly right: what one key asks for, another key, the model or the fabric may refuse.

A base that runs or is refused, with one to six keys drawn anew, each with a value that its own kind allows.
Leaves out: values that no key allows and damaged files (`tests/steps/fuzz.py`).
"""

from __future__ import annotations

import copy
import random
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    FileName,
    Flag,
    Listing,
    NameOrFile,
    OfferKind,
    PolicyChoiceKind,
    Selection,
    Text,
    Whole,
)
from weftwork.spec.scenario.rows import KeyRow
from weftwork.spec.scenario.scenario import rows

STEPS: Final = Path(__file__).parents[1] / "steps"
sys.path.insert(0, str(STEPS))

from fuzz import put, tame_or_wild  # noqa: E402 - a script, which stands outside the packages of the tests

BASES: Final = tuple(
    yaml.safe_load_all(
        (STEPS / "fuzz_bases.yaml").read_text(encoding="utf-8")
        + "\n---\n"
        + (Path(__file__).parent / "refused_scenarios.yaml").read_text(encoding="utf-8")
    )
)
SIZES: Final = (2, 3, 4, 6, 8, 12, 16, 24, 48, 54, 64)  # chosen: degrees, counts and radices as people write them
DRAWN: Final = (Whole, Choice, Flag, OfferKind, PolicyChoiceKind, DeviceKind, FileName, NameOrFile, Text, Listing,
                Selection)  # fmt: skip
ROWS: Final = tuple(
    row
    for row in rows()
    if "." in row.path
    and isinstance(row.kind, DRAWN)
    and not (row.key in {"model", "name"} and isinstance(row.kind, Text))
)


def tame(row: KeyRow, rng: random.Random) -> Any:
    """A value that the kind of a key allows."""
    kind = row.kind
    if isinstance(kind, Whole):
        between = [kind.low, kind.low + rng.randint(0, 3), rng.choice(SIZES)]
        return min(kind.high, max(kind.low, rng.choice(between)))
    return tame_or_wild(row, rng)


def nearly_right(number: int) -> str:
    """The text of the scenario of a number."""
    rng = random.Random(f"nearly right {number}")
    tree: dict[str, Any] = {"schema": 3, "name": f"nearly right {number}", **copy.deepcopy(rng.choice(BASES))}
    near = [row for row in ROWS if row.path.partition(".")[0] in tree]
    for _ in range(rng.randint(1, 6)):
        put(tree, rng.choice(near), rng, draw=tame)
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)
