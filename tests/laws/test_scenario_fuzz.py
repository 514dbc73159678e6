"""Whatever stands in a file, reading it ends in a scenario or in a ConfigError that can be printed."""

import time
from typing import Any

import jsonschema
import pytest
import yaml
from helpers.cases import Saw
from hypothesis import example, given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.kinds import (
    Choice,
    DeviceKind,
    FileName,
    Flag,
    Listing,
    Measure,
    NameOrFile,
    Number,
    PolicyChoiceKind,
    Section,
    SectionList,
    Selection,
    Text,
    Whole,
)
from weftwork.spec.scenario.rows import KeyRow
from weftwork.spec.scenario.scenario import Scenario, load, loads, rows
from weftwork.spec.scenario.schema import json_schema
from weftwork.spec.scenario.written import dump

KNOWN = {
    "congestion_control": ("dcqcn", "fixed-window"),
    "path_selection": ("ecmp", "spray"),
    "port_selection": ("ecmp", "least-loaded", "spray"),
}

KEYS = [*sorted({one.key for one in rows()}), "name", "file", "training", "oversubscriptoin", "<<", "", "0"]
WORDS = [
    "400Gbps", "2MiB", "500ns", "20m", "ecmp", "dcqcn", "spray", "fat-tree", "leaf-spine", "file", "incast", "poisson",
    "all", "none", "./x.py", "x.json", "yes", "~", "1e6", ".nan", "3:1", "\x7f", "\u2028", "\U0001f600", "a: b", "- x",
    "&a", "*a", "!!int 3", "\tx",
]  # fmt: skip

scalars = (
    st.none()
    | st.booleans()
    | st.integers(-10, 5000)
    | st.integers()
    | st.floats()
    | st.sampled_from(WORDS)
    | st.text(max_size=12)
)
trees = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=5), inner, max_size=6)
    ),
    max_leaves=20,
)


def value_of(row: KeyRow) -> st.SearchStrategy[Any]:  # noqa: PLR0911 - one for each kind
    """Values that mostly fit a row."""
    match row.kind:
        case Choice(options=options):
            return st.sampled_from(options)
        case Flag():
            return st.booleans()
        case Measure(allowed=allowed) if allowed:
            return st.sampled_from(allowed)
        case Measure(quantity=quantity):
            units = st.sampled_from(quantity.preferred)
            return st.builds(lambda number, unit: f"{number}{unit}", st.sampled_from([1, 2, 20, 100, 1.5]), units)
        case Whole(low=low, high=high):
            return st.integers(low, min(high, low + 12))
        case Number(high=high):
            return st.sampled_from([0.001, 0.25, 1]) if high is not None else st.sampled_from([0.25, 1, 8])
        case Text():
            return st.sampled_from(["leaf0-agg0", "2024", "true", "a: b", "é", "\U0001f600", "#x", "1e6"])
        case FileName(names=names):
            return st.sampled_from([*names, "no.csv"])
        case Listing(item=item, length=length):
            inner = value_of(KeyRow(key="x", kind=item, text="", source=""))
            return st.lists(inner, min_size=length or 1, max_size=length or 3)
        case Selection(item=item):
            return st.sampled_from(["all", "none"]) | st.lists(
                value_of(KeyRow(key="x", kind=item, text="", source="")), min_size=1, max_size=3
            )
        case NameOrFile(endings=endings):
            return st.sampled_from(["llama-3-8b", "h100", *(f"no{ending}" for ending in endings)])
        case PolicyChoiceKind(folder=folder):
            named = st.sampled_from(KNOWN[folder])
            values = st.sampled_from([1, 0.5, True, "55us", "1e6", "null", "yes"])
            return named | st.builds(
                lambda name, p: {**p, "name": name}, named, st.dictionaries(st.sampled_from(["g", "rai"]), values)
            )
        case _:
            return st.nothing()


BY_PATH = {one.path: one for one in rows()}


