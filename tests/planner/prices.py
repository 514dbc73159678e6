"""What tests cost, as measured and written down in tests/prices.json, and the turn of each case of a deep step.

`python tests/steps/prices.py` writes the file from JUnit reports of pytest; it keeps the turn of a case that has one.
"""

from __future__ import annotations

import functools
import json
import re
from dataclasses import dataclass
from pathlib import Path

from planner.plan import TURNS, Case

PRICES = Path(__file__).parents[1] / "prices.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class Prices:
    """Prices of one machine, in seconds of CPU time.

    Parameters
    ----------
    measured : when, at which commit, on what
    files : work by file of tests, in the test command
    cases : cases by deep step
    """

    measured: dict[str, str]
    files: dict[str, float]
    cases: dict[str, tuple[Case, ...]]

    def with_cases(self, step: str, prices_s: dict[str, float]) -> Prices:
        """The same with the cases of a step as they are now; a new case takes the turn with the least work."""
        turns = {case.name: case.turn for case in self.cases.get(step, ())}
        work_s = [0.0] * TURNS
        for name, turn in turns.items():
            work_s[turn] += prices_s.get(name, 0.0)
        for name in sorted(prices_s.keys() - turns.keys(), key=lambda name: (-prices_s[name], name)):
            turns[name] = min(range(TURNS), key=work_s.__getitem__)
            work_s[turns[name]] += prices_s[name]
        cases = tuple(
            Case(name=name, file=name.partition("::")[0], price_s=price_s, turn=turns[name])
            for name, price_s in sorted(prices_s.items())
        )
        return Prices(measured=self.measured, files=self.files, cases=self.cases | {step: cases})


@functools.cache
def read_prices(path: Path = PRICES) -> Prices:
    """Read the file; no prices where there is none."""
    if not path.is_file():
        return Prices(measured={}, files={}, cases={})
    document = json.loads(path.read_text(encoding="utf-8"))
    return Prices(
        measured=document["measured"],
        files=document["files"],
        cases={
            step: tuple(
                Case(name=f"{file}::{test}", file=file, price_s=price_s, turn=turn)
                for file, tests in files.items()
                for test, (price_s, turn) in tests.items()
            )
            for step, files in document["cases"].items()
        },
    )


def write_prices(prices: Prices, path: Path = PRICES) -> None:
    """Write the file, one case a line, so that a change of one price is a change of one line."""
    steps = {}
    for step, cases in sorted(prices.cases.items()):
        files: dict[str, dict[str, list[float]]] = {}
        for case in cases:
            files.setdefault(case.file, {})[case.name.partition("::")[2]] = [round(case.price_s, 2), case.turn]
        steps[step] = files
    files_of_plain = {file: round(work_s, 2) for file, work_s in sorted(prices.files.items())}
    lines = json.dumps(
        {"measured": prices.measured, "files": files_of_plain, "cases": steps}, indent=1, ensure_ascii=False
    )
    path.write_text(_short_pairs(lines) + "\n", encoding="utf-8")


def _short_pairs(text: str) -> str:
    """Pairs of numbers on the line of their case."""
    return re.sub(r"\[\s+([0-9.]+),\s+([0-9]+)\s+\]", r"[\1, \2]", text)
