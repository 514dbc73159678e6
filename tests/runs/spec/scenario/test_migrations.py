"""A file of another schema is refused with the line to write; from the first release on an older one is migrated."""

from __future__ import annotations

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario import migrations
from weftwork.spec.scenario.migrations import MIGRATIONS, OLDEST, SCHEMA
from weftwork.spec.scenario.scenario import load_mapping, loads
from weftwork.spec.scenario.yaml_tree import Mapping

FABRIC = {"topology": "fat-tree", "tiers": 3, "radix": 4}
TEXT = "schema: {}\nfabric: {{topology: fat-tree, tiers: 3, radix: 4}}\ntraffic: {{pattern: permutation{}}}\n"


def mistakes(text: str, overrides: dict[str, object] | None = None) -> list[tuple[int | None, str, str]]:
    with pytest.raises(ConfigError) as refused:
        loads(text, overrides=overrides)
    return [(one.line, one.path, one.text) for one in refused.value.mistakes]


def test_every_schema_since_the_first_release_has_its_step() -> None:
    assert OLDEST == 3, "the schema of 0.1.0: every later Weftwork reads its files"
    assert sorted(MIGRATIONS) == list(range(OLDEST, SCHEMA))


@pytest.mark.parametrize("version", [-1, 0, *range(1, OLDEST)])
def test_a_schema_that_was_never_released_is_refused_with_the_line_to_write(version: int) -> None:
    assert mistakes(TEXT.format(version, "")) == [(1, "schema", f"found '{version}', wanted `schema: {SCHEMA}`")]
    below = f"name: old\nschema: {version}\n{TEXT.format(version, '').partition(chr(10))[2]}"
    assert mistakes(below) == [(2, "schema", f"found '{version}', wanted `schema: {SCHEMA}`")]


def test_the_other_mistakes_of_such_a_file_are_told_as_well() -> None:
    found = mistakes(TEXT.format(2, ", sise: 1KB").replace("radix: 4", "radix: 4, rail_only: true"))
    assert [(line, path) for line, path, _ in found] == [(1, "schema"), (2, "fabric.rail_only"), (3, "traffic.sise")]
    assert found[2][2] == "unknown key"


def test_a_newer_schema_asks_for_a_newer_weftwork_and_judges_no_other_key() -> None:
    text = f"found '{SCHEMA + 1}', and this Weftwork reads schema {SCHEMA}: install a newer Weftwork"
    assert mistakes(TEXT.format(SCHEMA + 1, ", sise: 1KB")) == [(1, "schema", text)]


@pytest.mark.parametrize(
    ("version", "text"),
    [
        (2, f"found '2', wanted `schema: {SCHEMA}`"),
        (SCHEMA + 1, f"found '{SCHEMA + 1}', and this Weftwork reads schema {SCHEMA}: install a newer Weftwork"),
    ],
)
def test_so_is_one_that_an_override_or_a_dict_brings(version: int, text: str) -> None:
    assert mistakes(TEXT.format(SCHEMA, ""), {"schema": version}) == [(None, "--set schema", text)]
    with pytest.raises(ConfigError) as refused:
        load_mapping({"schema": version, "fabric": FABRIC, "traffic": {"pattern": "permutation"}})
    assert [(one.line, one.path, one.text) for one in refused.value.mistakes] == [(None, "schema", text)]


def test_an_override_that_mends_the_schema_or_takes_it_away_counts() -> None:
    assert loads(TEXT.format(1, ""), overrides={"schema": SCHEMA}) == loads(TEXT.format(SCHEMA, ""))
    missing = f"missing, wanted `schema: {SCHEMA}` as the first line"
    assert mistakes(TEXT.format(1, ""), {"schema": None}) == [(1, "schema", missing)]


@pytest.mark.parametrize("written", ["one", "[3]", "true", "~", "2.5", "'2'"])
def test_what_is_no_whole_number_is_no_schema(written: str) -> None:
    ((line, path, text),) = mistakes(TEXT.format(written, ""))
    assert (line, path) == (1, "schema")
    assert text.endswith(f"wanted {SCHEMA}")


def test_steps_of_older_schemas_are_taken_in_order_and_mistakes_keep_their_lines(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def renamed(tree: Mapping, old: str, new: str) -> tuple[Mapping, list[str]]:
        entry = tree.get(old)
        return (tree, []) if entry is None else (tree.drop(old).put(new, entry.node), [f"'{old}' is now '{new}'"])

    steps = {
        SCHEMA - 2: lambda tree: renamed(tree, "flows", "messages"),
        SCHEMA - 1: lambda tree: renamed(tree, "messages", "traffic"),
    }
    monkeypatch.setattr(migrations, "OLDEST", SCHEMA - 2)
    monkeypatch.setattr(migrations, "MIGRATIONS", steps)
    text = TEXT.format(SCHEMA - 2, "").replace("traffic", "flows")
    scenario = loads(text)
    assert scenario == loads(TEXT.format(SCHEMA, ""))
    assert scenario.line_of("traffic.pattern") == 3
    assert scenario.notes == (
        f"schema {SCHEMA - 2} to {SCHEMA - 1}: 'flows' is now 'messages'",
        f"schema {SCHEMA - 1} to {SCHEMA}: 'messages' is now 'traffic'",
    )
    assert loads(TEXT.format(SCHEMA - 1, "").replace("traffic", "messages")).notes == scenario.notes[1:]
    assert loads(TEXT.format(SCHEMA, "")).notes == ()
    found = mistakes(text.replace("permutation", "permutation, sise: 1KB"))
    assert [(line, path) for line, path, _ in found] == [(3, "traffic.sise")]
