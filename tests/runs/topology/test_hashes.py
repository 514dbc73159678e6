"""How the switches of a fabric hash: by their tier, and as a user sets it for a tier, a word or one switch."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from helpers.findings import mistakes_of
from helpers.topology_hashes import seeds_and_offsets, tree
from tests.helpers.tiny import job_of, packet_input_of

from weftwork.base.errors import ConfigError
from weftwork.engine.lower import switch_rows
from weftwork.engine.requirements import check_requirements
from weftwork.policies.load import load
from weftwork.spec.job import Group, Peer, Send, Size
from weftwork.spec.scenario.hashes import HashSection
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.topology.export import to_json


def test_rows_of_the_engines_have_what_was_set() -> None:
    fabric = tree(hash=[HashSection(switches="leaf1", seed=77, fields=("src_ip",))])
    rows, node_device = switch_rows(fabric)
    row = rows[node_device[fabric.node("leaf1")]]
    assert (row["hash_seed"], row["hash_offset"], row["hash_fields"]) == (77, 0, 1)
    assert sorted(set(rows["hash_seed"].tolist())) == [0, 10, 25, 77]


def test_a_fabric_file_takes_entries_too(tmp_path: Path) -> None:
    file = tmp_path / "mine.json"
    file.write_text(to_json(tree()), encoding="utf-8")
    assert seeds_and_offsets(fabric_of(file=file)) == seeds_and_offsets(tree())
    found = seeds_and_offsets(fabric_of(file=file, hash=[HashSection(switches="core1", offset=3)]))
    assert (found["core1"], found["core0"]) == ((25, 3), (25, 20))
    assert np.array_equal(fabric_of(file=file).node_device, tree().node_device)


def test_switches_that_differ_in_their_hash_alone_say_once_what_they_lack() -> None:
    """A need that no switch meets, and a buffer that is too small for all of them."""
    fabric = tree(hash=[HashSection(switches="leaf1", seed=7)])
    hpcc = load("congestion_control", "hpcc")
    told = mistakes_of(check_requirements, fabric, Transport(), (hpcc, None, None))
    assert [mistake.text for mistake in told] == [
        "hpcc needs in-band telemetry; switch 'plain' offers ECN and PFC; set fabric.switch.telemetry: true"
    ]
    small = tree(hash=[HashSection(switches="leaf1", seed=7)], switch={"buffer_bytes": 100_000})
    sends = Send(peer=Peer(rule="shift", group=Group(size=16), shift=1), size=Size(total_bytes=9))
    with pytest.raises(ConfigError) as caught:
        packet_input_of(small, job_of([[[sends]]] * 16))
    assert len([mistake for mistake in caught.value.mistakes if mistake.path == "fabric.switch.buffer"]) == 1
