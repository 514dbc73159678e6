"""What each of the small policies chooses."""

from collections import Counter

import pytest

from weftwork.base.random import draw
from weftwork.policies.interface import NO_WINDOW_BYTES, OFF, Kind
from weftwork.policies.load import load


@pytest.mark.parametrize(
    ("parameters", "window_bytes"),
    [({}, 400e9 * 12e-6 / 8 + 4_096), ({"window_bytes": "1MB"}, 1e6), ({"window_bytes": 1}, 4_096)],
)
def test_fixed_window_is_one_bdp_and_a_packet_unless_told(parameters: dict[str, object], window_bytes: float) -> None:
    policy = load("congestion_control", "fixed-window", parameters)
    state, signal = policy.new_state(), policy.new_signal()
    state.rate_bps = 400_000_000_000
    signal.kind, signal.line_rate_bps, signal.base_rtt_ps = int(Kind.START), 400_000_000_000, 12_000_000
    signal.mtu_bytes = 4_096
    policy.call_step(state, signal)
    assert state.window_bytes == window_bytes
    assert state.rate_bps == 400e9


def test_no_control_leaves_line_rate_and_no_window() -> None:
    policy = load("congestion_control", "none")
    state, signal = policy.new_state(), policy.new_signal()
    state.rate_bps = 400_000_000_000
    policy.call_step(state, signal)
    assert (state.rate_bps, state.window_bytes) == (400e9, NO_WINDOW_BYTES)


def taken(name: str, packets: int, **parameters: object) -> list[int]:
    policy = load("path_selection", name, parameters)
    state, signal = policy.new_state(), policy.new_signal()
    state.entropy = 50_000
    entropies = []
    for number in range(packets):
        signal.kind, signal.draw = int(Kind.SEND), draw(1, 7, 1, number, 0) >> 2
        policy.call_step(state, signal)
        entropies.append(state.entropy)
    return entropies


def test_ecmp_keeps_the_entropy_of_the_queue_pair() -> None:
    assert set(taken("ecmp", 20)) == {50_000}


def test_spraying_draws_every_entropy_about_as_often() -> None:
    counts = Counter(taken("spray", 8_000, entropies=8))
    assert sorted(counts) == list(range(8))
    assert max(abs(count - 1_000) for count in counts.values()) < 150  # five standard deviations


def test_oblivious_spraying_takes_each_path_once_a_round_in_another_order() -> None:
    entropies = taken("oblivious", 192, paths=64)
    rounds = [entropies[i : i + 64] for i in (0, 64, 128)]
    assert all(sorted(one) == list(range(64)) for one in rounds)
    assert rounds[0] != rounds[1] != rounds[2]


def chosen(name: str, queues: list[int], *, draws: int = 1, hashed: int = 0,
           rates: list[int] | None = None) -> list[int]:  # fmt: skip
    policy = load("port_selection", name)
    state, signal, candidates = policy.new_state(), policy.new_port_signal(), policy.new_candidates(len(queues))
    for i, candidate in enumerate(candidates):
        candidate.queue_bytes = queues[i]
        candidate.rate_bps = rates[i] if rates else 400_000_000_000
    ports = []
    for number in range(draws):
        signal.via = OFF
        signal.hash, signal.candidates, signal.draw = hashed, len(queues), draw(1, 6, 1, number, 0) >> 2
        policy.call_step(state, signal, candidates)
        ports.append(signal.choice)
    return ports


def test_ecmp_at_the_switch_follows_the_hash() -> None:
    assert chosen("ecmp", [0] * 6, hashed=23, draws=3) == [5, 5, 5]


def test_spraying_at_the_switch_draws_every_port_about_as_often() -> None:
    counts = Counter(chosen("spray", [0] * 4, draws=4_000))
    assert max(abs(count - 1_000) for count in counts.values()) < 140


def test_least_loaded_takes_the_queue_that_drains_first() -> None:
    assert set(chosen("least-loaded", [5_000, 4_000, 6_000], draws=50)) == {1}
    rates = [400_000_000_000, 100_000_000_000, 400_000_000_000]
    assert set(chosen("least-loaded", [5_000, 4_000, 6_000], draws=50, rates=rates)) == {0}


def test_least_loaded_breaks_ties_evenly() -> None:
    counts = Counter(chosen("least-loaded", [7, 7, 7, 7, 9], draws=4_000))
    assert sorted(counts) == [0, 1, 2, 3]
    assert max(counts.values()) < 2 * 1_000  # a port behind a fuller one inherits its turns
