"""Random scenario files, from the file to the run folder: a clear ConfigError, or a run that obeys the laws.

The laws are read from the folder, as a user would: nothing arrives that was not sent, nothing is faster than the wire,
what is lost is counted, nobody pauses without flow control, and both engines give the same digest.
Leaves out: files that are no scenario at all (`test_scenario_fuzz.py`), and plans that no scenario can express
(`test_engines_agree.py`).
"""

import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from zlib import crc32

import numpy as np
import pytest
import yaml
from helpers.cases import Saw, case_count
from hypothesis import given, settings
from hypothesis import strategies as st
from laws.test_scenario_fuzz import section_of

from weftwork.base.errors import ConfigError
from weftwork.store.runs import Run
from weftwork.study.record.run import run_scenario
from weftwork.study.run.execute import Progress

EXAMPLES = case_count(plain=25, deep=100)
PATIENCE_S = 120  # the slowest of thousands took two; a machine may be busy
SMALL_HOPS = 20_000  # up to here the reference runs too

sizes = st.sampled_from(["1B", "4KiB", "4097B", "20KB", "60KB", "300KB"])
# What makes a run eventful; every key is also drawn at large, with any value that may fit.
eventful_switches = st.fixed_dictionaries(
    {},
    optional={
        "buffer": st.sampled_from(["1MB", "2MB"]),
        "reserve": st.sampled_from(["0B", "1KB", "5KB"]),
        "headroom": st.sampled_from(["0B", "10KB", "60KB"]),
        "alpha": st.sampled_from([0.001, 0.01]),
        "pause_quanta": st.sampled_from([1, 10, 1000, 65_535]),
        "xon_offset": st.sampled_from(["0B", "8KB", "1MB"]),
        "egress_alpha": st.sampled_from([0.01, 0.1]),
        "ecn": st.just({"kmin": "5KB", "kmax": "50KB", "pmax": 0.5}),
    },
)
eventful_fabrics = st.fixed_dictionaries(
    {
        "topology": st.just("leaf-spine"),
        "leaves": st.integers(2, 3),
        "spines": st.integers(1, 3),
        "hosts_per_leaf": st.integers(2, 3),
    },
    optional={
        "link_rate": st.sampled_from(["400Gbps", "100Gbps", "1Gbps"]),
        "fabric_rate": st.sampled_from(["400Gbps", "100Gbps", "33Gbps"]),
        "link_delay": st.sampled_from(["1ns", "500ns", "1us", "50us"]),
        "loss": st.sampled_from([0.001, 0.1]),
        "corruption": st.sampled_from([0.001, 0.1]),
        "reconvergence_delay": st.sampled_from(["0ps", "5us"]),
        "switch": eventful_switches,
        "nic": st.sampled_from(
            [
                {"pcie_rate": "50Gbps"},
                {"pcie_rate": "20Gbps", "receive_buffer": "50KB", "xoff": "20KB", "xon": "10KB", "pause_quanta": 50},
            ]
        ),
    },
)
eventful_transports = st.fixed_dictionaries(
    {"force": st.just(value=True)},
    optional={
        "congestion_control": st.sampled_from(
            ["dcqcn", "fixed-window", "none", {"name": "dcqcn", "cnp_interval_ps": 0}]
        ),
        "load_balancing": st.sampled_from(["ecmp", "spray", "switch-spray", "least-loaded"]),
        "flow_control": st.sampled_from(["pfc", "none"]),
        "recovery": st.sampled_from(["go-back-n", "timeout"]),
        "timeout": st.sampled_from(["2us", "50us"]),
        "retry_limit": st.integers(0, 7),
        "reply_entropy": st.sampled_from(["own", "echoed"]),
        "ack_every": st.sampled_from([1, 4, 1000]),
        "mtu": st.sampled_from([256, 1024, 4096]),
        "reorder_tolerant": st.booleans(),
        "end_to_end_credits": st.sampled_from([0, 1, 5]),
        "queue_pairs": st.sampled_from([1, 3]),
        "control_priority": st.sampled_from([3, 6]),
    },
)
likely_fabrics = st.one_of(
    section_of("fabric", {"topology": st.just("fat-tree"), "radix": st.just(4), "tiers": st.sampled_from([2, 3])}),
    section_of(
        "fabric",
        {
            "topology": st.just("leaf-spine"),
            "leaves": st.integers(1, 3),
            "spines": st.integers(1, 3),
            "hosts_per_leaf": st.integers(2, 3),
        },
    ),
    eventful_fabrics,
    eventful_fabrics,
)
likely_workloads = st.one_of(
    *(
        st.fixed_dictionaries({"traffic": section_of("traffic", {"pattern": st.just(pattern), "size": sizes})})
        for pattern in ("permutation", "incast", "all-to-all")
    ),
    st.fixed_dictionaries({"traffic": section_of("traffic", {"pattern": st.just("poisson"), "flows": st.just(8)})}),
    st.fixed_dictionaries(
        {
            "collective": section_of(
                "collective", {"size": sizes, "channels": st.integers(1, 2), "repeat": st.integers(1, 2)}
            )
        }
    ),
)
names = st.sampled_from(["host0-leaf0", "leaf0-spine0", "leaf1-spine0", "leaf0-agg0", "agg0-core0", "no-such"])
switches = st.sampled_from(["leaf0", "spine0", "agg1", "core0"])
instants = st.sampled_from(["0ps", "1us", "3.3us", "20us", "1ms"])
faults = st.lists(
    st.one_of(
        st.fixed_dictionaries({"at": instants, "link": names, "event": st.sampled_from(["down", "up"])}),
        st.fixed_dictionaries({"at": instants, "switch": switches, "event": st.sampled_from(["down", "up"])}),
        st.fixed_dictionaries(
            {"at": instants, "link": names, "event": st.just("degrade"), "fraction": st.sampled_from([0.01, 0.5, 1])}
        ),
    ),
    max_size=3,
)
scenarios = st.builds(
    lambda fabric, workload, rest: {"schema": 3, "name": "fuzz", "fabric": fabric, **workload, **rest},
    likely_fabrics,
    likely_workloads,
    st.fixed_dictionaries(
        {
            "engine": section_of("engine", {"fidelity": st.just("packet"), "until": st.sampled_from(["20us", "5ms"])})
            | st.just({"fidelity": "packet"})  # to the end, which has to come
        },
        optional={
            "transport": section_of("transport", {"force": st.just(value=True)}) | eventful_transports,
            "faults": faults,
        },
    ),
)


