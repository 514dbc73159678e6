"""The examples answer what their READMEs say: each is run, and its numbers, table and figure are held to the files.

The step `examples` of .ci/run runs them.
"""

from __future__ import annotations

import importlib
import math
import sys
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import weftwork
from weftwork.spec.calibration import read_calibration
from weftwork.store.runs import Run
from weftwork.study.sweep import sweep
from weftwork.study.sweep.sweep import SweepRun

ROOT = Path(__file__).resolve().parents[3]
EXAMPLES = ROOT / "examples"
NAMES = sorted(path.parent.name for path in EXAMPLES.glob("*/answer.py"))
NEED_OPTUNA = {"tune_dcqcn"}


@pytest.fixture(scope="module", autouse=True)
def _root_on_the_path() -> Iterator[None]:
    """As `python -m examples.NAME.answer` has it in the root of the repository."""
    sys.path.insert(0, str(ROOT))
    yield
    sys.path.remove(str(ROOT))


def answer(name: str) -> ModuleType:
    return importlib.import_module(f"examples.{name}.answer")


@pytest.mark.parametrize("name", NAMES)
def test_an_example_prints_and_draws_what_its_readme_shows(
    name: str, monkeypatch: pytest.MonkeyPatch, check_golden: Callable[[str, str], None], *, is_golden_compared: bool
) -> None:
    if name in NEED_OPTUNA:
        pytest.importorskip("optuna", reason="Optuna comes with the extra 'plan'")
    module, readme = answer(name), (EXAMPLES / name / "README.md").read_text(encoding="utf-8")
    digests: list[str] = []
    monkeypatch.setattr(weftwork, "run", _told(digests, weftwork.run))
    monkeypatch.setattr(sweep, "run_sweep", _told_of_sweep(digests, sweep.run_sweep))
    measured = module.measure()
    check_golden(f"digests/examples/{name}.txt", "".join(digests))
    assert f"python -m examples.{name}.answer\n" in readme
    report, figure = module.report(measured), module.figure(measured)
    if is_golden_compared:
        assert f"```text\n{report}\n```" in readme
        assert figure == (EXAMPLES / name / "figure.svg").read_text(encoding="utf-8")
    NUMBERS[name]({case.name: case for case in measured})


def _told(digests: list[str], run: Callable[..., Run]) -> Callable[..., Run]:
    """`weftwork.run`, which also notes what was changed of the scenario, and the digest that came of it."""

    def noted(scenario: Path, **arguments: Any) -> Run:
        done = run(scenario, **arguments)
        changes = " ".join(f"{key}={value}" for key, value in arguments.get("overrides", {}).items())
        lines = (f"{one.provenance['seed']} {one.provenance['digest']} {changes}" for one in done.seeds or (done,))
        digests.extend(f"{line.rstrip()}\n" for line in lines)
        return done

    return noted


def _told_of_sweep(digests: list[str], run_sweep: Callable[..., SweepRun]) -> Callable[..., SweepRun]:
    """`run_sweep`, which also notes each point and its digests."""

    def noted(scenario: Path, **arguments: Any) -> SweepRun:
        done = run_sweep(scenario, **arguments)
        assert done.result is not None
        digests.extend(f"{' '.join(row.digests)} {row.name}\n" for row in done.result.rows)
        return done

    return noted


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
    assert cases["PFC, DCQCN"].victim_us <= paused.victim_us
    assert cases["PFC, window of one BDP"].pauses == 0
    dropped = cases["no PFC: packets are dropped"]
    assert dropped.pauses == 0
    assert dropped.drops > 0
    assert dropped.victim_us < paused.victim_us


def _of_dcqcn_window(cases: dict) -> None:
    alone_us = cases["alone"].victim_us
    plain, window = cases["DCQCN, no window"], cases["DCQCN, window of 1 BDP"]
    assert plain.victim_us / alone_us == pytest.approx(6.6, abs=0.05)
    assert window.victim_us / alone_us == pytest.approx(1.1, abs=0.05)
    assert window.pauses == 0 < plain.pauses
    assert window.incast_us < plain.incast_us
    # 15 messages of 16 MiB through one port of 400 Gb/s, headers left out
    assert all(case.incast_us > 15 * 16 * 2**20 * 8 / 400e9 * 1e6 for case in cases.values() if case.name != "alone")
    # what 15 windows of a round trip of 4 to 5 us hold at most
    assert window.queue_mb < 15 * 400e9 * 5e-6 / 8 / 1e6
    by_window = [cases[f"DCQCN, window of {bdps} BDP"].victim_us for bdps in (2, 4, 8, 16, 32)]
    assert by_window == sorted(by_window)
    assert by_window[-1] < plain.victim_us


