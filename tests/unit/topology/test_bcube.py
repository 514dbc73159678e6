"""BCube: counts, distances in host hops, disjoint paths, sizes that do not fit, and runs that are refused.

Source: Guo et al., BCube, SIGCOMM 2009, doi:10.1145/1592568.1592577.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from helpers.command import command_of
from helpers.fabric_sizes import size_before, size_of
from hypothesis import given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.export import export
from weftwork.topology.from_file import read_fabric
from weftwork.topology.host_hops import host_hops
from weftwork.topology.measures import bisection


def bcube(levels: int, **keys: Any) -> Fabric:
    return fabric_of(topology="bcube", node={"nic_ports": levels}, link_rate_bps=100_000_000_000, **keys)


def refusal(levels: int, **keys: Any) -> str:
    with pytest.raises(ConfigError) as wrong:
        bcube(levels, **keys)
    return str(wrong.value)


@pytest.mark.parametrize(("n", "levels"), [(2, 1), (4, 2), (8, 2), (2, 5), (3, 4), (4, 3)])
def test_counts_and_distances(n: int, levels: int) -> None:
    """n^L servers, L n^(L-1) switches, L n^L links; C(L, d) (n - 1)^d servers are d host hops away."""
    fabric = bcube(levels, hosts_per_switch=n)
    assert size_of(fabric) == size_before(topology="bcube", hosts_per_switch=n, node={"nic_ports": levels})
    assert (len(fabric.hosts), len(fabric.node_names)) == (n**levels, n**levels + levels * n ** (levels - 1))
    assert len(fabric.links) == levels * n**levels
    found = host_hops(fabric)
    assert found.sources == n**levels
    assert found.pairs == tuple(n**levels * comb(levels, d) * (n - 1) ** d for d in range(1, levels + 1))
    assert found.diameter == levels
    assert found.disjoint_min == found.disjoint_max == levels
    assert found.pairs_counted == comb(min(8, n**levels), 2)


@given(n=st.integers(2, 5), levels=st.integers(1, 4), data=st.data())
def test_a_switch_joins_servers_that_differ_in_its_digit(n: int, levels: int, data: st.DataObject) -> None:
    hosts = data.draw(st.integers(2, min(n**levels, 80)))
    keys = {"hosts_per_switch": n, "hosts": hosts}
    fabric = bcube(levels, **keys)
    assert size_of(fabric) == size_before(topology="bcube", node={"nic_ports": levels}, **keys)
    assert fabric.direct is not None
    digits = fabric.direct.coordinates[:hosts]
    assert (digits @ n ** np.arange(levels) == np.arange(hosts)).all()
    level = fabric.node_tier[fabric.links["b"]] - 1
    assert (level.reshape(hosts, levels) == np.arange(levels)).all()  # NIC port i is on level i
    on_switch: dict[int, list[int]] = {}
    for host, switch in fabric.links[["a", "b"]].tolist():
        on_switch.setdefault(switch, []).append(host)
    for switch, members in on_switch.items():
        digit = int(fabric.node_tier[switch]) - 1
        for one, other in combinations(members, 2):
            assert np.flatnonzero(digits[one] != digits[other]).tolist() == [digit]
    together = sum(len(members) * (len(members) - 1) // 2 for members in on_switch.values())
    apart = [(digits[one] != digits[other]).sum() for one, other in combinations(range(hosts), 2)]
    assert together == apart.count(1)
    found = host_hops(fabric)
    assert found.pairs[0] == 2 * together
    assert found.diameter <= levels


def test_servers_forward_across_the_middle() -> None:
    """Halves by digit 0: n/2 of the n links of each switch of level 0 cross, whatever forwards."""
    fabric = bcube(2, hosts_per_switch=4)
    found = bisection(fabric)
    assert (found.rate_bps, found.hosts_bps) == (800_000_000_000, 1_600_000_000_000)
    some = bcube(2, hosts_per_switch=4, hosts=6)  # servers 0, 1, 2 and 3, 4, 5: 3 meets 0 to 2 on level 0
    forwarded = bisection(some).rate_bps
    assert fabric.hosts_forward
    # 0-4 and 1-5 over level 1, and 2 to 3 over level 0; no server of a half has a further link to the other half
    assert forwarded == 300_000_000_000


@pytest.mark.parametrize("suffix", [".json", ".graphml"])
def test_files_keep_that_servers_forward(tmp_path: Path, suffix: str) -> None:
    fabric = bcube(2, hosts_per_switch=3)
    export(fabric, tmp_path / f"bcube{suffix}")
    again = read_fabric(tmp_path / f"bcube{suffix}")
    assert again.hosts_forward
    assert again.direct is not None
    assert fabric.direct is not None
    assert (again.direct.coordinates == fabric.direct.coordinates).all()
    assert host_hops(again) == host_hops(fabric)


@pytest.mark.parametrize(
    ("levels", "keys", "told"),
    [
        (2, {}, "missing: give hosts_per_switch, or radix, or hosts"),
        (2, {"hosts_per_switch": 9, "radix": 8}, "found 8 ports, but a switch needs 9: one for each of its servers"),
        (
            2,
            {"hosts_per_switch": 4, "hosts": 17},
            "found 17, wanted at most 16: 4 servers on a switch, to the power of 2",
        ),
        (8, {"hosts_per_switch": 64}, "makes 281,474,976,710,656 servers: 64 to the power of the 8 NIC ports"),
        (2, {"hosts": 65, "radix": 8}, "found 8 ports, but a switch needs 9"),
        (2, {"switch": {"model": "plain", "radix": 4}, "hosts": 17}, "found 4 ports, but a switch needs 5"),
    ],
)
def test_sizes_that_do_not_fit_are_refused(levels: int, keys: dict[str, Any], told: str) -> None:
    assert told in refusal(levels, **keys)


def test_hosts_or_ports_choose_the_size() -> None:
    assert len(bcube(2, radix=6).hosts) == 36
    assert len(bcube(3, switch={"model": "plain", "radix": 4}).hosts) == 64
    some = bcube(2, hosts=10)
    assert some.name == "bcube, 2 levels of switches with 4 servers each"
    assert len(some.node_names) - 10 == 3 + 4


JOBS = {
    "collective": "collective: {operation: all-reduce, size: 1MiB}",
    "traffic": "traffic: {pattern: permutation, size: 1MiB}",
    "training": "training: {model: llama-3-8b, gpu: h100, tensor: 8, global_batch: 64, sequence: 4096}",
}


@pytest.mark.parametrize("fidelity", ["packet", "flow"])
@pytest.mark.parametrize("job", JOBS)
def test_a_run_is_refused_with_the_reason(
    job: str, fidelity: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    weftwork = command_of(capsys)
    keys = "hosts: 8, node: {gpus: 8, nic_ports: 2}, link_rate: 400Gbps"
    text = f"schema: 3\nfabric: {{topology: bcube, {keys}}}\n{JOBS[job]}\nengine: {{fidelity: {fidelity}}}\n"
    (tmp_path / "run.yaml").write_text(text, encoding="utf-8")
    for command in ("run", "plan") if job == "training" else ("run",):
        done = weftwork(command, "run.yaml")
        assert done.code == 2
        assert "line 2  fabric.topology" in done.err
        assert "servers do not forward in the engines" in done.err
    assert [path.name for path in tmp_path.iterdir()] == ["run.yaml"]


def test_the_commands_that_need_no_run_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    weftwork = command_of(capsys)
    text = "schema: 3\nfabric: {topology: bcube, hosts_per_switch: 4, radix: 8, link_rate: 100Gbps}\n"
    (tmp_path / "bcube.yaml").write_text(text, encoding="utf-8")
    (tmp_path / "job.yaml").write_text(text + JOBS["collective"], encoding="utf-8")
    shown = weftwork("topology", "job.yaml", "--picture", "bcube.svg").out
    assert "2 host hops; hosts in between forward" in shown
    assert "2 between two hosts (28 pairs counted)" in shown
    assert "No engine simulates hosts that forward" in shown
    assert "switch7" in (tmp_path / "bcube.svg").read_text(encoding="utf-8")
    limits = weftwork("topology", "job.yaml", "--limits").out
    assert "end this fabric: 64 servers, 64 GPUs. It has 16 (25.0%)." in limits
    assert weftwork("cost", "job.yaml").code == 0
    lost = weftwork("topology", "job.yaml", "--without", "host0")
    assert lost.code == 2
    assert "losses are judged by paths over switches alone" in lost.err
    timed = weftwork("collective", "all-reduce", "--fabric", "bcube.yaml")
    assert timed.code == 2
    assert "servers do not forward in the engines" in timed.err
