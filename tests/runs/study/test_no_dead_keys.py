"""No key of a scenario is dead: each has a row with two values that have different results.

The keys are those that `weftwork schema` prints, the rows those of `keys/rows.yaml`.
"""

from __future__ import annotations

import json
from collections import Counter
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from helpers.keys import FIDELITIES, Refused, Row, Said, printed_keys, rows_in, said_of, with_value

import weftwork
from weftwork import policies
from weftwork.spec.scenario.schema import json_schema
from weftwork.topology.export import export

HERE = Path(__file__).parent / "keys"


INSTALLED = Path(policies.__file__).parent


ROWS = rows_in((HERE / "rows.yaml").read_text(encoding="utf-8"))


BASES: dict[str, Any] = yaml.safe_load((HERE / "bases.yaml").read_text(encoding="utf-8"))


FABRIC = """schema: 3
fabric: {{topology: leaf-spine, leaves: 2, spines: {spines}, hosts_per_leaf: 2, link_rate: 100Gbps}}
traffic: {{pattern: permutation}}
"""


def cases(*, alive: bool) -> list[Any]:
    """A case for each row and fidelity on which its key is alive, or is not."""
    found = []
    for row, name in zip(ROWS, _names(ROWS), strict=True):
        for fidelity in FIDELITIES:
            if (fidelity in row.fidelities) is not alive:
                continue
            marks = []
            if alive and fidelity != next(one for one in FIDELITIES if one in row.fidelities):
                marks.append(pytest.mark.deep)  # each key once in the test command, its second fidelity in `truth`
            if row.key.startswith("jobs[]."):
                marks.append(pytest.mark.deep)  # they are those of training
            found.append(pytest.param(row, fidelity, id=f"{name}-{fidelity}", marks=marks))
    return found


def _names(rows: list[Row]) -> list[str]:
    seen: Counter[str] = Counter()
    names = []
    for row in rows:
        seen[row.key] += 1
        names.append(row.key if seen[row.key] == 1 else f"{row.key}-{seen[row.key]}")
    return names


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """What a scenario says, each asked once."""
    made = tmp_path_factory.mktemp("made")
    for name, spines in (("one", 1), ("two", 2)):
        file = made / f"{name}.yaml"
        file.write_text(FABRIC.format(spines=spines), encoding="utf-8")
        export(weftwork.prepare(weftwork.read_scenario(file)).fabric, made / f"{name}.json")
    folders = {"{here}": HERE, "{made}": made, "{policies}": HERE.parents[2] / "policies", "{installed}": INSTALLED}

    @cache
    def once(text: str) -> Said | Refused:
        for mark, folder in folders.items():
            text = text.replace(mark, folder.as_posix())
        return said_of(json.loads(text), made)

    return lambda document: once(json.dumps(document, sort_keys=True))


@pytest.mark.deep
@pytest.mark.parametrize(("row", "fidelity"), cases(alive=True))
def test_two_values_of_a_key_have_different_results(row: Row, fidelity: str, said: Any) -> None:
    one, other = (said(with_value(BASES[row.base], row, value, fidelity)) for value in (row.first, row.second))
    if row.differs == ("refused",):
        assert isinstance(one, Refused) != isinstance(other, Refused), (one, other)
        return
    assert isinstance(one, Said), one.text
    assert isinstance(other, Said), other.text
    same = [what for what in row.differs if one.of(what) == other.of(what)]
    assert not same, f"{row.key}: {row.first} and {row.second} have the same {', '.join(same)}"
    assert not other.notes.get(row.key, "").startswith("changes nothing")


@pytest.mark.parametrize(("row", "fidelity"), cases(alive=False))
def test_a_key_that_cannot_matter_is_refused_or_told(row: Row, fidelity: str, said: Any) -> None:
    one, other = (said(with_value(BASES[row.base], row, value, fidelity)) for value in (row.first, row.second))
    if fidelity in row.refused_on:
        assert isinstance(other, Refused) or isinstance(one, Refused)
        return
    assert isinstance(one, Said), one.text
    assert isinstance(other, Said), other.text
    assert one.digest == other.digest
    assert [subject for subject in other.notes if is_about(subject, row.key)]


def is_about(subject: str, key: str) -> bool:
    """Whether a note is about a key, about one below it, or about what it belongs to."""
    return f"{subject}.".startswith(f"{key}.") or f"{key}.".startswith(f"{subject}.")


def test_every_key_that_the_schema_prints_has_a_row() -> None:
    """But for those of a sweep, which no run has: tests/runs/study/sweep/test_no_dead_sweep_keys.py has these."""
    printed = {key: senses for key, senses in printed_keys(json_schema()).items() if not key.startswith("sweep.")}
    rows = Counter(row.key for row in ROWS)
    missing = {key: senses - rows[key] for key, senses in printed.items() if rows[key] < senses}
    assert not missing, f"give each of these a row in {HERE.name}/rows.yaml, see docs/dev/recipes.md: {missing}"


def test_every_row_has_a_key() -> None:
    assert {row.key for row in ROWS} - set(printed_keys(json_schema())) == set()