def _of_cc_beside_incast(cases: dict) -> None:
    alone_us = cases["no incast"].all_reduce_us
    # 30 steps of 1 MiB by one port of 400 Gb/s, headers left out
    assert alone_us > 30 * 2**20 * 8 / 400e9 * 1e6
    slower = {name: case.all_reduce_us / alone_us for name, case in cases.items() if case.incast_us}
    rates = {name: slower.pop(name) for name in ("none", "DCQCN", "TIMELY")}
    assert slower.pop("PCC Vivace") == pytest.approx(1.7, abs=0.05)
    assert min(rates.values()) == pytest.approx(2.3, abs=0.05)
    assert max(rates.values()) == pytest.approx(2.5, abs=0.05)
    sprayed = [share for name, share in slower.items() if name.startswith("sprayed")]
    windows = [share for name, share in slower.items() if not name.startswith("sprayed")]
    assert (min(windows), max(windows)) == (pytest.approx(1.07, abs=0.01), pytest.approx(1.18, abs=0.01))
    assert max(sprayed) < 1.03
    assert len(sprayed) + len(windows) == 16
    assert {name for name, case in cases.items() if case.pauses} == set(rates)
    # 15 messages of 4 MiB through one port
    assert all(case.incast_us > 15 * 4 * 2**20 * 8 / 400e9 * 1e6 for case in cases.values() if case.incast_us)


def _of_nscc_and_swift(cases: dict) -> None:
    swift, nscc = cases["incast: Swift"], cases["incast: NSCC"]
    assert swift.again / nscc.again == pytest.approx(8.3, abs=0.2)
    assert nscc.mean_us / swift.mean_us == pytest.approx(0.8, abs=0.02)
    assert cases["incast: Swift, no trimming"].last_us > 2 * swift.last_us
    # 31 messages of 1 MiB through one port of 400 Gb/s, headers left out
    assert all(case.last_us > 31 * 2**20 * 8 / 400e9 * 1e6 for name, case in cases.items() if name.startswith("incast"))
    late, never = cases["incast, late marks: NSCC"], cases["incast, late marks: NSCC, no quick adapt"]
    assert never.again / late.again == pytest.approx(3.9, abs=0.1)
    assert dict(late.windows)[20] < 0.1 * dict(late.windows)[1]
    least_us = 4 * 2**20 * 8 / 400e9 * 1e6
    assert least_us < cases["permutation: NSCC"].last_us < cases["permutation: Swift"].last_us
    for control in ("Swift", "NSCC"):
        assert cases[f"slow link: {control}, mixed paths"].last_us < 0.7 * cases[f"slow link: {control}"].last_us


def _of_ecmp_large_flows(cases: dict) -> None:
    ecmp, sprayed = cases["ECMP, one hash everywhere"], cases["sprayed by the switches"]
    assert ecmp.completion_us / ecmp.ideal_us == pytest.approx(7.4, abs=0.1)
    assert sprayed.high_us < cases["sprayed by the NIC, ingress port too"].low_us
    assert cases["ECMP, ingress port hashed too"].high_us < ecmp.low_us
    assert cases["ECMP, each tier its own bits"].completion_us / ecmp.ideal_us == pytest.approx(4.3, abs=0.1)
    by_tier, alike = (cases[f"sprayed by the NIC, {hashed}"] for hashed in ("each tier its own bits", "one hash"))
    assert by_tier.completion_us == pytest.approx(sprayed.completion_us, rel=0.02)
    assert alike.low_us > 3 * by_tier.high_us
    assert all(case.low_us > case.ideal_us for case in cases.values())


def _of_equal_hashes(cases: dict) -> None:
    equal, seeds = cases["equal everywhere"], cases["another seed for each tier"]
    assert equal.used_share == 1 / 4  # of four ports the one that the leaf has chosen
    assert (seeds.used_share, seeds.completion_us) == (equal.used_share, equal.completion_us)  # a CRC is affine
    by_tier, mixed = cases["other bits for each tier"], cases["a function that is not affine"]
    # as many flows as links to the cores: 1 - 1/e are used at least once where all fall at random
    assert by_tier.used_share == pytest.approx(0.6, abs=0.04)
    assert mixed.used_share == pytest.approx(0.6, abs=0.04)
    assert equal.completion_us / by_tier.completion_us == pytest.approx(1.71, abs=0.02)
    sprayed = cases["no hash: sprayed by the switches"]
    assert sprayed.used_share == 1
    assert sprayed.high_us < by_tier.low_us < equal.low_us


