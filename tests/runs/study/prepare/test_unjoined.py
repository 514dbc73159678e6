"""A job that sends between ports that no path joins is refused before it runs, with the pair and the way out."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.tiny import wired

from weftwork.base.errors import ConfigError
from weftwork.study.prepare.prepare import prepare, read_scenario

RAILS = """schema: 3
fabric:
  topology: {topology}
  gpus: 16
  node: {{gpus: 4, nic_ports: 4, nvlink_domain_gpus: 4, nvlink_rate: 900Gbps}}
  switch: {{radix: 64}}
transport: {{congestion_control: fixed-window}}
engine: {{fidelity: {fidelity}}}
{workload}
"""
ALL_TO_ALL = "collective: {{operation: all-to-all, algorithm: {}, size: 1MiB}}"


def prepared(
    tmp_path: Path, workload: str, *, topology: str = "rail-only", fidelity: str = "packet", **overrides: str
) -> None:
    file = tmp_path / "mine.yaml"
    file.write_text(RAILS.format(workload=workload, topology=topology, fidelity=fidelity), encoding="utf-8")
    prepare(read_scenario(file, overrides))


@pytest.mark.parametrize("fidelity", ["packet", "flow", "reference"])
def test_a_direct_all_to_all_over_separate_rails_is_refused(tmp_path: Path, fidelity: str) -> None:
    with pytest.raises(ConfigError) as error:
        prepared(tmp_path, ALL_TO_ALL.format("direct"), fidelity=fidelity)
    (mistake,) = error.value.mistakes
    assert (mistake.path, mistake.line, mistake.fix) == ("collective.algorithm", 9, "hierarchical")
    assert "rank 3 ('host0/nic3') sends to rank 4 ('host1/nic0'), and no path joins them" in mistake.text
    assert "form 4 networks without a switch in common" in mistake.text


def test_what_stays_on_its_rail_or_finds_rails_joined_runs(tmp_path: Path) -> None:
    prepared(tmp_path, ALL_TO_ALL.format("hierarchical"))
    prepared(tmp_path, ALL_TO_ALL.format("direct"), topology="rail-optimized")
    prepared(tmp_path, "traffic: {pattern: permutation, size: 10KB}")


def test_a_pattern_between_planes_that_nothing_joins_is_refused(tmp_path: Path) -> None:
    """Two planes, and hosts 2 and 3 are plugged in the wrong way round: a pattern uses the first port of each."""
    file = tmp_path / "mine.yaml"
    file.write_text(
        "schema: 3\nfabric: {topology: leaf-spine, leaves: 2, spines: 1, hosts_per_leaf: 2}\n"
        "transport: {congestion_control: none}\ntraffic: {pattern: all-to-all, size: 10KB}\n",
        encoding="utf-8",
    )
    scenario = read_scenario(file)
    prepare(scenario)
    with pytest.raises(ConfigError) as error:
        prepare(scenario, fabric=wired([(0, 4), (1, 4), (2, 5), (3, 5), (0, 5), (1, 5), (2, 4), (3, 4)], hosts=4))
    (mistake,) = error.value.mistakes
    assert (mistake.path, mistake.line) == ("traffic.pattern", 4)
    assert "rank 1 ('n1/nic0') sends to rank 2 ('n2/nic0'), and no path joins them" in mistake.text


BY_RAIL = '''"""A direct exchange, which may say that its messages change rails.

Source: none. Leaves out: nothing.
"""

from weftwork.workload.collectives.algorithm import Algorithm
from weftwork.workload.collectives.algorithms.direct import ALGORITHM as DIRECT

ALGORITHM = Algorithm(
    name="mine",
    operations=DIRECT.operations,
    traffic=DIRECT.traffic,
    chain=DIRECT.chain,
    source="none",
    FIELD
)
'''


@pytest.mark.parametrize(("field", "fix"), [("", "hierarchical"), ("changes_rails=True,", None)])
def test_an_algorithm_of_a_users_own_that_changes_rails_is_not_told_to(
    tmp_path: Path, field: str, fix: str | None
) -> None:
    (tmp_path / "mine.py").write_text(BY_RAIL.replace("FIELD", field), encoding="utf-8")
    with pytest.raises(ConfigError) as error:
        prepared(tmp_path, ALL_TO_ALL.format("./mine.py"))
    (mistake,) = error.value.mistakes
    assert (mistake.path, mistake.fix) == ("collective.algorithm", fix)
