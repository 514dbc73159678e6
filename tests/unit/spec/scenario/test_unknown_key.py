"""A key that a section does not have: what is proposed fits the place where it stands."""

from __future__ import annotations

import pytest

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.fix import OtherKey
from weftwork.spec.scenario.scenario import loads

FABRIC = "fabric: {topology: fat-tree, tiers: 3, radix: 4}"
POLICIES = {"congestion_control": ["dcqcn"], "path_selection": ["ecmp"], "port_selection": ["ecmp"]}


def mistakes(text: str) -> tuple[Mistake, ...]:
    with pytest.raises(ConfigError) as caught:
        loads(f"schema: 3\n{text}", known=POLICIES)
    return caught.value.mistakes


@pytest.mark.parametrize(
    ("section", "path", "fix"),
    [
        ("faults: [{at: 1us, nic: host0, slow: 0.5, event: slow, fraction: 0.5}]", "faults.0.slow", "event: slow"),
        ("faults: [{at: 1us, link: leaf0-agg0, down: true, event: down}]", "faults.0.down", "event: down"),
        ("faults: [{at: 1us, link: leaf0-agg0, event: down, link_delay: 2us}]", "faults.0.link_delay",
         "fabric.link_delay"),
        ("transport: {link_rate: 1Gbps}", "transport.link_rate", "fabric.link_rate"),
        ("engine: {ports: all}", "engine.ports", "engine.record.ports"),
        ("engine: {evry: 1us}", "engine.evry", "engine.record.every"),
        ("engine: {packet: true}", "engine.packet", "fidelity: packet"),
        ("faults: [{at: 1us, link: leaf0-agg0, event: down, tims: 3}]", "faults.0.tims", "times"),
    ],
)  # fmt: skip
def test_the_proposal_knows_the_place(section: str, path: str, fix: str) -> None:
    (one,) = mistakes(f"{FABRIC}\ntraffic: {{pattern: permutation}}\n{section}")
    assert (one.path, str(one.fix)) == (path, fix)


def test_a_key_of_a_workload_that_the_file_has_not_is_not_proposed() -> None:
    (one,) = mistakes(f"{FABRIC}\ntraffic: {{pattern: permutation}}\nengine: {{micro_batch: 2}}")
    assert one.fix is None
    assert one.text == "unknown key; wanted fidelity, seed, until or record"


def test_a_key_misspelled_in_the_wrong_section_is_not_guessed() -> None:
    (one,) = mistakes(f"{FABRIC}\ntraffic: {{pattern: permutation}}\nengine: {{flow: 2}}")
    assert one.fix == OtherKey("fidelity", "flow")
    (one,) = mistakes(f"{FABRIC}\ntraffic: {{pattern: permutation}}\nengine: {{oversubscriptoin: 2}}")
    assert one.fix is None