def _of_random_graph(cases: dict) -> None:
    ecmp, sprayed = cases["shortest paths, one a flow"], cases["8 shortest paths, sprayed"]
    assert sprayed.completion_us / ecmp.completion_us == pytest.approx(0.68, abs=0.01)
    assert sprayed.high_us < ecmp.low_us
    assert cases["8 shortest paths, one a flow"].completion_us / ecmp.completion_us == pytest.approx(1.25, abs=0.01)
    assert sprayed.completion_us / cases["shortest paths, sprayed"].completion_us == pytest.approx(0.85, abs=0.01)
    # 4 MiB in packets of 4,096 bytes with 98 bytes of headers and gap, by one port of 100 Gb/s
    assert all(case.low_us > (4_096 + 98) * 1_024 * 8 / 100e9 * 1e6 for case in cases.values())


def _of_dragonfly_two_jobs(cases: dict) -> None:
    minimal, ugal = cases["minimal"], cases["ugal"]
    assert minimal.both_us["shift"] / ugal.both_us["shift"] == pytest.approx(2.59, abs=0.05)
    assert minimal.both_us["random"] / ugal.both_us["random"] == pytest.approx(2.63, abs=0.05)
    # four hosts send 2 MiB each over the one link of 100 Gb/s from their group to the next, headers left out
    least_us = 4 * 2 * 2**20 * 8 / 100e9 * 1e6
    assert least_us < minimal.alone_us["shift"] < 1.05 * least_us
    assert ugal.alone_us["shift"] < least_us / 3
    assert cases["par"].both_us["random"] / ugal.both_us["random"] == pytest.approx(1, abs=0.05)
    assert min(cases["valiant"].both_us.values()) > max(minimal.both_us.values())


def _of_torus_or_fat_tree(cases: dict) -> None:
    torus, tree = cases["torus, links of 200 Gb/s"], cases["fat tree, 400 Gb/s"]
    assert tree.price_usd / torus.price_usd == pytest.approx(1.033, abs=0.002)
    assert torus.took_ms["pipeline"] / tree.took_ms["pipeline"] == pytest.approx(2, abs=0.01)
    for kind in ("data", "experts"):
        assert torus.took_ms[kind] / tree.took_ms[kind] == pytest.approx(1, abs=0.02)
    # 2 x 63/64 of 1 GiB by one port of 400 Gb/s, headers left out
    assert torus.took_ms["data"] > 2 * 63 / 64 * 2**30 * 8 / 400e9 * 1e3
    faster, dearer = cases["leaf-spine, 800 Gb/s"], cases["torus, links of 400 Gb/s"]
    assert faster.price_usd / dearer.price_usd == pytest.approx(0.913, abs=0.002)
    assert all(faster.took_ms[kind] < 0.52 * dearer.took_ms[kind] for kind in dearer.took_ms)


def _of_failed_cube(cases: dict) -> None:
    whole, swapped = cases["optical switches, all healthy"], cases["optical switches, two cubes failed"]
    fixed, lost = cases["fixed cables, all healthy"], cases["fixed cables, two cubes failed"]
    assert swapped.took_ms == whole.took_ms
    assert fixed.took_ms / whole.took_ms == pytest.approx(1.66, abs=0.01)
    assert (lost.sides, swapped.sides) == ((4, 4, 8), (4, 8, 8))
    # five or more of eight cubes are down
    missing = sum(math.comb(8, down) * 0.01**down * 0.99 ** (8 - down) for down in range(5, 9))
    assert whole.missing[0.99] == pytest.approx(missing, rel=1e-6)
    assert fixed.missing[0.99] == pytest.approx(4.1e-4, rel=0.01)
    # 2 x 255/256 of 1 GiB by one port of 2.4 Tb/s, headers left out
    assert whole.took_ms > 2 * 255 / 256 * 2**30 * 8 / 2.4e12 * 1e3