def patience() -> Callable[[Progress], None]:
    """Fail where a run goes on and on; a real hang inside the engine ends at the time limit of a test."""
    begin_s = time.monotonic()

    def told(now: Progress) -> None:
        assert time.monotonic() - begin_s < PATIENCE_S, f"still running at {now.simulated_ps:,} ps"

    return told


def worlds_of(path: Path) -> Literal["auto", "none"]:
    """Every fourth scenario asks for other worlds too, which take as long as the run itself each."""
    return "none" if crc32(path.read_bytes()) % 4 else "auto"


def run_or_refuse(tree: dict[str, Any], folder: Path) -> Run | None:
    folder.mkdir()
    path = folder / "fuzz.yaml"
    path.write_text(yaml.dump(tree), encoding="utf-8")
    try:
        return run_scenario(path, out=folder / "run", what_if=worlds_of(path), progress=patience())
    except ConfigError as error:
        refused = error
    assert refused.mistakes
    text = str(refused)
    text.encode("utf-8")
    assert refused.source == str(path)
    assert all(mistake.path and mistake.text for mistake in refused.mistakes)
    # a default that does not go together with the rest has no line where the file has not even its section
    stands = {mistake.path: mistake.path.partition(".")[0] in tree for mistake in refused.mistakes}
    lineless = [mistake for mistake in refused.mistakes if mistake.line is None and stands[mistake.path]]
    assert all(mistake.path.startswith("job.") for mistake in lineless), text
    assert not (folder / "run").exists()
    return None


