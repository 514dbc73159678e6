"""Scenarios of an older schema become those of this one."""

import pytest

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.migrations import MIGRATIONS, SCHEMA, migrate
from weftwork.spec.scenario.scenario import loads
from weftwork.spec.scenario.yaml_tree import Mapping, Scalar, read_tree


def test_an_older_schema_is_migrated_with_notes_and_keeps_lines() -> None:
    root, _ = read_tree("schema: 1\nspeed: 400Gbps\n")
    assert isinstance(root, Mapping)

    def rename(tree: Mapping) -> tuple[Mapping, list[str]]:
        entry = tree.get("speed")
        assert entry is not None
        return tree.drop("speed").put("rate", entry.node), ["'speed' is now 'rate'"]

    def nothing(tree: Mapping) -> tuple[Mapping, list[str]]:
        return tree, []

    new, notes = migrate(root, 1, steps={1: rename, 2: nothing}, target=3)
    assert notes == ("schema 1 to 2: 'speed' is now 'rate'",)
    assert new.get("schema") is not None
    assert [(entry.key, entry.node) for entry in new.entries] == [
        ("schema", Scalar(text="3", line=1)),
        ("rate", Scalar(text="400Gbps", line=2)),
    ]


def test_there_is_a_migration_from_every_older_schema() -> None:
    assert sorted(MIGRATIONS) == list(range(1, SCHEMA))


def test_keys_of_schema_1_have_one_word_for_one_thing_in_schema_2() -> None:
    old = """schema: 1
training: {model: llama-3-8b, pipeline: 4, chunks: 2}
jobs:
  - {chunks: 3}
  - {chunks: 4, virtual_stages: 5}
collective: {chunks: 8, launch_latency: 1us}
fabric: {node: {chunk: 1MB}, chunk: 1MB}
"""
    root, _ = read_tree(old)
    assert isinstance(root, Mapping)
    new, notes = migrate(root, 1)
    assert notes == (
        "schema 1 to 2: 'training.chunks' is now 'training.virtual_stages'",
        "schema 1 to 2: 'jobs.chunks' is now 'jobs.virtual_stages'",
        "schema 1 to 2: 'collective.launch_latency' is now 'collective.base_latency'",
        "schema 1 to 2: 'fabric.node.chunk' is now 'fabric.node.slice'",
    )
    wanted = old.replace("schema: 1", f"schema: {SCHEMA}").replace("pipeline: 4, chunks", "pipeline: 4, virtual_stages")
    wanted = wanted.replace("{chunks: 3}", "{virtual_stages: 3}").replace("launch_latency", "base_latency")
    wanted = wanted.replace("node: {chunk:", "node: {slice:")
    assert new == read_tree(wanted)[0]
    unchanged, _ = read_tree("schema: 1\ntraining: soon\n")
    assert isinstance(unchanged, Mapping)
    assert migrate(unchanged, 1)[1] == ()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("fused_experts: true", "expert_streams: 0"),
        ("fused_experts: false", "expert_streams: 1"),
        ("graph_share: 0", "graphs: []"),
        ("graph_share: 1.0", "graphs: [iteration]"),
        ("graph_share: 1, fused_experts: true", "graphs: [iteration], expert_streams: 0"),
    ],
)
def test_software_of_schema_1_has_the_values_of_its_new_keys(old: str, new: str) -> None:
    fabric, job = "schema: 1\nfabric: {{radix: 4}}\n", "model: llama-3-8b, global_batch: 8, software: {{{}}}"
    text = f"{fabric}training: {{{{{job}}}}}\n"
    assert loads(text.format(old)).training == loads(text.format(new)).training
    jobs = f"{fabric}jobs: [{{{{name: a, gpus: 4, {job}}}}}]\n"
    assert loads(jobs.format(old)).jobs == loads(jobs.format(new)).jobs


