"""A policy is its text, not its name: a copy of a catalogue file gives the same bits, in both engines.

The native engine computes the catalogue's own ECMP in place and calls a copy of it; the two have to agree.
"""

import shutil
from pathlib import Path

import pytest
from helpers.tiny import job_of, wired

import weftwork.policies
from weftwork.base.clock import MS_PS
from weftwork.engine import packet
from weftwork.engine.lower import lower
from weftwork.engine.packet_input import PacketInput
from weftwork.engine.reference import simulation as reference
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, HashFunction, Switch
from weftwork.spec.job import Group, Loop, Peer, Send, Size, Wait
from weftwork.spec.transport import Transport

CATALOGUE = Path(weftwork.policies.__file__).parent
HOSTS = 6  # three on each of two leaves, below three spines
FILES = ("congestion_control/dcqcn.py", "path_selection/ecmp.py", "port_selection/ecmp.py")


def plan_with(control: str, path: str, port: str) -> PacketInput:
    """Everybody sends to everybody else, and meets marks, pauses and a choice of three spines."""
    down = [(host, HOSTS + host // 3) for host in range(HOSTS)]
    up = [(HOSTS + leaf, HOSTS + 2 + spine) for leaf in range(2) for spine in range(3)]
    all_hosts, size = Group(size=HOSTS), Size(total_bytes=40_000)
    sends = [
        Loop(count=2, body=(Send(peer=Peer(rule="shift", group=all_hosts, shift=other), size=size),))
        for other in range(1, HOSTS)
    ]
    return lower(
        fabric=wired(
            [*down, *up],
            hosts=HOSTS,
            switch=Switch(
                ecn=Ecn(kmin_bytes=5_000, kmax_bytes=50_000, pmax=0.5),
                hash=HashFunction(algorithm="crc32c", offset=3),
                buffer_bytes=2_000_000,
                alpha=0.02,
            ),
        ),
        job=job_of([[[*sends, Wait()]] for _ in range(HOSTS)]),
        transport=Transport(mtu_bytes=1024),
        congestion_control=load("congestion_control", control),
        settings=EngineSettings(
            path_selection=load("path_selection", path),
            port_selection=load("port_selection", port),
            until_ps=20 * MS_PS,
        ),
    )


@pytest.mark.parametrize("place", [0, 1, 2], ids=FILES)
def test_a_copy_under_another_name_gives_the_same_digest(place: int, tmp_path: Path) -> None:
    names = ["dcqcn", "ecmp", "ecmp"]
    own = plan_with(*names)
    wanted = packet.run(own)
    assert wanted.counters["cnps_sent"] > 0
    assert wanted.ports["pauses_sent"].any()
    copy = tmp_path / "mine.py"
    shutil.copyfile(CATALOGUE / FILES[place], copy)
    names[place] = str(copy)
    copied = plan_with(*names)
    assert packet.run(copied).digest() == wanted.digest()
    if place == len(FILES) - 1:  # the reference is slow, and knows no name anyway
        assert reference.run(copied).digest() == reference.run(own).digest() == wanted.digest()