def _of_planned_paths(cases: dict) -> None:
    best, sprayed = cases["planned, placement"], cases["sprayed by the switches"]
    assert best.completion_us / sprayed.completion_us == pytest.approx(0.91, abs=0.01)
    assert best.high_us < sprayed.low_us < cases["planned, greedy"].low_us < cases["ECMP"].low_us
    # a link dies: eight flows have seven uplinks, which packets share and flows do not
    dead, sprayed_dead = cases["planned, placement, a link dies"], cases["sprayed by the switches, a link dies"]
    assert dead.completion_us / sprayed_dead.completion_us == pytest.approx(1.72, abs=0.02)
    # 4 MiB at 400 Gb/s, headers left out
    assert all(case.low_us > 4 * 2**20 * 8 / 400e9 * 1e6 for case in cases.values())


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


def _of_reps_link_fails(cases: dict) -> None:
    # 8 MB in packets of 4,096 bytes with 98 bytes of headers and gap, by one port of 400 Gb/s
    assert all(case.last_us > 8e6 / 4_096 * (4_096 + 98) * 8 / 400e9 * 1e6 for case in cases.values())
    slow, built, down = "one link at 200 Gb/s", "all links as built", "one link down for 200 us"
    assert cases[f"{slow}: spray"].last_us / cases[f"{built}: spray"].last_us == pytest.approx(1.94, abs=0.01)
    assert cases[f"{slow}: REPS"].last_us / cases[f"{built}: REPS"].last_us == pytest.approx(1.06, abs=0.01)
    assert cases[f"{down}: REPS"].lost / cases[f"{down}: spray"].lost == pytest.approx(0.06, abs=0.01)
    assert cases[f"{down}: spray"].last_us / cases[f"{built}: spray"].last_us == pytest.approx(1.79, abs=0.01)
    assert cases[f"{down}: REPS"].last_us / cases[f"{built}: REPS"].last_us == pytest.approx(1.07, abs=0.01)


def _of_own_measurements(cases: dict) -> None:
    usual, fitted = cases["Weftwork's"], cases["calibrated"]
    assert (usual.judged_error, fitted.judged_error) == (
        pytest.approx(0.373, abs=0.005),
        pytest.approx(0.082, abs=0.005),
    )
    value, low, high = fitted.values["launch_us"]
    assert value == pytest.approx(37, abs=0.5)
    assert (high - low) / value < 0.09
    assert "network_efficiency" not in fitted.values
    kept = read_calibration(EXAMPLES / "own_measurements" / "calibration.toml")
    assert kept.values == {name: pytest.approx(values[0], rel=1e-4) for name, values in fitted.values.items()}
    time, least, most = fitted.iteration_ms
    assert usual.iteration_ms[0] < least < time < most


def _of_all_reduce_64(cases: dict) -> None:
    hierarchical = cases["hierarchical, NVLS"]
    assert hierarchical.took_ms[1024] == pytest.approx(5.9, abs=0.05)
    # each rail carries 2 x 7/8 of an eighth of the bytes at 400 Gb/s, headers left out
    assert hierarchical.took_ms[1024] > 2 * 7 / 8 * 2**30 / 8 * 8 / 400e9 * 1e3
    assert min(cases, key=lambda name: cases[name].took_ms[1]) == "halving and doubling"
    assert min(list(cases)[:3], key=lambda name: cases[name].took_ms[16]) == "double binary tree"
    # a GPU sends seven eighths of what a ring passes on by NVLink, at 81.2 % of 450 GB/s
    assert cases["ring"].bus[1024] < 0.812 * 450 * 8 / 7


def _of_oversubscription(cases: dict) -> None:
    costs = {name: case.took_ms[4] / case.took_ms[1] for name, case in cases.items()}
    assert costs["all-to-all, direct"] == pytest.approx(3.02, abs=0.01)
    assert costs["all-reduce, packed"] == pytest.approx(1.0, abs=0.02)
    assert costs["all-reduce, packed"] < costs["all-to-all, rail by rail"] < costs["all-to-all, direct"]
    # a quarter of the uplinks never costs more than four times
    assert max(costs.values()) <= 4