def section_of(path: str, required: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Mappings with some of a section's keys, each with a fitting value."""
    head = f"{path}."
    optional: dict[str, st.SearchStrategy[Any]] = {}
    for one in rows():
        key = one.path.removeprefix(head)
        if not one.path.startswith(head) or "." in key or key in required or key == "file":
            continue
        if isinstance(one.kind, Section | DeviceKind):
            optional[key] = section_of(one.path, {})
        elif not isinstance(one.kind, SectionList):
            optional[key] = value_of(one)
    return st.integers(0, 3).flatmap(
        lambda most: (
            st.lists(st.sampled_from(sorted(optional)), max_size=most, unique=True).flatmap(
                lambda keys: st.fixed_dictionaries({**required, **{key: optional[key] for key in keys}})
            )
            if optional
            else st.fixed_dictionaries(required)
        )
    )


fabrics = section_of("fabric", {"topology": st.just("fat-tree"), "radix": st.sampled_from([4, 6, 8])}) | section_of(
    "fabric",
    {
        "topology": st.just("leaf-spine"),
        "leaves": st.integers(1, 4),
        "spines": st.integers(1, 4),
        "hosts_per_leaf": st.integers(2, 6),
    },
)
workloads = (
    st.fixed_dictionaries({"collective": section_of("collective", {})})
    | st.fixed_dictionaries(
        {
            "traffic": section_of(
                "traffic", {"pattern": st.sampled_from(["permutation", "incast", "all-to-all", "poisson"])}
            )
        }
    )
    | st.fixed_dictionaries(
        {
            "training": section_of(
                "training",
                {
                    "model": st.just("llama-3-8b"),
                    "global_batch": st.integers(1, 64),
                    "tensor": st.sampled_from([1, 2, 4]),
                    "pipeline": st.sampled_from([1, 2]),
                },
            )
        },
        optional={"stragglers": st.lists(section_of("stragglers", {"gpu": st.integers(0, 8), "factor": st.just(2)}))},
    )
    | st.fixed_dictionaries(
        {
            "jobs": st.lists(
                section_of(
                    "jobs",
                    {
                        "model": st.just("llama-3-8b"),
                        "global_batch": st.integers(1, 64),
                        "gpus": st.sampled_from([2, 4]),
                    },
                ),
                max_size=3,
            )
        }
    )
)
likely = st.builds(
    lambda fabric, workload, rest: {"schema": 3, "fabric": fabric, **workload, **rest},
    fabrics,
    workloads,
    st.fixed_dictionaries(
        {},
        optional={
            "name": value_of(BY_PATH["name"]),
            "transport": section_of("transport", {"force": st.just(value=True)}),
            "engine": section_of("engine", {}),
            "faults": st.lists(
                section_of("faults", {"at": st.just("2us"), "event": st.sampled_from(["up", "down"])}), max_size=2
            ),
        },
    ),
)


def read(text: str, overrides: dict[str, str] | None = None) -> Scenario | None:
    try:
        return loads(text, overrides=overrides, known=KNOWN)
    except ConfigError as error:
        refused = error
    assert refused.mistakes
    assert all("\n" not in mistake.path + mistake.text for mistake in refused.mistakes)
    str(refused).encode("utf-8")  # can be printed
    return None


def assert_it_round_trips(scenario: Scenario) -> None:
    written = dump(scenario)
    again = loads(written, known=KNOWN)
    assert again == scenario
    assert dump(again) == written


@given(raw=st.binary(max_size=200))
@example(raw=b"\xff\xfe")
@example(raw=b"%YAML 1.99999999999999999999999999\n---\n{}")
@example(raw=b'"\\UFFFFFFFF"')
@example(raw=b"? ? ? a")
@example(raw=b"&a [*a, *a]")
def test_any_bytes(raw: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.getbasetemp() / "fuzz.yaml"
    path.write_bytes(raw)
    with pytest.raises(ConfigError) as caught:
        load(path, known=KNOWN)
    str(caught.value).encode("utf-8")


@given(text=st.text(st.sampled_from(sorted(set("schema: 3\nfabric{}[],&*!|>'\"%@`#-?\\\t 0x9.e<~"))), max_size=120))
def test_any_text_of_the_characters_of_yaml(text: str) -> None:
    assert read(text) is None


@given(tree=trees)
def test_any_tree(tree: object) -> None:
    assert read(yaml.dump(tree)) is None


@given(
    tree=st.dictionaries(
        st.sampled_from(sorted({one.path for one in rows() if "." not in one.path})), trees, max_size=6
    )
)
def test_any_tree_below_the_right_sections(tree: dict[str, object]) -> None:
    scenario = read(yaml.dump({"schema": 3, **tree}))
    if scenario is not None:
        assert_it_round_trips(scenario)


VALIDATOR = jsonschema.Draft202012Validator(json_schema(KNOWN))


@given(tree=likely)
def test_whatever_is_accepted_reads_back_equal_and_suits_editors(tree: dict[str, object]) -> None:
    scenario = read(yaml.dump(tree))
    if scenario is not None:
        assert_it_round_trips(scenario)
        VALIDATOR.validate(tree)


def test_many_of_the_likely_files_are_accepted(saw: Saw) -> None:
    drawn = accepted = 0

    @given(tree=likely)
    def count(tree: dict[str, object]) -> None:
        nonlocal drawn, accepted
        drawn += 1
        accepted += read(yaml.dump(tree)) is not None

    count()
    saw(drawn, f"accepted: {accepted}")
    assert accepted >= drawn // 5


@pytest.mark.parametrize(
    "text",
    [
        "[" * 200_000,
        "{a: " * 60_000,
        "- " * 100_000,
        "? " * 100_000,
        "x" * 240_000,
        "'" * 240_000,
        "\n" * 240_000,
        "".join(f"k{number}: 1\n" for number in range(9_000)),
        "schema: 3\nfaults:\n" + "- {at: 1}\n" * 6_000,
        "a: 1\n" * 9_000,
        "1" * 200_000,
        f"schema: {'1' * 10_000}",
        f"schema: 3\nname: {'9' * 10_000}e{'9' * 10_000}",
    ],
    ids=lambda text: text[:8].strip(),
)
def test_a_hostile_text_costs_seconds_at_most(text: str) -> None:
    begin_s = time.process_time()
    assert read(text) is None
    assert time.process_time() - begin_s < 10  # found quadratic code, which took minutes


SMALL = "{schema: 3, fabric: {radix: 4}, traffic: {pattern: incast}, faults: [{at: 1us, switch: core0, event: down}]}"


@given(
    overrides=st.dictionaries(
        st.sampled_from([*(one.path for one in rows()), "faults.0.at", "faults.1", "a..b", ""]) | st.text(max_size=12),
        scalars.map(str) | st.text(max_size=12) | trees.map(lambda tree: yaml.dump(tree, default_flow_style=True)),
        max_size=3,
    )
)
def test_any_overrides(overrides: dict[str, str]) -> None:
    scenario = read(SMALL, overrides)
    if scenario is not None:
        assert_it_round_trips(scenario)