def test_a_share_of_graphs_is_no_list_of_modules() -> None:
    text = (
        "schema: 1\nfabric: {radix: 4}\ntraining: {model: llama-3-8b, global_batch: 8, software: {graph_share: 0.7}}\n"
    )
    with pytest.raises(ConfigError) as refused:
        loads(text)
    (mistake,) = refused.value.mistakes
    assert (mistake.path, mistake.fix) == ("training.software.graph_share", "training.software.graphs")


@pytest.mark.parametrize(
    ("text", "path", "now"),
    [
        ("training: {model: llama-3-8b, chunks: 2}", "training.chunks", "training.virtual_stages"),
        ("jobs: [{name: a, model: llama-3-8b, chunks: 2}]", "jobs.0.chunks", "jobs.0.virtual_stages"),
        (
            "collective: {operation: all-reduce, size: 1MB, launch_latency: 1us}",
            "collective.launch_latency",
            "collective.base_latency",
        ),
    ],
)
def test_a_key_of_schema_1_in_a_file_of_schema_2_is_told_its_name_of_now(text: str, path: str, now: str) -> None:
    with pytest.raises(ConfigError) as refused:
        loads(f"schema: 2\nfabric: {{radix: 4, link_rate: 100Gbps}}\n{text}\n")
    assert (path, now) in {(mistake.path, mistake.fix) for mistake in refused.value.mistakes}


@pytest.mark.parametrize(
    ("old", "new", "note"),
    [
        ("{topology: rail-optimized, node: p5, gpus: 16, rail_only: true}", "{topology: rail-only, node: p5, gpus: 16}",
         "'fabric.rail_only' is now the topology 'rail-only'"),
        ("{topology: rail-optimized, rail_only: false, gpus: 16}", "{topology: rail-optimized, gpus: 16}",
         "'fabric.rail_only' is now the topology 'rail-only'"),
        ("{topology: fat-tree, tiers: 2, radix: 8, hosts: 6}",
         "{topology: fat-tree, tiers: 2, radix: 8, hosts: 6, spines: 4}",
         "a fat tree of two tiers has the spines that its leaves need: 'fabric.spines' keeps radix / 2"),
        ("{tiers: 2, switch: tomahawk-5, hosts: 6}", "{tiers: 2, switch: tomahawk-5, hosts: 6}",
         "a fat tree of two tiers has the spines that its leaves need; 'fabric.spines' sets others"),
        ("{topology: fat-tree, tiers: 2, radix: 8, hosts: 32}",
         "{topology: fat-tree, tiers: 2, radix: 8, hosts: 32}", None),
        ("{tiers: 2, radix: 0x10, hosts: 0x80}", "{tiers: 2, radix: 0x10, hosts: 0x80}", None),
        ("{tiers: 2, radix: 0x10, hosts: 6}", "{tiers: 2, radix: 0x10, hosts: 6, spines: 8}",
         "a fat tree of two tiers has the spines that its leaves need: 'fabric.spines' keeps radix / 2"),
        ("{tiers: 2, radix: true, hosts: 6}", "{tiers: 2, radix: true, hosts: 6}",
         "a fat tree of two tiers has the spines that its leaves need; 'fabric.spines' sets others"),
        ("{topology: leaf-spine, rail_only: true}", "{topology: leaf-spine, rail_only: true}", None),
        ("{radix: 8, hosts: 6}", "{radix: 8, hosts: 6}", None),
    ],
)  # fmt: skip
def test_trees_of_schema_2_have_the_names_and_spines_of_schema_3(old: str, new: str, note: str | None) -> None:
    root, _ = read_tree(f"schema: 2\nfabric: {old}\n")
    wanted, _ = read_tree(f"schema: 3\nfabric: {new}\n")
    assert isinstance(root, Mapping)
    assert isinstance(wanted, Mapping)
    made, notes = migrate(root, 2)
    assert notes == (() if note is None else (f"schema 2 to 3: {note}",))
    assert {one.key: one.node for one in made.get("fabric").node.entries} == {
        one.key: one.node for one in wanted.get("fabric").node.entries
    }