def _of_expert_parallel(cases: dict) -> None:
    every, copied, racks = "8 H100, EP 64", "8 H100, one copy a server, EP 64", "64 of 72 GB200, EP 64"
    assert cases[every].share == pytest.approx(0.42, abs=0.01)
    assert cases[racks].share < cases[copied].share < cases[every].share
    # eight copies of 7,168 values of two bytes, seven of eight leave the server; there and back, thrice a layer, in
    # 58 layers and a prediction module, for 4,096 sequences; on top headers, pipeline and gradients
    least_tb = 8 * 7168 * 2 * 7 / 8 * 6 * 59 * 4096 * 4096 / 1e12
    assert least_tb < cases[every].network_tb < 1.1 * least_tb
    # distinct servers of eight among eight choices
    saved = 1 - (1 - (7 / 8) ** 8)
    assert cases[copied].exposed_s / cases[every].exposed_s == pytest.approx(1 - saved, abs=0.02)
    assert cases["72 of 72 GB200, EP 64"].share > 2.9 * cases[racks].share
    assert cases["72 of 72 GB200, EP 8"].network_tb < cases["72 of 72 GB200, EP 64"].network_tb / 20
    hidden = cases["8 H100, one copy a server, hidden, EP 64"]
    assert hidden.share < 0.08
    assert hidden.network_tb == pytest.approx(cases[copied].network_tb, rel=1e-3)


def _of_goodput_scale(cases: dict) -> None:
    llama, most = cases["16,384"], cases["131,072"]
    assert llama.interrupted_every_s == pytest.approx(54 * 86_400 / 419, rel=0.01)
    assert llama.share["as it is"] == pytest.approx(0.895, abs=0.001)
    assert most.share["as it is"] < 0.5
    shares = [case.share["as it is"] for case in cases.values()]
    assert shares == sorted(shares, reverse=True)
    assert cases["1,024"].checkpoint_every_s / llama.checkpoint_every_s == pytest.approx(4, rel=0.05)  # Young: a root
    for case in cases.values():
        as_it_is = case.share["as it is"]
        assert case.low < as_it_is < case.high
        assert case.share["checkpoint every 20 min"] < as_it_is < case.share["found in 1 min"]
        assert as_it_is < case.share["checkpoints free"]
        assert case.iteration_s == pytest.approx(cases["1,024"].iteration_s, rel=0.01)
    assert most.share["half the failures"] == pytest.approx(cases["65,536"].share["as it is"], abs=0.005)


def _of_communication_share(cases: dict) -> None:
    # Narayanan et al., SC 2021, table 1, measured
    for billions, measured_s in (("39.1", 14.453), ("145.6", 24.817)):
        assert cases[f"200 Gb/s, as published, {billions} B"].iteration_s == pytest.approx(measured_s, rel=0.06)
    for line in ("200 Gb/s, as published", "50 Gb/s, as published", "H100, 400 Gb/s", "H100, 400 Gb/s, overlap"):
        assert cases[f"{line}, 1008 B"].exposed < 0.7 * cases[f"{line}, 145.6 B"].exposed
    assert 0.15 < cases["50 Gb/s, as published, 145.6 B"].exposed < 0.25
    rises = cases["50 Gb/s, TP 32 at 1T, 1008 B"]
    assert 0.5 < rises.exposed < 0.6
    # two all-reduces a layer forward, two when it is computed again, two backward, each of 2 x 2,048 x 25,600 bytes by
    # eight NICs at 50 Gb/s, in a stage of 8 layers for 512 micro batches; headers and the efficiency of NICs left out
    least_s = 2 * 31 / 32 * 2 * 2048 * 25_600 * 8 / (8 * 50e9) * 6 * 8 * 512
    assert least_s < rises.kinds["tensor"] * rises.iteration_s < 1.35 * least_s
    flat = [case.exposed for case in cases.values() if case.line == "100 Gb/s, FSDP"]
    assert max(flat) - min(flat) < 0.02
    for case in cases.values():
        assert sum(case.kinds.values()) == pytest.approx(case.exposed, abs=1e-6)


def _of_second_nic(cases: dict) -> None:
    for name, case in cases.items():
        took_s = case.took_s
        if name == "ZeRO 3, nothing hidden":  # NCCL's tuner leaves LL128 for Simple where the network is faster
            assert -0.04 < case.saved("2 x 400") < 0
            continue
        if name == "ZeRO 3, hidden":
            continue
        assert took_s["1 x 400"] > took_s["800, PCIe 5"] > took_s["1 x 800"] >= took_s["2 x 800"]
        assert took_s["no limit"] > case.computing_s  # what NVLink takes is left
        assert took_s["2 x 400"] == pytest.approx(took_s["1 x 800"], rel=0.01)
        # the longest chain through the schedule is convex in the time of a byte: half of it saves half or more of all
        assert case.saved("1 x 800") > 0.99 * case.saved("no limit") / 2
    experts = cases["experts across servers"]
    # 61 layers in 8 stages, the fullest of 8; 64 micro batches, four exchanges of 411 MB each, headers left out
    assert experts.took_s["1 x 400"] > 64 * 8 * 4 * 56 / 64 * 2 * 4096 * 8 * 7168 / 50e9
    assert cases["experts, a token once a server"].took_s["1 x 400"] < experts.took_s["1 x 400"]
    assert cases["ZeRO 3, hidden"].saved("no limit") < 0.01
    assert cases["dense, TP 8 in a server"].saved("2 x 400") < 0.02


