"""Tiers that hash alike use few of their links; tiers that hash by their role nearly all, in every engine.

Against switches of which each has a hash of its own that is not affine, which is what papers assume. The case is that
of docs/models/load-balancing.md, a random permutation on a fat tree of three tiers, smaller.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import polarisation
import pytest

from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.study.record.road import execute

if TYPE_CHECKING:
    from against.conftest import Show
    from numpy.typing import NDArray

CASES = [("spray", "packet"), ("oblivious", "packet"), ("ecmp", "packet"), ("ecmp", "flow")]


@pytest.mark.parametrize(("nic", "fidelity"), CASES)
def test_tiers_by_role_are_as_good_as_independent_switches(nic: str, fidelity: str, show: Show) -> None:
    """128 hosts: within a tenth of independent hashes; the same function everywhere is far behind both."""
    took = {
        one: polarisation.measure(one, nic, fidelity, radix=8, size="256kB")
        for one in ("equal", "seeds", "default", "independent")
    }
    show(f"{nic}, {fidelity}: " + ", ".join(f"{one} {us:.1f} us" for one, us in took.items()))
    assert took["default"] == pytest.approx(took["independent"], rel=0.1)
    assert took["equal"] > (1.4 if nic == "ecmp" else 2) * took["default"]
    # The seed of a CRC renames the ports of a fan-out of four and spreads nothing.
    assert took["seeds"] == took["equal"]


def deliveries(tmp_path: Path, document: dict[str, Any]) -> NDArray[np.int64]:
    file = tmp_path / "scenario.yaml"
    file.write_text(json.dumps(document), encoding="utf-8")
    return execute(prepare(read_scenario(file)), what_if="none").outcome.messages["delivered_at_ps"]


@pytest.mark.parametrize("nic", ["spray", "ecmp"])
def test_both_packet_engines_obey_the_settings_of_a_tier_and_of_a_switch(tmp_path: Path, nic: str) -> None:
    settings = [
        {"switches": "agg", "algorithm": "crc16-ccitt", "offset": 1},
        {"switches": "leaf3", "fields": ["src_ip", "dst_ip", "src_port", "in_port"]},
        {"switches": "tier3", "algorithm": "mix", "seed": 9},
    ]
    found = {}
    for fidelity in ("packet", "reference"):
        for some in ([], settings):
            document = polarisation.scenario("default", nic, fidelity, radix=4, size="100kB")
            document["fabric"]["hash"] = some
            found[fidelity, len(some)] = deliveries(tmp_path, document)
    assert found["packet", 0].tolist() == found["reference", 0].tolist()
    assert found["packet", 3].tolist() == found["reference", 3].tolist()
    assert found["packet", 3].tolist() != found["packet", 0].tolist()
