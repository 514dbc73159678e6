"""Dual-homed servers in a run: who hangs on two leaves outlives one of them, and who does not is cut off."""

from __future__ import annotations

from pathlib import Path

import pytest

import weftwork

SCENARIO = """schema: 3
fabric:
  topology: leaf-spine
  hosts: 8
  radix: 8
  node: {{nic_ports: 2}}
  dual_homed: {dual_homed}
  failover_delay: {delay}
traffic: {{pattern: permutation, size: 256KiB}}
engine: {{fidelity: {fidelity}}}
faults: [{{at: 5us, switch: leaf0, event: down}}]
"""


def run(folder: Path, *, fidelity: str = "packet", dual_homed: bool = True, delay: str = "50us") -> weftwork.Run:
    file = folder / f"{fidelity}-{dual_homed}-{delay}.yaml"
    text = SCENARIO.format(fidelity=fidelity, dual_homed=str(dual_homed).lower(), delay=delay)
    file.write_text(text, encoding="utf-8")
    return weftwork.run(file, out=folder / file.stem)


@pytest.mark.parametrize("fidelity", ["packet", "reference"])
def test_all_flows_arrive_by_the_other_leaf(tmp_path: Path, fidelity: str) -> None:
    found = run(tmp_path, fidelity=fidelity)
    assert found.is_complete
    assert found.query("select count(*) from flows where fct_ps is null").to_pylist()[0]["count_star()"] == 0


def test_a_slower_failover_takes_longer(tmp_path: Path) -> None:
    last = "select max(fct_ps) as last from flows"
    soon, late = (run(tmp_path, delay=delay).query(last).to_pylist()[0]["last"] for delay in ("50us", "200us"))
    assert late - soon > 100_000_000


def test_servers_with_one_leaf_are_cut_off(tmp_path: Path) -> None:
    assert not run(tmp_path, dual_homed=False).is_complete
