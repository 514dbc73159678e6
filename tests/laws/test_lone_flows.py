"""A lone flow takes as long as alone: whatever path its routing gives it, the slowdown is 1, and never below."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from helpers.cases import case_count
from hypothesis import given, settings
from hypothesis import strategies as st

import weftwork
from weftwork.study.prepare.prepare import prepare
from weftwork.study.record.road import execute, results

RATES = ("25Gbps", "100Gbps", "400Gbps")
DELAYS = ("1us", "7us", "500us")


@st.composite
def uneven_fabrics(draw: st.DrawFn) -> dict[str, object]:
    """Two leaves that are joined by spines whose links differ in rate and delay."""
    spines = draw(st.integers(1, 4))
    links = [{"source": f"h{end}", "target": f"leaf{end}", "rate": "100Gbps", "delay": "1us"} for end in (0, 1)]
    for spine in range(spines):
        rate, delay = draw(st.sampled_from(RATES)), draw(st.sampled_from(DELAYS))
        links += [{"source": f"leaf{end}", "target": f"spine{spine}", "rate": rate, "delay": delay} for end in (0, 1)]
    nodes = [{"id": f"h{end}", "kind": "host"} for end in (0, 1)]
    nodes += [{"id": f"leaf{end}", "kind": "switch", "tier": 1} for end in (0, 1)]
    nodes += [{"id": f"spine{spine}", "kind": "switch", "tier": 2} for spine in range(spines)]
    return {"name": "uneven", "nodes": nodes, "links": links}


@pytest.mark.parametrize("fidelity", ["packet", "flow", "reference"])
@settings(max_examples=case_count(plain=6, deep=60))
@given(fabric=uneven_fabrics(), seed=st.integers(0, 50), size_bytes=st.sampled_from([1, 4096, 70_000, 300_000]))
def test_a_lone_flow_is_as_fast_as_alone(
    fidelity: str, fabric: dict[str, object], seed: int, size_bytes: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder: Path = tmp_path_factory.mktemp("lone")
    (folder / "fabric.json").write_text(json.dumps(fabric), encoding="utf-8")
    scenario = weftwork.read_scenario(
        {
            "schema": 3,
            "fabric": {"file": str(folder / "fabric.json")},
            "transport": {"congestion_control": "none", "flow_control": "none"},
            "traffic": {"pattern": "incast", "senders": 1, "receiver": 1, "size": f"{size_bytes}B"},
            "engine": {"fidelity": fidelity, "seed": seed},
        }
    )
    prepared = prepare(scenario)
    slowdown = results(prepared, execute(prepared, what_if="none")).summary["slowdown_max"].value
    is_uneven = len({(link["rate"], link["delay"]) for link in fabric["links"][2:]}) > 1  # type: ignore[index]
    if fidelity == "reference" and is_uneven:
        assert slowdown is None  # it records no paths, and says no time alone
    else:
        assert slowdown == pytest.approx(1.0, rel=1e-6 if fidelity != "flow" else 1e-3)