def _of_slow_gpu(cases: dict) -> None:
    healthy = cases["pipelines, all alike"]
    for place in ("pipelines, last stage", "pipelines, first stage", "ZeRO 3"):
        base = healthy if "pipelines" in place else cases["ZeRO 3, all alike"]
        points = [(1.0, base.took_s), *((f, cases[f"{place} x {f:g}"].took_s) for f in (1.05, 1.1, 1.25, 1.5, 2.0))]
        slopes = [(b[1] - a[1]) / (b[0] - a[0]) for a, b in pairwise(points)]
        # the longest chain through the schedule: it grows, faster and faster, but by no more than computing does
        assert all(later > earlier - 0.02 for earlier, later in pairwise(slopes))
        assert slopes[0] >= 0
        assert slopes[-1] < base.computing_s
    one = cases["pipelines, last stage x 1.25"]
    assert one.took_s == pytest.approx(cases["pipelines, a server of the last stage x 1.25"].took_s, rel=1e-9)
    assert one.took_s < cases["pipelines, everybody x 1.25"].took_s < 1.25 * healthy.took_s
    assert list(one.ranks.values()) == [256, 1, 7, 24, 224]
    assert min(one.waits_s, key=lambda group: sum(one.waits_s[group])) == "the slow GPU"
    assert one.waits_s["the slow GPU"][1] < 0.01 * one.waits_s["the 7 beside it"][1]
    slow_link = cases["pipelines, a link at a tenth"]
    assert slow_link.computing_s == pytest.approx(healthy.computing_s, rel=1e-9)
    assert slow_link.bubble_s == pytest.approx(healthy.bubble_s, rel=0.1)
    assert all(case.took_s > case.computing_s for case in cases.values())


def _of_two_jobs(cases: dict) -> None:
    for case in cases.values():
        for fabric, took_s in case.took_s.items():
            assert took_s > case.computing_s
            assert took_s >= case.alone_s[fabric] * (1 - 1e-9)
        assert case.costs("own pods, 4:1") == pytest.approx(0, abs=1e-9)
        assert case.costs("1:1 sprayed") == pytest.approx(0, abs=1e-9)
    together, apart = cases["ZeRO 3 beside ZeRO 3, in step"], cases["ZeRO 3 beside ZeRO 3, 12 ms apart"]
    # in step at 4:1, four flows of each job share two uplinks of a leaf: half the rate alone, a quarter together
    sending = [took_s - together.computing_s for took_s in (
        together.took_s["1:1 sprayed"], together.alone_s["4:1 sprayed"], together.took_s["4:1 sprayed"])]  # fmt: skip
    assert sending[1] / sending[0] == pytest.approx(2, rel=0.04)  # launches and ramps are not shared
    assert sending[2] / sending[0] == pytest.approx(4, rel=0.04)
    assert apart.costs("4:1 sprayed") < together.costs("4:1 sprayed") / 4
    assert max(cases, key=lambda name: cases[name].costs("4:1 sprayed")) == "experts beside experts"


def _of_which_oversubscription(cases: dict) -> None:
    dense, experts = cases["llama-3-405b"], cases["deepseek-v3"]
    assert {ratio: took_s / dense.took_s[1] for ratio, took_s in dense.took_s.items()} == {
        1: 1, 2: pytest.approx(1.026, abs=0.001), 4: pytest.approx(1.079, abs=0.001),
    }  # fmt: skip
    assert {ratio: took_s / experts.took_s[1] for ratio, took_s in experts.took_s.items()} == {
        1: 1, 2: pytest.approx(1.084, abs=0.001), 4: pytest.approx(1.71, abs=0.001),
    }  # fmt: skip
    for case in (dense, experts):
        assert sorted(case.exposed.values()) == list(case.exposed.values())
        assert all(took_s < ratio * case.took_s[1] for ratio, took_s in case.took_s.items() if ratio > 1)


