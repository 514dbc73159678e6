"""What the port selections that keep a state choose: the rule of each, by hand, for each parameter that changes it."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from helpers.both import both
from helpers.tiny import Message, flow_input_of, packet_input_of, sends, wired

from weftwork.base.clock import US_PS
from weftwork.base.errors import ConfigError
from weftwork.base.random import draw
from weftwork.policies.interface import OFF
from weftwork.policies.load import catalogue, load
from weftwork.spec.fabric import Fabric
from weftwork.spec.transport import Transport

RATE_BPS = 400_000_000_000
FULL_BYTES = RATE_BPS * 12e-6 / 8  # of `adaptive`: what a port sends in 12 us
NAMES = [entry.name for entry in catalogue("port_selection")]
VARIANTS = [(name, variant) for name in NAMES for variant in load("port_selection", name).plugin.variants]


class Asked:
    """A leaf that asks one policy again and again."""

    def __init__(self, name: str, *, ports: int = 4, variant: str | None = None, **parameters: Any) -> None:
        self.policy = load("port_selection", name, parameters, variant=variant)
        self.state, self.signal = self.policy.new_state(), self.policy.new_port_signal()
        self.records = self.policy.new_port_states(ports)
        self.candidates = self.policy.new_candidates(ports)
        for at, candidate in enumerate(self.candidates):
            candidate.port, candidate.rate_bps, candidate.weight = at, RATE_BPS, 1
        signal = self.signal
        signal.ports, signal.edge, signal.from_edge, signal.to_edge, signal.edges = ports, 0, 0, 1, 2
        signal.via, signal.is_data, signal.bytes, signal.tier = OFF, 1, 4_174, 1
        self.asked = 0

    def choose(self, at_ps: int = 0, only: list[int] | None = None, queues: list[float] | None = None,
               **told: int) -> int:  # fmt: skip
        """The port that a packet leaves by."""
        candidates = self.candidates if only is None else [self.candidates[at] for at in only]
        for candidate, queue_bytes in zip(candidates, queues or [], strict=False):
            candidate.queue_bytes = int(queue_bytes)
        self.asked += 1
        self.signal.now_ps, self.signal.draw = at_ps, draw(1, 6, 1, self.asked, 0) >> 2
        self.signal.candidates, self.signal.choice, self.signal.word = len(candidates), 0, 0
        for name, value in told.items():
            setattr(self.signal, name, value)
        self.policy.call_step(self.state, self.signal, candidates, self.records)
        return int(candidates[self.signal.choice].port)

    def many(self, times: int, **told: Any) -> Counter[int]:
        """How often each port was chosen, at one instant."""
        return Counter(self.choose(**told) for _ in range(times))


@pytest.mark.parametrize(
    ("name", "gap", "parameters"),
    [("letflow", 100 * US_PS, {}), ("conga", 100 * US_PS, {}), ("ars", 256 * US_PS, {}),
     ("letflow", 7 * US_PS, {"gap_ps": "7us"}), ("conga", 7 * US_PS, {"gap_ps": "7us"}),
     ("ars", 7 * US_PS, {"idle_ps": "7us"})],
)  # fmt: skip
def test_a_flowlet_ends_with_a_pause_longer_than_the_gap(name: str, gap: int, parameters: dict[str, Any]) -> None:
    switch = Asked(name, **parameters)
    at_ps, had = 0, switch.choose(0)
    for _ in range(20):
        at_ps += gap
        assert switch.choose(at_ps) == had
    found = set()
    for _ in range(40):
        at_ps += gap + 1
        found.add(switch.choose(at_ps))
    assert found == {0, 1, 2, 3}


@pytest.mark.parametrize("name", ["letflow", "conga", "ars"])
def test_a_flowlet_leaves_a_port_that_goes_down(name: str) -> None:
    switch = Asked(name)
    had = switch.choose(0)
    others = [port for port in range(4) if port != had]
    moved = switch.choose(1, only=others)
    assert moved in others
    assert switch.choose(2, only=others) == moved


def test_flowlets_of_other_hashes_go_their_own_way() -> None:
    switch = Asked("letflow")
    assert len({switch.choose(0, hash=flow) for flow in range(40)}) == 4


def test_wcmp_gives_each_port_the_part_of_its_weight() -> None:
    switch = Asked("wcmp", ports=3)
    for candidate, weight in zip(switch.candidates, (3, 1, 2), strict=True):
        candidate.weight = weight
    assert [switch.choose(hash=place) for place in range(7)] == [0, 0, 0, 1, 2, 2, 0]


def test_drill_takes_the_shorter_of_two_and_remembers_the_best() -> None:
    """Of four ports with queues of 9, 0, 9 and 9 the second is drawn by half of the packets; the rest remember it."""
    queues = [9e5, 0, 9e5, 9e5]
    assert Asked("drill").many(400, queues=queues)[1] > 380
    drawn = Asked("drill", variant="power-of-two").many(400, queues=queues)[1]
    assert drawn == pytest.approx(400 * 7 / 16, abs=50)
    assert Asked("drill", draws=1, remembered=0).many(400, queues=queues)[1] == pytest.approx(100, abs=45)


def test_drill_sends_control_packets_by_their_hash() -> None:
    assert Asked("drill").many(20, queues=[9e5, 0, 9e5, 9e5], is_data=0, hash=6) == {2: 20}


def test_drill_remembers_by_destination() -> None:
    switch = Asked("drill")
    switch.many(40, queues=[9e5, 0, 9e5, 9e5], to_edge=1)
    switch.many(40, queues=[9e5, 9e5, 0, 9e5], to_edge=2)
    assert (switch.state.best_port[1], switch.state.best_port[2]) == (1, 2)


def test_round_robin_takes_every_port_once_in_each_turn_in_another_order() -> None:
    switch = Asked("round-robin", ports=8)
    turns = [[switch.choose() for _ in range(8)] for _ in range(20)]
    assert all(sorted(turn) == list(range(8)) for turn in turns)
    assert len({tuple(turn) for turn in turns}) == 20


def test_round_robin_keeps_an_order_for_as_many_turns_as_told() -> None:
    switch = Asked("round-robin", ports=8, turns=3)
    turns = [tuple(switch.choose() for _ in range(8)) for _ in range(6)]
    assert turns[0] == turns[1] == turns[2] != turns[3] == turns[4] == turns[5]


def test_round_robin_hashes_small_packets_and_leaves_the_turn_alone() -> None:
    switch = Asked("round-robin", ports=8)
    first = [switch.choose(bytes=4_174) for _ in range(4)]
    assert [switch.choose(bytes=127, hash=13) for _ in range(9)] == [5] * 9
    assert sorted([*first, *(switch.choose(bytes=128) for _ in range(4))]) == list(range(8))


def test_round_robin_keeps_groups_of_two_sizes_apart() -> None:
    switch = Asked("round-robin", ports=8)
    small = [0, 3, 7]
    pairs = [(switch.choose(), switch.choose(only=small)) for _ in range(24)]
    assert all(sorted(pair[0] for pair in pairs[at : at + 8]) == list(range(8)) for at in (0, 8, 16))
    assert all(sorted(pair[1] for pair in pairs[at : at + 3]) == small for at in range(0, 24, 3))


def test_adaptive_tells_queues_apart_by_level() -> None:
    """Below 5 % of a full queue, 10 % and 20 % are levels; within one all ports are alike."""
    assert Asked("adaptive").many(400, queues=[0, 0.049 * FULL_BYTES, 0.051 * FULL_BYTES, FULL_BYTES]).keys() == {0, 1}
    levels = [0.06 * FULL_BYTES, 0.101 * FULL_BYTES, 0.19 * FULL_BYTES, 0.21 * FULL_BYTES]
    assert Asked("adaptive").many(50, queues=levels) == {0: 50}
    assert Asked("adaptive").many(400, queues=levels[1:], only=[1, 2, 3]).keys() == {1, 2}
    assert Asked("adaptive", full_ps="3us").many(50, queues=[0.06 * FULL_BYTES] * 3 + [0.01 * FULL_BYTES]) == {3: 50}


def test_adaptive_reads_a_level_again_when_it_is_old() -> None:
    switch = Asked("adaptive", ports=2)
    assert switch.choose(0, queues=[0, FULL_BYTES]) == 0
    assert switch.choose(100_000, queues=[FULL_BYTES, 0]) == 0
    assert switch.choose(100_001, queues=[FULL_BYTES, 0]) == 1
    late = Asked("adaptive", ports=2, variant="spectrum")
    assert [late.choose(at_ps, queues=[at_ps and FULL_BYTES, FULL_BYTES - at_ps]) for at_ps in (0, US_PS)] == [0, 0]


def test_adaptive_compares_pauses_before_queues_before_utilisation() -> None:
    for variant, port in (("uet", 0), ("uet-pqb", 1)):
        switch = Asked("adaptive", ports=2, variant=variant)
        switch.candidates[0].paused = 1
        assert switch.many(20, queues=[0, FULL_BYTES]) == {port: 20}
    used = Asked("adaptive", ports=2, by_utilisation=True)
    used.records[0].given_bytes[0] = int(0.2 * RATE_BPS * 30e-6 / 8)
    assert used.choose(200_000) == 1
    assert used.choose(400_000, queues=[0, FULL_BYTES]) == 0


def test_adaptive_forgets_what_has_left_the_window() -> None:
    """A port that was given half of what it can send in 30 us is at 50 % until the window has passed."""
    switch = Asked("adaptive", ports=2, by_utilisation=True)
    switch.choose(0, only=[0], bytes=int(0.51 * RATE_BPS * 30e-6 / 8))
    found = {at_us: (switch.choose(at_us * US_PS, bytes=100), switch.records[0].used) for at_us in (1, 20, 26, 200)}
    assert [level for _, level in found.values()] == [3, 3, 3, 0]
    switch.choose(231 * US_PS)
    assert switch.records[0].used == 0


def test_adaptive_sends_small_packets_by_their_hash() -> None:
    queues = [FULL_BYTES, 0, 0, FULL_BYTES]
    assert Asked("adaptive").many(9, queues=queues, bytes=99, hash=7) == {3: 9}
    assert Asked("adaptive").many(9, queues=queues, bytes=100, hash=7)[3] == 0


def test_ars_goes_by_what_was_sent_and_by_what_waits() -> None:
    """A sample of 20 kB per 10 Gb/s moves an average by a quarter, half of it weighs: band 1 of 8."""
    full_bytes = 20_000 * RATE_BPS / 1e10
    for parameters, sent, queued, band in (
        ({}, full_bytes, 0, 1), ({}, 0, full_bytes, 1), ({}, full_bytes, full_bytes, 2),
        ({"exponent": 0}, full_bytes, 0, 4),
        ({"future_weight": 0}, full_bytes, 0, 2), ({"past_weight": 0}, full_bytes, 0, 0),
        ({"full_bytes": 10_000}, full_bytes, 0, 2), ({"exponent": 0}, 9 * full_bytes, 0, 7),
    ):  # fmt: skip
        switch = Asked("ars", ports=2, **parameters)
        switch.choose(0, bytes=0)
        switch.records[0].sent_bytes = int(sent)
        switch.choose(16 * US_PS, hash=1, queues=[queued, 0], bytes=0)
        weights = switch.policy.values["past_weight"] + switch.policy.values["future_weight"]
        load_bytes = switch.policy.values["past_weight"] * switch.records[0].past
        load_bytes += switch.policy.values["future_weight"] * switch.records[0].future
        assert min(int(8 * load_bytes / weights * 1e10 / RATE_BPS / switch.policy.values["full_bytes"]), 7) == band
        if band > 0:
            assert {switch.choose(16 * US_PS, hash=flow, bytes=0) for flow in range(2, 12)} == {1}


def test_ars_may_take_a_lower_sample_at_once() -> None:
    for takes_lower, past in ((False, 750.0), (True, 0.0)):
        switch = Asked("ars", ports=2, takes_lower=takes_lower)
        switch.choose(0, bytes=0)
        switch.records[0].past = 1_000.0
        switch.choose(16 * US_PS, bytes=0)
        assert switch.records[0].past == past


def test_conga_meters_a_link_and_forgets() -> None:
    """A link is full at C T_dre / alpha; in eighths, of which a fifth decays each 50 us."""
    switch = Asked("conga", ports=2)
    full_bytes = RATE_BPS * 50e-6 / 0.2 / 8
    switch.choose(0, only=[0], bytes=int(full_bytes * 0.55))
    levels = []
    for at_us in (1, 50, 100, 150, 1_000):
        switch.choose(at_us * US_PS, only=[0], bytes=0)
        levels.append(switch.signal.word % 8)
    assert levels == [4, 3, 2, 2, 0]  # 0.55, 0.44, 0.352, 0.2816 and 0.006 of eight


def test_conga_avoids_the_path_of_which_the_other_leaf_told() -> None:
    switch = Asked("conga", ports=2, age_ps="100us")
    word = 3 + 5 * 8 + 6 * 8 * 64 + (0 + 1) * 8 * 64 * 8  # CE 3 by tag 5; the metric of tag 0 is 6
    switch.choose(0, only=[0], delivered=1, from_edge=1, to_edge=0, edge=0, word=word)
    assert (switch.state.from_leaf[64 + 5], switch.state.to_leaf[64]) == (3, 6)
    told = {"delivered": 0, "from_edge": 0, "to_edge": 1, "bytes": 0}
    assert {switch.choose(1, hash=flow, **told) for flow in range(20)} == {1}
    assert {switch.choose(100 * US_PS + 1, hash=flow, **told) for flow in range(20, 60)} == {0, 1}


def test_conga_keeps_the_largest_metric_on_the_way() -> None:
    spine = Asked("conga", ports=2)
    spine.choose(0, edge=OFF, bytes=0, word=5 + 3 * 8)
    assert spine.signal.word == 5 + 3 * 8
    for record in spine.records:
        record.sent_bytes = 1e9
    spine.choose(0, bytes=0, word=5 + 3 * 8)
    assert spine.signal.word == 7 + 3 * 8


@pytest.mark.parametrize(("variant", "times"), [("paper", 1), ("conweave-ns3", 20)])
def test_conga_tells_a_new_metric_once_or_draws_among_the_young(variant: str, times: int) -> None:
    switch = Asked("conga", ports=2, variant=variant)
    switch.choose(0, only=[0], delivered=1, from_edge=1, to_edge=0, word=3 + 5 * 8)
    words = []
    for _ in range(20):
        switch.choose(1, delivered=0, from_edge=0, to_edge=1)
        words.append(switch.signal.word // (8 * 64))
    assert Counter(words)[3 + 8 * (5 + 1)] == times
    switch.choose(11_000 * US_PS, delivered=0, from_edge=0, to_edge=1)
    assert switch.signal.word // (8 * 64) == 0


def test_conga_compares_as_many_uplinks_as_told() -> None:
    """With one compared, the loaded port is still taken by a quarter of the flowlets."""
    for sampled, ports in ((1, {0, 1, 2, 3}), (0, {1, 2, 3}), (4, {1, 2, 3})):
        switch = Asked("conga", sampled=sampled)
        switch.records[0].sent_bytes, switch.records[0].decayed_at_ps = 1e9, 0
        assert {switch.choose(0, hash=flow, bytes=0) for flow in range(60)} == ports


def leaves(spines: int = 4) -> Fabric:
    """Two leaves of four hosts, and spines; 100 Gb/s and 1 us everywhere."""
    links = [(host, 8 + host // 4) for host in range(8)] + [
        (8 + leaf, 10 + at) for leaf in range(2) for at in range(spines)
    ]
    return wired(links, hosts=8, rates_bps=[100_000_000_000] * len(links), delays_ps=[US_PS] * len(links))


def across(size_bytes: int) -> list[Message]:
    """Each host sends to the one opposite, twice, with a pause between that ends flowlets."""
    return [
        Message(source=host, destination=(host + 4) % 8, size_bytes=size_bytes, at_ps=at_ps, channel=host)
        for host in range(8)
        for at_ps in (0, 60 * US_PS)
    ]


@pytest.mark.parametrize(
    ("name", "variant"),
    [*((name, None) for name in NAMES), *(pytest.param(*one, marks=pytest.mark.deep) for one in VARIANTS)],
)
def test_both_engines_agree_on_every_port_selection(name: str, variant: str | None) -> None:
    """Round trips of some 20 us; gaps below that end flowlets, so that both engines move flows."""
    short = {"letflow": {"gap_ps": "9us"}, "conga": {"gap_ps": "9us", "dre_ps": "5us"}, "ars": {"idle_ps": "9us"}}
    given = short.get(name, {}) if variant is None else {}
    policy = load("port_selection", name, given, variant=variant)
    transport = Transport(reorder_tolerant=True)
    outcome = both(packet_input_of(leaves(), sends(8, across(60_000)), port_selection=policy, transport=transport))
    assert outcome.complete


@pytest.mark.parametrize("name", ["letflow", "conga", "ars"])
def test_flows_refuse_what_goes_by_packets(name: str) -> None:
    with pytest.raises(ConfigError, match=f"'{name}' (goes by the weights|does not declare how it spreads)"):
        flow_input_of(leaves(), sends(8, across(1_000)), port_selection=load("port_selection", name))
