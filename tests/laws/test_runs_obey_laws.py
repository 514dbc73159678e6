"""Random scenarios, from text to run folder: a clear error, or a run that obeys the laws; never anything else.

Laws: what is said of a run holds of its tables (`helpers.answer_laws`), what is delivered was posted, no link carries
more than its rate, no flow beats its ideal time, nothing is lost under PFC on perfect links, and nothing is sent twice
where nothing was lost or reordered.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

from helpers.answer_laws import answer_holds
from helpers.cases import case_count
from hypothesis import event, given, settings
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.spec.scenario.scenario import loads
from weftwork.store.runs import Run
from weftwork.study.answer.worlds import Extent
from weftwork.study.prepare.prepare import check_parameters, known_names
from weftwork.study.record.run import run_scenario

FABRICS = st.one_of(
    st.builds(
        "topology: fat-tree, tiers: {}, radix: {}".format, st.sampled_from([2, 3]), st.sampled_from([2, 4])
    ),
    st.builds(
        "topology: leaf-spine, leaves: {}, spines: {}, hosts_per_leaf: {}, links_per_pair: {}".format,
        st.integers(1, 3), st.integers(1, 3), st.integers(1, 4), st.integers(1, 2),
    ),
)  # fmt: skip
SWITCHES = st.builds(
    "alpha: {}, buffer: {}, reserve: {}, xon_offset: {}, ecn: {{kmin: {}, kmax: 200KB, pmax: {}}}".format,
    st.sampled_from([0.01, 0.125, 1, 8]), st.sampled_from(["300KB", "1MB", "16MB"]), st.sampled_from(["0B", "4KiB"]),
    st.sampled_from(["0B", "8KB"]), st.sampled_from(["0B", "20KB"]), st.sampled_from([0, 0.5, 1]),
)  # fmt: skip
TRANSPORTS = st.builds(
    "congestion_control: {}, load_balancing: {}, reorder_tolerant: {}, mtu: {}, ack_every: {}, queue_pairs: {},"
    " flow_control: {}, recovery: {}, timeout: 200us".format,
    st.sampled_from(["dcqcn", "fixed-window", "none"]), st.sampled_from(["ecmp", "spray", "least-loaded"]),
    st.sampled_from(["true", "false"]), st.sampled_from([256, 1024, 4096]), st.sampled_from([1, 4]),
    st.sampled_from([1, 3]), st.sampled_from(["pfc", "none"]),
    st.sampled_from(["go-back-n", "timeout", "selective-repeat", "selective-repeat"]),
)  # fmt: skip
SIZES = st.sampled_from(["1B", "4096B", "5000B", "60KB"])
WORKLOADS = st.one_of(
    st.builds(
        "traffic: {{pattern: {}, size: {}, repeat: {}, start_jitter: {}}}".format,
        st.sampled_from(["permutation", "incast", "all-to-all"]), SIZES, st.integers(1, 3),
        st.sampled_from(["0ps", "3us"]),
    ),
    st.builds(
        "traffic: {{pattern: poisson, sizes: facebook-hadoop, flows: {}, load: {}}}".format,
        st.integers(1, 20), st.sampled_from([0.1, 0.9]),
    ),
    st.builds(
        "collective: {{size: {}, channels: {}, repeat: {}}}".format,
        st.sampled_from(["100B", "50KB", "1MB"]), st.integers(1, 3), st.integers(1, 2),
    ),
)  # fmt: skip
LINKS = st.builds(
    "link_rate: {}, fabric_rate: {}, cable_length: {}, loss: {}".format,
    st.sampled_from(["25Gbps", "400Gbps"]), st.sampled_from(["100Gbps", "400Gbps"]),
    st.sampled_from(["1m", "300m", "20km"]), st.sampled_from([0, 0, 0.01]),
)  # fmt: skip


@given(fabric=FABRICS, links=LINKS, switch=SWITCHES, transport=TRANSPORTS, workload=WORKLOADS, seed=st.integers(0, 99))
@settings(max_examples=case_count(plain=40, deep=200))
def test_a_scenario_is_refused_or_obeys_the_laws(
    fabric: str, links: str, switch: str, transport: str, workload: str, seed: int
) -> None:
    text = (
        f"schema: 3\nfabric: {{{fabric}, {links}, switch: {{{switch}}}}}\ntransport: {{{transport}}}\n{workload}\n"
        f"engine: {{seed: {seed}, until: 100ms}}\n"
    )
    with tempfile.TemporaryDirectory() as folder:
        found = attempt(text, Path(folder) / "run", what_if="auto" if seed % 4 == 0 else "none")
        if isinstance(found, ConfigError):
            event("refused")
            assert found.mistakes
            assert all(mistake.text for mistake in found.mistakes)
            return
        event(found.status)
        event(f"to blame: {found.answer.culprit.kind}")
        answer_holds(found)
        obeys_the_laws(
            found,
            is_perfect="loss: 0," in f"{links},",
            is_lossless="flow_control: pfc" in transport,
        )


def attempt(text: str, folder: Path, *, what_if: Extent = "none") -> Run | ConfigError:
    try:
        return run_scenario(
            loads(text, known=known_names(), check_parameters=check_parameters), out=folder, what_if=what_if
        )
    except ConfigError as error:
        return error


def obeys_the_laws(run: Run, *, is_perfect: bool, is_lossless: bool) -> None:
    """Assert what holds for every run on a fabric whose equal paths are equally fast."""
    flows = run.flows.to_pylist()
    delivered = [flow for flow in flows if flow["delivered_ps"] is not None]
    assert run.value("payload_bytes") == sum(flow["size_bytes"] for flow in delivered)
    for flow in delivered:
        assert flow["ideal_fct_ps"] > 0
        assert flow["fct_ps"] >= flow["ideal_fct_ps"]
    assert all(flow["delivered_ps"] is not None for flow in flows if flow["acked_ps"] is not None)
    assert all(0 <= link["utilisation"] <= 1 for link in run.links.to_pylist())
    if is_perfect and is_lossless:
        assert run.value("drops") == 0
        assert run.is_complete
    if run.value("drops") == 0 and run.value("timeouts") == 0 and run.value("naks_sent") == 0:
        assert run.value("retransmissions") == 0