def _of_rails_or_rail_only(cases: dict) -> None:
    small, middle, large = (cases[f"{gpus:,} GPUs"] for gpus in (1024, 2048, 16384))
    # 128 ports: one switch a rail; two tiers either way; three tiers or two
    assert small.switches == {"rail-optimized": 16 + 8, "rail-only": 8}
    assert middle.switches == {"rail-optimized": 32 + 16, "rail-only": 32 + 16}
    assert large.switches == {"rail-optimized": 256 + 256 + 128, "rail-only": 256 + 128}
    saved = {one.name: 1 - one.money["rail-only"] / one.money["rail-optimized"] for one in (small, middle, large)}
    assert list(saved.values()) == [pytest.approx(0.36, abs=0.005), 0, pytest.approx(0.26, abs=0.005)]
    jobs = [case for case in cases.values() if hasattr(case, "took_s")]
    assert len(jobs) == 9
    assert all(abs(job.costs()) < 1e-3 for job in jobs)
    direct, hop = cases["direct"].took_ms, cases["over NVLink, in one piece"].took_ms
    assert direct["rail-only"] is None
    share = hop["rail-only"] / direct["rail-optimized"] - 1
    assert 0.082 < share < 0.112  # Wang et al., arXiv:2307.12169, abstract of version 5
    # 7/8 of what leaves a server goes over NVLink first, at 0.812 of 450 GB/s, if the rest is the network's
    assert share < 7 / 8 * 50 / (0.812 * 450)
    assert cases["deepseek-v3, 1,024 GPUs"].costs(share) == pytest.approx(0.036, abs=0.001)


def _of_what_two_to_one_saves(cases: dict) -> None:
    one, two, four = (cases[f"leaf {ratio}:1"] for ratio in (1, 2, 4))
    assert one.price_usd[1] - two.price_usd[1] == two.saved_usd[1] == pytest.approx(1.40e6, abs=0.01e6)
    assert two.break_even == pytest.approx(two.saved_usd[1] / (2048 * 30_000))
    assert one.power_w > two.power_w > four.power_w
    lost = {name: case.lost("4:1") for name, case in cases.items() if name.endswith(", leaf")}
    assert [round(share, 3) for share in lost.values()] == [0, 0.016, 0, 0.335]
    # half of the uplinks never costs more than twice, nor a quarter more than four times
    assert all(case.lost("2:1") < 1 and case.lost("4:1") < 3 for name, case in cases.items() if name in lost)
    assert max(case.lost("2:1") for name, case in cases.items() if name in lost) < two.break_even
    assert lost["deepseek-v3, at random, leaf"] > 9 * four.break_even
    assert cases["core 7:1"].break_even == pytest.approx(0.153, abs=0.001)
    assert cases["llama-3-405b, in order, core"].lost("7:1") == pytest.approx(0.014, abs=0.001)


def _of_tune_dcqcn(cases: dict) -> None:
    before, tuned = cases["the file's values"], cases["tuned"]
    assert tuned.objective_us / before.objective_us == pytest.approx(0.63, abs=0.01)
    assert tuned.pauses < before.pauses / 8
    # 14 steps of 512 KiB by one port of 100 Gb/s, and 7 messages of 1 MiB through one port, headers left out
    assert all(case.all_reduce_us > 14 * 2**19 * 8 / 100e9 * 1e6 for case in cases.values())
    assert all(case.incast_us > 7 * 2**20 * 8 / 100e9 * 1e6 for case in cases.values())
    set_back = {name: case.objective_us for name, case in cases.items() if name.startswith("without")}
    assert max(set_back, key=lambda name: set_back[name]).startswith("without increase_timer_ps")
    three = cases["the first three alone"]
    assert (before.objective_us - three.objective_us) / (before.objective_us - tuned.objective_us) > 0.8


