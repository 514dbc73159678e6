"""What an answer says of faults, for whom the others waited, and of what goes inside servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from helpers.gallery import Gallery
from helpers.pages import simulated

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.report.answer import answer, details
from weftwork.report.words import amount

SCENARIO = """schema: 3
fabric: {topology: leaf-spine, hosts: 8, radix: 8, link_rate: 100Gbps}
transport: {congestion_control: none, timeout: 500us}
collective: {operation: broadcast, algorithm: ring, size: 256KiB, protocol: none}
"""


def test_faults_are_told_with_their_instants(gallery: Gallery) -> None:
    run = gallery.run(f"{SCENARIO}faults: [{{at: 1us, nic: host3, event: down, for: 2us, every: 10us, times: 2}}]\n")
    told = " ".join(answer(run))
    assert "Faults: host3 down at 1 us, host3 down ends at 3 us, host3 down at 11 us and 1 more." in told


ONE = "{at: 20us, link: leaf0-spine1, event: degrade, fraction: 0.05}"
SLIGHT = "{at: 1us, link: leaf1-spine0, event: degrade, fraction: 0.98}"


@pytest.mark.parametrize(
    ("faults", "below"),
    [
        (f"{ONE}", []),  # the third line says it
        (f"{SLIGHT}, {ONE}", ["leaf1-spine0 degrade at 1 us"]),
        (f"{ONE}, {{at: 25us, link: leaf0-spine1, event: lossy, loss: 0.001}}",  # the line says: and more
         ["leaf0-spine1 degrade at 20 us, leaf0-spine1 lossy at 25 us"]),
    ],
)  # fmt: skip
def test_a_fault_that_the_third_line_tells_is_not_told_again(gallery: Gallery, faults: str, below: list[str]) -> None:
    run = simulated(gallery, f"traffic: {{pattern: permutation, size: 1MB}}\nfaults: [{faults}]")
    assert run.answer is not None
    assert (run.answer.culprit.name, run.answer.culprit.key is not None) == ("leaf0-spine1", True)
    told = [text for text in details(run) if text.startswith("Faults: ")]
    assert told == [f"Faults: {text}." for text in below]


def test_a_fault_after_which_something_else_cost_most_is_not_told_again(gallery: Gallery) -> None:
    run = gallery("link-down")
    assert run.answer is not None
    culprit = run.answer.culprit
    assert (culprit.name, ", after leaf0-spine1 is down" in culprit.text) == ("timeout", True)
    assert not any(text.startswith("Faults: ") for text in details(run))


def test_the_rank_that_all_waited_for_is_named(gallery: Gallery) -> None:
    run = gallery.run(SCENARIO)  # a broadcast along a chain: the last rank has its data last
    row = run.table("collectives").to_pylist()[0]
    assert row["last_rank"] in {6, 7}  # the last of the chain, or the one whose last send it acknowledges
    assert f"Rank {row['last_rank']} had its result last" in " ".join(answer(run))


def test_a_barrier_has_a_time_and_no_payload(gallery: Gallery) -> None:
    run = gallery.run(
        "{schema: 3, fabric: {topology: rail-optimized, hosts: 2, node: dgx-h100, radix: 64},"
        " collective: {operation: barrier}}"
    )
    assert (run.value("collective_duration_ps") or 0) > 0
    assert run.value("jain_index") is None  # of no goodput
    told = answer(run)
    duration = amount(run.value("collective_duration_ps"), "ps")
    assert told[0] == f"Took {duration}."  # without a bandwidth
    assert (run.value("flows"), run.value("flows_completed")) == (240, 240)
    assert not any("payload" in text for text in told)
    assert not any("by message" in text for text in told)


def test_servers_without_nvlink_are_told_by_their_pcie(gallery: Gallery) -> None:
    run = gallery.run(
        "{schema: 3, fabric: {topology: leaf-spine, hosts: 2, radix: 8, node: {gpus: 4}},"
        " collective: {operation: all-reduce, size: 64KiB}}"
    )
    told = next(text for text in answer(run) if "by message" in text)
    assert "inside servers by PCIe, by message. The busiest PCIe port was in use " in told
    assert "NVLink" not in told


def test_rails_that_nothing_joins_are_refused_before_a_run(tmp_path: Path) -> None:
    file = tmp_path / "apart.yaml"
    file.write_text(
        "{schema: 3, fabric: {topology: rail-only, hosts: 2, node: dgx-h100, radix: 64},"
        " transport: {timeout: 10us, retry_limit: 0}, collective: {operation: all-to-all, size: 4KiB}}"
    )  # direct: GPU 0 speaks to GPU 1 of the other server, on another rail
    with pytest.raises(ConfigError, match="and no path joins them"):
        weftwork.run(file, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()
