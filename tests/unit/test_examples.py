"""The examples answer what their READMEs say: each is run, and its numbers, table and figure are held to the files."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/answer.py"))


@pytest.fixture(scope="module", autouse=True)
def _root_on_the_path() -> Iterator[None]:
    """As `python -m examples.NAME.answer` has it in the root of the repository."""
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


def answer(name: str) -> ModuleType:
    return importlib.import_module(f"examples.{name}.answer")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_and_draws_what_its_readme_shows(name: str) -> None:
    module, readme = answer(name), (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    measured = module.measure()
    assert f"```text\n{module.report(measured)}\n```" in readme
    assert f"python -m examples.{name}.answer\n" in readme
    assert module.figure(measured) == (EXAMPLES / name / "figure.svg").read_text(encoding="utf-8")
    NUMBERS[name]({case.name: case for case in measured})


@pytest.mark.parametrize("name", NAMES)
def test_every_example_is_on_the_pages(name: str) -> None:
    assert f"({name}/README.md)" in (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert f"../examples/{name}/README.md" in (ROOT / "docs/examples.md").read_text(encoding="utf-8")
    assert (EXAMPLES / name / "figure.svg").stat().st_size < 150_000


def _of_pfc_victim(cases: dict) -> None:
    alone_us = cases["alone"].victim_us
    paused = cases["PFC, no congestion control"]
    assert paused.victim_us / alone_us == pytest.approx(9.4, abs=0.05)
    assert paused.pauses > 0
    assert paused.drops == 0
    # 15 messages of 4 MiB through one port of 400 Gb/s, headers left out: nobody can do the incast faster
    assert paused.incast_us > 15 * 4 * 2**20 * 8 / 400e9 * 1e6
    assert cases["PFC, window of one BDP"].pauses == 0
    dropped = cases["no PFC: packets are dropped"]
    assert dropped.pauses == 0
    assert dropped.drops > 0
    assert dropped.victim_us < paused.victim_us


def _of_ecmp_large_flows(cases: dict) -> None:
    ecmp, sprayed = cases["ECMP, one hash everywhere"], cases["sprayed by the switches"]
    assert ecmp.completion_us / ecmp.ideal_us == pytest.approx(7.4, abs=0.1)
    assert sprayed.high_us < cases["sprayed by the NIC, ingress port too"].low_us
    assert cases["ECMP, ingress port hashed too"].high_us < ecmp.low_us
    assert all(case.low_us > case.ideal_us for case in cases.values())


def _of_link_dies(cases: dict) -> None:
    least_ms = cases["nothing happens"].took_ms
    # 2 x 15 steps of 4 MiB at 400 Gb/s, headers left out
    assert least_ms > 30 * 4 * 2**20 * 8 / 400e9 * 1e3
    assert cases["dies, timeout 4 ms"].took_ms - least_ms == pytest.approx(4.0, abs=0.01)
    assert cases["dies, timeout 67 ms (the default)"].took_ms - least_ms == pytest.approx(67.11, abs=0.01)
    assert cases["the only NIC port of a host dies"].took_ms == float("inf")
    two_ms = cases["two NIC ports on two leaves, nothing happens"].took_ms
    assert cases["two NIC ports, one dies, queues move after 1 ms"].took_ms - two_ms == pytest.approx(1.0, abs=0.01)
    assert cases["two NIC ports, one dies, queues move after 0.1 ms"].took_ms > two_ms + 0.1
    assert cases["falls to 100 Gb/s and stays"].lost == 0
    assert cases["falls to 100 Gb/s and stays"].took_ms > cases["dies, timeout 4 ms"].took_ms
    assert cases["loses one in 1,000, selective repeat"].again < cases["loses one packet in 1,000"].again


def _of_all_reduce_64(cases: dict) -> None:
    hierarchical = cases["hierarchical, NVLS"]
    assert hierarchical.took_ms[1024] == pytest.approx(5.5, abs=0.05)
    # each rail carries 2 x 7/8 of an eighth of the bytes at 400 Gb/s, headers left out
    assert hierarchical.took_ms[1024] > 2 * 7 / 8 * 2**30 / 8 * 8 / 400e9 * 1e3
    assert min(cases, key=lambda name: cases[name].took_ms[1]) == "direct"
    assert min(list(cases)[:3], key=lambda name: cases[name].took_ms[16]) == "double binary tree"
    # a GPU sends seven eighths of what a ring passes on by NVLink, at 68.4 % of 450 GB/s
    assert cases["ring"].bus[1024] < 0.684 * 450 * 8 / 7


def _of_oversubscription(cases: dict) -> None:
    costs = {name: case.took_ms[4] / case.took_ms[1] for name, case in cases.items()}
    assert costs["all-to-all, direct"] == pytest.approx(3.66, abs=0.01)
    assert costs["all-reduce, packed"] == pytest.approx(1.0, abs=0.02)
    assert costs["all-reduce, packed"] < costs["all-to-all, rail by rail"] < costs["all-to-all, direct"]
    # a quarter of the uplinks never costs more than four times
    assert max(costs.values()) <= 4


NUMBERS = {
    "all_reduce_64": _of_all_reduce_64,
    "oversubscription": _of_oversubscription,
    "pfc_victim": _of_pfc_victim,
    "ecmp_large_flows": _of_ecmp_large_flows,
    "link_dies": _of_link_dies,
}
