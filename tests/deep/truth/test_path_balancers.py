"""Load balancing at the NIC against what was published of it; the set-ups are those of benchmarks/balancers_nic.py.

Queue pairs: Gangidi et al., SIGCOMM 2024, doi:10.1145/3651890.3672233. PLB: Qureshi et al., SIGCOMM 2022,
doi:10.1145/3544216.3544226. REPS: Le et al., EuroSys 2026, arXiv:2407.21625. Set-ups are not those of the papers, so
that what is held is the direction and the order of magnitude; docs/models/load-balancing-nic.md has both numbers.
"""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING

import balancers_nic as setups
import numpy as np
import pytest

if TYPE_CHECKING:
    from against.conftest import Show


def test_queue_pairs_in_turn_gain_as_much_as_was_published(show: Show) -> None:
    """Published for E-ECMP: 20 to 60 % over one queue pair on an all-reduce of 128 GPUs and more."""
    one, four = setups.queue_pair_times_us(1, "split"), setups.queue_pair_times_us(4, "in-turn")
    gains = [before / after - 1 for before, after in zip(one, four, strict=True)]
    mean, median = statistics.mean(gains), statistics.median(gains)
    show(f"mean gain {100 * mean:+.1f} %, median {100 * median:+.1f} % over {len(gains)} seeds, published +20 to +60 %")
    assert 0.2 < median < 0.6
    assert mean == pytest.approx(0.4, abs=0.25)


def test_plb_lowers_the_imbalance_of_links(show: Show) -> None:
    """Published: the median imbalance of utilisation falls by 60 %."""
    uneven = {}
    for name in ("ecmp", "plb"):
        found = setups.uplink_bytes(*setups.ran(setups.permutation(name)))
        uneven[name] = float(np.median([np.ptp(sent) / sent.mean() for sent in found.values()]))
    change = uneven["plb"] / uneven["ecmp"] - 1
    show(f"ECMP {uneven['ecmp']:.2f}, PLB {uneven['plb']:.2f}: {100 * change:+.0f} %, published -60 %")
    assert change < -0.5


def test_reps_takes_less_of_a_slow_uplink_than_oblivious_spraying(show: Show) -> None:
    """Published, with one uplink at 200 of 400 Gb/s: 1,400 us sprayed, 799 us with REPS, 1.75 times."""
    faults = setups.FAULTS["one uplink at 200 Gb/s"]
    took = {name: setups.took_us(setups.ran(setups.uplinks(name, faults))[1]) for name in ("spray", "reps")}
    ratio = took["spray"] / took["reps"]
    show(f"spray {took['spray']:.0f} us, REPS {took['reps']:.0f} us: {ratio:.2f}, published 1.75")
    assert ratio == pytest.approx(1.75, rel=0.25)


def test_reps_ends_long_before_oblivious_spraying_where_links_fail(show: Show) -> None:
    """Published, for two links that are down for 100 and 200 us: over 35 % faster, 2.5 times fewer drops."""
    faults = setups.FAULTS["two links down in turn"]
    found = {name: setups.ran(setups.uplinks(name, faults, control="swift"))[1] for name in ("spray", "reps")}
    took = {name: setups.took_us(run) for name, run in found.items()}
    again = {name: int(run.outcome.counters["retransmissions"]) for name, run in found.items()}
    gain, fewer = 1 - took["reps"] / took["spray"], again["spray"] / again["reps"]
    show(f"spray {took['spray']:.0f} us, REPS {took['reps']:.0f} us: {100 * gain:.0f} % faster, published over 35 %")
    show(f"sent again: spray {again['spray']:,}, REPS {again['reps']:,}: {fewer:.1f} times fewer, published 2.5")
    assert gain > 0.35
    assert fewer == pytest.approx(2.5, rel=0.2)


def test_reps_loses_fewer_packets_on_a_link_that_fails(show: Show) -> None:
    """Under a fixed window, which no loss shrinks, the last completions differ little."""
    faults = setups.FAULTS["one link down for 200 us"]
    again = {
        name: int(setups.ran(setups.uplinks(name, faults))[1].outcome.counters["retransmissions"])
        for name in ("spray", "reps")
    }
    show(f"sent again: spray {again['spray']:,}, REPS {again['reps']:,}")
    assert again["reps"] < 0.1 * again["spray"]


@pytest.mark.parametrize("name", ["plb", "reps"])
def test_both_packet_engines_agree_on_the_set_ups(name: str) -> None:
    found = []
    for fidelity in ("packet", "reference"):
        documents = [
            setups.uplinks(name, setups.FAULTS["one link down for 200 us"], hosts=2, size="400kB"),
            setups.permutation(name, size="40kB"),
        ]
        for document in documents:
            document["engine"]["fidelity"] = fidelity
        found.append([setups.ran(document)[1].outcome.digest() for document in documents])
    assert found[0] == found[1]