def _of_plan_405b(cases: dict) -> None:
    paper = cases.pop("TP8 PP16x8 DP128 ZeRO2 mb1 balanced")
    best = next(iter(cases.values()))
    times = [case.took_s for case in cases.values()]
    assert times == sorted(times)
    assert times[-1] / best.took_s == pytest.approx(1.029, abs=0.001)
    assert paper.took_s / best.took_s == pytest.approx(1.152, abs=0.001)
    assert paper.mfu == pytest.approx(0.464, abs=0.001)
    for kind, lost_s in (
        ("bubble", 0.420),
        ("tensor traffic", 0.432),
        ("stage messages", -0.003),
        ("computing", -0.115),
    ):
        assert paper.spent_s[kind] - best.spent_s[kind] == pytest.approx(lost_s, abs=0.005)
    for case in cases.values():
        assert case.spent_s["tensor traffic"] < 0.5 * paper.spent_s["tensor traffic"]
        assert case.spent_s["bubble"] < 0.6 * paper.spent_s["bubble"]
        assert case.spent_s["computing"] > paper.spent_s["computing"]
    for case in (paper, *cases.values()):
        assert sum(case.spent_s.values()) == pytest.approx(case.took_s, rel=1e-6)
        assert 64 < case.memory_gb < 80


def _of_which_fabric_405b(cases: dict) -> None:
    knee = cases["rail-only, tomahawk-5, 400Gbps, 2:1 at the leaf"]
    assert knee.is_knee
    assert (knee.counted, knee.left) == (919, 71)
    whole, half = cases["rail-only, tomahawk-5, 400Gbps"], cases["rail-optimized, tomahawk-5, 200Gbps"]
    joined, planes = (cases[f"rail-optimized, tomahawk-5, 400Gbps{more}"] for more in ("", ", 2 planes"))
    assert whole.took_s == pytest.approx(joined.took_s, rel=1e-3)
    assert (joined.price_usd - whole.price_usd) / 1e6 == pytest.approx(28.5, abs=0.1)
    assert joined.switches - whole.switches == 256
    assert (joined.price_usd - planes.price_usd) / 1e6 == pytest.approx(25.4, abs=0.1)
    assert planes.took_s / joined.took_s == pytest.approx(1.012, abs=0.002)
    assert (whole.price_usd - knee.price_usd) / 1e6 == pytest.approx(11.2, abs=0.1)
    assert half.took_s / knee.took_s == pytest.approx(1.046, abs=0.001)


def _of_slow_nic_by_plan(cases: dict) -> None:
    robust = cases.pop("CP8 PP4x10 DP4 ZeRO2 mb1")
    assert robust.took_s[1.0] / min(case.took_s[1.0] for case in cases.values()) == pytest.approx(1.025, abs=0.001)
    for share, least, most, lost in (
        (0.5, 0.014, 0.018, 0.0006),
        (0.25, 0.15, 0.164, 0.0234),
        (0.1, 0.55, 0.61, 0.2276),
    ):
        assert all(least < case.costs(share) < most for case in cases.values())
        assert robust.costs(share) == pytest.approx(lost, abs=0.0005)
        fastest_s = min(case.took_s[share] for case in cases.values())
        assert (robust.took_s[share] < fastest_s) == (share < 0.5)
    assert 0 < robust.exposed < min(case.exposed for case in cases.values())


NUMBERS = {
    "plan_405b": _of_plan_405b,
    "which_fabric_405b": _of_which_fabric_405b,
    "slow_nic_by_plan": _of_slow_nic_by_plan,
    "tune_dcqcn": _of_tune_dcqcn,
    "which_oversubscription": _of_which_oversubscription,
    "rails_or_rail_only": _of_rails_or_rail_only,
    "what_two_to_one_saves": _of_what_two_to_one_saves,
    "communication_share": _of_communication_share,
    "expert_parallel": _of_expert_parallel,
    "goodput_scale": _of_goodput_scale,
    "own_measurements": _of_own_measurements,
    "all_reduce_64": _of_all_reduce_64,
    "oversubscription": _of_oversubscription,
    "pfc_victim": _of_pfc_victim,
    "cc_beside_incast": _of_cc_beside_incast,
    "dcqcn_window": _of_dcqcn_window,
    "nscc_and_swift": _of_nscc_and_swift,
    "ecmp_large_flows": _of_ecmp_large_flows,
    "random_graph": _of_random_graph,
    "dragonfly_two_jobs": _of_dragonfly_two_jobs,
    "torus_or_fat_tree": _of_torus_or_fat_tree,
    "failed_cube": _of_failed_cube,
    "equal_hashes": _of_equal_hashes,
    "planned_paths": _of_planned_paths,
    "link_dies": _of_link_dies,
    "reps_link_fails": _of_reps_link_fails,
    "second_nic": _of_second_nic,
    "slow_gpu": _of_slow_gpu,
    "two_jobs": _of_two_jobs,
}
