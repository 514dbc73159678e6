"""The flow engine under faults against a second one, written here plainly: max-min by the textbook, event by event.

Messages of random connections share the links of a leaf-spine while links are degraded, die and come back. Here each
port is a link by itself, also where the engine has bundles, and rates are those of `textbook`; paths come from the
router, which `test_flow_paths.py` holds to the tables of the packet engine. A message is delivered after its last byte
by the delays of its path and no more than some packets' time: that bracket is asserted, and what each case contained is
counted.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field, replace
from random import Random

import numpy as np
import pytest
from helpers.cases import Saw, case_count
from helpers.kept_seeds import kept_first
from helpers.tiny import Message, flow_input_of, sends, wired
from laws.test_fluid import textbook
from numpy.typing import NDArray

from weftwork.base.clock import US_PS
from weftwork.base.random import Stream, draw
from weftwork.engine.flow import run as flow
from weftwork.engine.flow.paths import FlowPaths
from weftwork.engine.instants import Fault
from weftwork.spec.fabric import Fabric

pytestmark = pytest.mark.sanitize

CASES = case_count(plain=30, deep=600)
WANTED = CASES // 10
HOSTS, LEAVES, SPINES = 6, 3, 2
LEAF_NODES = range(HOSTS, HOSTS + LEAVES)
RATES_BPS = (100 * 10**9, 200 * 10**9, 400 * 10**9)
PACKET_BYTES, FIRST_EXTRA_BYTES = 4096 + 82, 16
MODES = {"spray": "spray", "ecmp": "hashed", "destination-modulo": "deterministic"}


@dataclass(frozen=True, kw_only=True)
class Case:
    fabric: Fabric
    selection: str
    messages: list[Message]
    faults: list[Fault]
    reconvergence_ps: int


def random_case(seed: int) -> Case:
    rng = Random(f"flow faults {seed}")
    first = HOSTS + LEAVES
    links = [(host, HOSTS + host % LEAVES) for host in range(HOSTS)]
    links += [(HOSTS + leaf, first + spine) for leaf in range(LEAVES) for spine in range(SPINES) for _ in range(2)]
    is_even = rng.random() < 0.5
    rates = [RATES_BPS[2] if is_even else rng.choice(RATES_BPS) for _ in links]
    fabric = wired(links, hosts=HOSTS, rates_bps=rates, delays_ps=[rng.randrange(1_000, 50_000) for _ in links])
    tier = np.repeat([0, 1, 2], [HOSTS, LEAVES, SPINES])
    if rng.random() < 0.7:
        fabric = replace(fabric, node_tier=tier.astype(fabric.node_tier.dtype))
    messages = []
    for _ in range(rng.randint(2, 8)):
        source, destination = rng.sample(range(HOSTS), 2)
        at_ps = rng.choice((0, rng.randrange(50 * US_PS)))
        channel = rng.choice((0, 0, 1))
        size_bytes = 4096 * rng.randint(200, 1_500)
        messages.append(
            Message(source=source, destination=destination, size_bytes=size_bytes, at_ps=at_ps, channel=channel)
        )
    faults: list[Fault] = []
    for link in rng.sample(range(HOSTS, len(links)), rng.randint(1, 4)):
        at_ps = rng.randrange(60 * US_PS)
        if rng.random() < 0.5:
            faults.append(Fault(at_ps=at_ps, event="degrade", link=link, rate_bps=rates[link] // rng.choice((2, 10))))
        else:
            faults.append(Fault(at_ps=at_ps, event="down", link=link))
            faults.append(Fault(at_ps=at_ps + rng.randrange(40 * US_PS), event="up", link=link))
    return Case(
        fabric=fabric,
        selection=rng.choice(sorted(MODES)),
        messages=messages,
        faults=sorted(faults, key=lambda fault: fault.at_ps),
        reconvergence_ps=rng.choice((0, 5 * US_PS, 30 * US_PS)),
    )


@dataclass
class Plain:
    """The second engine. Amounts are bytes on the wire, times float picoseconds.

    Attributes
    ----------
    capacity, up : by port and by link, as they are now
    shares : by message: ports and what each carries of it; None where there is no way
    left : bytes of the messages that flow, which are the heads of their connections
    """

    case: Case
    now_ps: float = 0.0
    found: Counter[str] = field(default_factory=Counter)

    def __post_init__(self) -> None:
        fabric = self.case.fabric
        self.capacity = fabric.links["rate_bps"][fabric.ports.link] / 8e12
        self.up = np.ones(len(fabric.links), np.bool_)
        self.router = FlowPaths(fabric, MODES[self.case.selection])  # type: ignore[arg-type]
        self.left: dict[int, float] = {}
        self.shares: dict[int, list[tuple[int, float]] | None] = {}
        self.waiting: dict[tuple[int, int, int], list[int]] = {}
        self.ended_ps: dict[int, float] = {}
        self.behind_ps: dict[int, tuple[float, float]] = {}

    def run(self) -> None:
        """Note when the last byte of each message has flowed, and in what bracket it is delivered after that."""
        agenda: list[tuple[float, int, str, object]] = []
        for number, message in enumerate(self.case.messages):
            agenda.append((message.at_ps, 2, "post", number))
        up, known = self.up.copy(), np.ones(len(self.up), np.bool_)
        for fault in self.case.faults:
            agenda.append((fault.at_ps, 0, "fault", fault))
            if fault.event != "degrade":
                up[fault.link] = fault.event == "up"
                if not (up == known).all():
                    known = up.copy()
                    agenda.append((fault.at_ps + self.case.reconvergence_ps, 1, "routes", known))
        agenda.sort(key=lambda row: row[:2])
        while agenda or self.left:
            rates = self.rates()
            ends = {n: self.now_ps + left / rates[n] for n, left in self.left.items() if rates[n] > 0}
            soonest = min(ends.values(), default=np.inf)
            if agenda and agenda[0][0] <= soonest:
                at_ps, _, what, detail = agenda.pop(0)
                self.flow_until(at_ps, rates)
                getattr(self, what)(detail)
            else:
                assert soonest < np.inf, "nothing flows and nothing will happen"
                self.flow_until(soonest, rates)
                for number in [n for n, end_ps in ends.items() if end_ps - soonest < 1]:
                    self.end(number)

    def rates(self) -> dict[int, float]:
        numbers = sorted(self.left)
        fabric = self.case.fabric
        capacity = np.append(np.where(self.up[fabric.ports.link], self.capacity, 0.0), 0.0)  # the last: no way at all
        classes = [self.shares[n] or [(len(capacity) - 1, 1.0)] for n in numbers]
        found = dict(zip(numbers, textbook(capacity, classes, [1] * len(numbers)).tolist(), strict=True))
        for number, rate in found.items():
            alone = min(capacity[port] / share for port, share in self.shares[number] or [(-1, 1.0)])
            self.found["a link that is shared"] += 0 < rate < 0.99 * alone
        return found

    def flow_until(self, at_ps: float, rates: dict[int, float]) -> None:
        for number in self.left:
            self.left[number] = max(0.0, self.left[number] - rates[number] * (at_ps - self.now_ps))
        self.now_ps = at_ps

    def post(self, number: int) -> None:
        message = self.case.messages[number]
        connection = self.waiting.setdefault((message.source, message.destination, message.channel), [])
        connection.append(number)
        if len(connection) == 1:
            self.begin(number)
        else:
            self.found["a message behind another"] += 1

    def begin(self, number: int) -> None:
        size = self.case.messages[number].size_bytes
        self.left[number] = size / 4096 * PACKET_BYTES + FIRST_EXTRA_BYTES
        self.shares[number] = self.way(number)

    def end(self, number: int) -> None:
        message = self.case.messages[number]
        del self.left[number]
        self.ended_ps[number] = self.now_ps
        self.behind_ps[number] = self.bracket(self.shares[number] or [])
        connection = self.waiting[message.source, message.destination, message.channel]
        connection.pop(0)
        if connection:
            self.begin(connection[0])

    def bracket(self, shares: list[tuple[int, float]]) -> tuple[float, float]:
        """All delays of a path and, of each step, up to three packets on its slowest link; rates only ever fell."""
        fabric = self.case.fabric
        steps: dict[tuple[bool, bool], list[int]] = {}  # leaf or not, at both ends of a link
        for port, _ in shares:
            ends = int(fabric.ports.node[port]), int(fabric.ports.node[fabric.ports.peer[port]])
            steps.setdefault((ends[0] in LEAF_NODES, ends[1] in LEAF_NODES and ends[0] >= HOSTS), []).append(port)
        least = most = 0.0
        for ports in steps.values():
            delays = fabric.links["delay_ps"][fabric.ports.link[ports]].tolist()
            least += min(delays)
            most += max(delays) + 3 * (PACKET_BYTES + FIRST_EXTRA_BYTES) / self.capacity[ports].min()
        return least, most

    def way(self, number: int) -> list[tuple[int, float]] | None:
        message = self.case.messages[number]
        base = self.case.fabric.ports.base
        identity = message.source << 40 | message.destination << 16 | message.channel
        found = self.router.paths(
            base[[message.source]],
            base[[message.destination]],
            entropy=np.array([0xC000 | draw(1, Stream.PATH_CHOICE, identity, 0, 0) & 0x3FFF]),
            destination_qp=np.array([draw(0, Stream.PATH_CHOICE, identity, 1, 0) & 0xFFFFFF]),
        )
        if not found.about["reachable"][0]:
            return None
        loads = self.router.port_loads(found, np.ones(1))
        return [(int(port), float(loads[port])) for port in np.flatnonzero(loads)]

    def fault(self, fault: Fault) -> None:
        ports = np.flatnonzero(self.case.fabric.ports.link == fault.link)
        crossing = [n for n in self.left if any(port in ports for port, _ in self.shares[n] or [])]
        if fault.event == "degrade":
            self.capacity[ports] = fault.rate_bps / 8e12
            self.found["a link degraded under way"] += bool(crossing)
            is_bundle = any(len(self.shares[n] or []) > 4 for n in crossing)
            self.found["a bundle with a degraded member"] += is_bundle
        else:
            self.up[fault.link] = fault.event == "up"
            self.found["a link that dies under way"] += fault.event == "down" and bool(crossing)

    def routes(self, live: NDArray[np.bool_]) -> None:
        self.router.use(live)
        for number in self.left:
            before = self.shares[number]
            self.shares[number] = self.way(number)
            self.found["another way under way"] += self.shares[number] != before


def test_messages_under_faults_flow_as_by_the_textbook(saw: Saw) -> None:
    found: Counter[str] = Counter()
    for seed in kept_first("test_flow_faults", range(CASES)):
        case = random_case(seed)
        engine_input = flow_input_of(
            case.fabric,
            sends(HOSTS, case.messages),
            port_selection=case.selection,
            faults=case.faults,
            reconvergence_delay_ps=case.reconvergence_ps,
            tolerance=1e-9,
        )
        got = flow.run(engine_input).packets
        plain = Plain(case)
        plain.run()

        def place(number: int, plain: Plain = plain) -> tuple[int, int, int, float]:
            """Messages of one connection are numbered as they were posted."""
            message = plain.case.messages[number]
            return message.source, message.destination, message.channel, plain.ended_ps[number]

        for row, number in zip(got.messages, sorted(plain.ended_ps, key=place), strict=True):
            assert int(row["size_bytes"]) == case.messages[number].size_bytes
            least_ps, most_ps = plain.behind_ps[number]
            behind_ps = float(row["delivered_at_ps"]) - plain.ended_ps[number]
            assert least_ps - 2 <= behind_ps <= most_ps + 2, f"case {seed}, message {number}: {behind_ps:,.0f} ps"
        found.update(name for name, count in plain.found.items() if count > 0)
        found[f"mode {case.selection}"] += 1
    saw(CASES, ", ".join(f"{name}: {found[name]}" for name in sorted(found)))
    assert len(found) == 6 + len(MODES)
    assert min(found.values()) >= WANTED, found
