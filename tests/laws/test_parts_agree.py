"""What a fabric is made of is the same for `run`, `cost` and `design`, whatever rate, NIC and switch it has."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any, Final

from helpers.cases import Saw, case_count

from weftwork.base.caveat import mismatch_texts
from weftwork.base.errors import ConfigError
from weftwork.hardware import catalogue
from weftwork.hardware.prices import price_book
from weftwork.spec.fabric import HOST
from weftwork.study.design.built import FabricAsked, build, overrides_of
from weftwork.study.design.candidates import FabricCandidate
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.topology.bill import bill

CASES: Final = case_count(plain=25, deep=250)
FILE: Final = "{schema: 3, fabric: {node: dgx-h100, gpus: 64}, collective: {operation: all-reduce, size: 1MB}}\n"
NODES: Final = ("dgx-h100", "dgx-a100", "dgx-b200", "dgx-b300", "gb200-nvl72", "p5")
TREES: Final = ("rail-optimized", "leaf-spine", "fat-tree", "rail-only")


def fabric(draw: random.Random) -> dict[str, Any]:
    """Keys of a fabric, whose parts need not fit each other."""
    keys: dict[str, Any] = {
        "topology": draw.choice(TREES), "node": draw.choice(NODES), "gpus": draw.choice([64, 144, 256]),
        "switch": draw.choice(["tomahawk-5", "spectrum-4", "quantum-2", "plain"]),
        "nic": draw.choice(list(catalogue.NICS)),
    }  # fmt: skip
    if draw.random() < 0.6:
        keys["link_rate"] = draw.choice(["100Gbps", "200Gbps", "400Gbps", "800Gbps"])
    if keys["switch"] == "plain":
        keys["radix"] = 64
    return keys


def test_run_cost_and_design_agree_on_every_part(tmp_path: Path, saw: Saw) -> None:
    draw, book = random.Random(11), price_book()
    file = tmp_path / "job.yaml"
    file.write_text(FILE, encoding="utf-8")
    built, unfed = 0, 0
    for number in range(CASES):
        candidate = FabricCandidate(number=number, fabric=fabric(draw), rate_bps=1)
        found = build(FabricAsked(candidate=candidate, file=file, settings={}, book=book))
        try:
            ran = prepare(read_scenario(file, overrides_of(candidate, {}))).fabric
        except ConfigError:
            assert found.reason, candidate.fabric
            continue
        assert not found.reason, (candidate.fabric, found.detail)
        cost = bill(ran, book)
        assert (found.price_usd, found.power_w) == (cost.price_usd, cost.power_w)
        assert found.cables == cost.count("cable") == len(ran.links)
        assert cost.mismatches == mismatch_texts(ran.caveats.values())
        assert {nic.name for nic in ran.nics} == {candidate.fabric["nic"]}
        assert sum(found.switches) == int((ran.node_kind != HOST).sum())
        # a link that no part behind it can feed is said, and no other
        tiers = ran.node_tier[ran.links["a"]], ran.node_tier[ran.links["b"]]
        host_bps = int(ran.links["rate_bps"][(tiers[0] == 0) | (tiers[1] == 0)].max())
        nic = ran.nics[0]
        card_bps = catalogue.nic_rates_bps().get(nic.name, host_bps)
        is_unfed = card_bps < host_bps or 0 < nic.pcie_rate_bps < host_bps
        assert bool(cost.mismatches) == is_unfed, (candidate.fabric, cost.mismatches)
        built, unfed = built + 1, unfed + is_unfed
    saw(built, f"{unfed} with links that nothing feeds")
    assert built > CASES / 4
    assert unfed