def column(table: Any, name: str) -> Any:
    return table[name].to_numpy(zero_copy_only=False)


def check_laws(run: Run, tree: dict[str, Any]) -> None:
    flows, links = run.flows, run.links
    value: dict[str, Any] = {name: number["value"] for name, number in run.summary.items()}
    assert run.status in {"complete", "stopped", "stuck", "gave-up"}
    assert (run.status == "gave-up") == (run.status != "complete" and value["queue_pair_errors"] > 0)
    # time: nothing comes before it was sent, or faster than its wire, or faster than on an empty fabric
    start, delivered, acked = (column(flows, name) for name in ("start_ps", "delivered_ps", "acked_ps"))
    fct, ideal = column(flows, "fct_ps"), column(flows, "ideal_fct_ps")
    done = ~np.isnan(delivered.astype(float))
    assert (start >= 0).all()
    assert (fct[done] == delivered[done] - start[done]).all()
    size = column(flows, "size_bytes")
    fastest_bps = float(column(links, "rate_bps").max())
    assert (fct[done] >= size[done] * (8e12 / fastest_bps) - 1).all()
    known = done & ~np.isnan(ideal.astype(float))
    if not tree.get("faults"):  # a flow that moves drains over two paths at once
        assert (fct[known] >= ideal[known]).all()
    was_acked = ~np.isnan(acked.astype(float))
    assert done[was_acked].all()
    assert (acked[was_acked] > delivered[was_acked]).all()
    # bytes: what was delivered went out, over hosts' links and no faster than they are
    assert value["payload_bytes"] == int(size[done].sum())
    from_hosts = np.array([name.startswith("host") for name in links["name"].to_pylist()])
    assert int(column(links, "bytes")[from_hosts].sum()) >= value["payload_bytes"]
    utilisation = column(links, "utilisation")
    if run.status == "complete":
        assert (utilisation <= 1 + 1e-9).all()
    # counters: every loss has a port and a reason, every packet a cause
    reasons = [name for name in value if name.startswith("drop_")]
    assert value["drops"] == sum(value[name] for name in reasons) == int(column(links, "drops").sum())
    assert value["packet_hops"] <= int(column(links, "frames").sum())
    assert 0 <= value["retransmissions"] <= value["data_sent"]
    assert value["flows_completed"] == int(done.sum()) <= value["flows"]
    if tree.get("transport", {}).get("flow_control") == "none":
        assert value["pauses"] == value["paused_ps"] == value["drop_headroom_full"] == 0
    if run.status == "complete" and "faults" not in tree:
        assert value["flows_completed"] == value["flows"]


def test_a_clear_error_or_a_run_that_obeys_the_laws(tmp_path_factory: pytest.TempPathFactory, saw: Saw) -> None:
    seen: Counter[str] = Counter()
    drawn = 0

    @settings(max_examples=EXAMPLES)
    @given(tree=scenarios)
    def fuzz(tree: dict[str, Any]) -> None:
        nonlocal drawn
        drawn += 1
        folder = tmp_path_factory.mktemp("fuzz")
        run = run_or_refuse(tree, folder / "packet")
        seen["refused" if run is None else run.status] += 1
        if run is None:
            return
        check_laws(run, tree)
        seen["lost packets"] += bool(run.value("drops"))
        seen["paused"] += bool(run.value("pauses"))
        if (run.value("packet_hops") or 0) <= SMALL_HOPS:
            engine = {key: value for key, value in tree["engine"].items() if key != "record"}  # has no mirror
            again = run_or_refuse({**tree, "engine": {**engine, "fidelity": "reference"}}, folder / "reference")
            assert again is not None
            assert again.provenance["digest"] == run.provenance["digest"]
            seen["run twice"] += 1

    fuzz()
    saw(drawn, ", ".join(f"{count} {what}" for what, count in sorted(seen.items())))
    assert seen["refused"] >= EXAMPLES // 12
    assert seen["complete"] >= EXAMPLES // 10
    assert seen["run twice"] >= EXAMPLES // 10
