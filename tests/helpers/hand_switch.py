"""A switch of four ports that a test drives: it holds their wires, and says where packets go and what is chosen.

Ports 0 and 1 are where packets come in, port 2 is where they go; class 0 is lossless, class 1 is not, unless a test
says so. Port 2 is paused where a test wants a queue.
"""

from __future__ import annotations

from collections.abc import Callable
from copy import copy
from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any

from helpers.by_hand import FRAME_PS, HandClock, HandWire, Tally, data, hand_port

from weftwork.engine.reference.forwarding import NextHop
from weftwork.engine.reference.packet import Packet
from weftwork.engine.reference.port import Port
from weftwork.engine.reference.port_choice import PortChoiceConfig
from weftwork.engine.reference.shared_buffer import BufferConfig, Ingress
from weftwork.engine.reference.switch import SwitchConfig, SwitchNode
from weftwork.policies.load import LoadedPolicy

IN, OTHER_IN, OUT, SPARE = 0, 1, 2, 3
LOSSLESS, LOSSY = 0, 1
NODE, SEED = 9, 7


class HandRoutes:
    """Where packets go: the next hops towards each attachment. NIC port 0 hangs at attachment 0, port 1 at 1.

    Attributes
    ----------
    ways : by attachment; those of 1 unless a test says so
    layers : the same by layer; by word and by entropy a layer has this very number
    edge : the attachment that the switch is; -1: none
    left : switches that are left behind each port
    """

    def __init__(self, *members: int, edge: int = -1, edges: int = 4) -> None:
        self.edge, self.edges = edge, edges
        self.ways: dict[int, list[NextHop]] = {1: [NextHop(port=member) for member in members]}
        self.layers: dict[int, dict[int, list[NextHop]]] = {}
        self.left = dict.fromkeys(range(4), 0)

    @property
    def has_layers(self) -> bool:
        return bool(self.layers)

    def edge_of(self, node: int) -> int:
        assert node == NODE
        return self.edge

    def edge_of_nic(self, port: int) -> int:
        return port

    def delivery(self, destination: int) -> NextHop:
        assert destination == 1
        return NextHop(port=SPARE)

    def layer_by_word(self, word: int) -> int:
        return word

    def layer_by_entropy(self, origin: int, destination: int, entropy: int) -> int:
        assert (origin, destination) == (0, 1)
        return entropy

    def next_hops(self, node: int, edge: int, layer: int) -> list[NextHop]:
        assert node == NODE
        return self.layers.get(layer, self.ways).get(edge, [])

    def hops_left(self, port: int, edge: int) -> int:
        return 10 * edge + self.left[port]

    def hops_between(self, edge: int, other: int) -> int:
        return 100 * edge + other

    def group_of_edge(self, edge: int) -> int:
        return 7 + edge

    def detour(self, from_edge: int, to_edge: int, draw: int) -> int:
        assert (from_edge, to_edge) == (0, 1)
        return draw % self.edges

    def channels(self, in_port: int, held: int, port: int) -> tuple[int, int]:
        return held, held + in_port + port

    def digit_of(self, port: int, destination: int) -> tuple[int, int]:
        return 100 + destination, 10 + port


class HandSelection:
    """A port selection that does what the test says, and remembers what it was shown.

    Attributes
    ----------
    choice : the candidate that it takes, unless ``on_step`` takes another
    on_step : called with signal, candidates and records of the ports
    signals, candidates : of each call
    shown : channel, word and via before each call
    """

    def __init__(
        self,
        *needs: str,
        always: bool = False,
        at_delivery: bool = False,
        waits_for_routes: bool = False,
        layer_by_word: bool = False,
    ) -> None:
        self.plugin = SimpleNamespace(
            needs=frozenset(needs),
            always=always,
            at_delivery=at_delivery,
            waits_for_routes=waits_for_routes,
            layer_by_word=layer_by_word,
        )
        self.choice = 0
        self.on_step: Callable[[Any, Any, Any], None] = lambda _signal, _candidates, _ports: None
        self.signals: list[Any] = []
        self.candidates: list[Any] = []
        self.shown: list[tuple[int, int, int]] = []
        self.kept: list[int] = []
        self.new_port_signal = LoadedPolicy.new_port_signal
        self.new_candidates = LoadedPolicy.new_candidates
        self.offer = LoadedPolicy.offer

    def new_state(self) -> Any:
        return object()

    def new_port_states(self, ports: int) -> Any:
        return [SimpleNamespace(seen=0) for _ in range(ports)]

    def call_step(self, state: Any, signal: Any, candidates: Any, ports: Any, *, via_changes: int) -> None:
        del state
        self.signals.append(copy(signal))  # the switch keeps its record, and fills it anew
        self.candidates.append([copy(row) for row in candidates])
        self.shown.append((signal.virtual_channel, signal.word, signal.via))
        self.kept.append(via_changes)
        signal.choice = self.choice
        self.on_step(signal, candidates, ports)


@dataclass
class Room:
    """Changes of a test that are no switch's but its links'."""

    room_ahead_bytes: int
    quantum_bytes: int


def own_fields(record: type, values: dict[str, Any]) -> dict[str, Any]:
    """Those of the values that a record has."""
    return {field.name: values[field.name] for field in fields(record) if field.name in values}


class Driven:
    """A switch of four ports with all that it sees."""

    def __init__(
        self, *, routes: HandRoutes | None = None, selection: HandSelection | None = None, **changes: Any
    ) -> None:
        self.clock, self.counted = HandClock(), Tally()
        self.routes, self.selection = routes or HandRoutes(OUT), selection or HandSelection("queue")
        values: dict[str, Any] = {
            "node": NODE,
            "seed": SEED,
            "tier": 1,
            "group": -1,
            "hash": (4, 0, 0, 63),
            "virtual_channels": 1,
            "shared_bytes": 10**9,
            "reserve_bytes": 0,
            "headroom_bytes": dict.fromkeys(range(4), 0),
            "alpha": 1.0,
            "egress_alpha": 1.0,
            "xon_offset_bytes": 0,
            "lossless": (True, False),
            "kmin_bytes": 10**9,
            "kmax_bytes": 10**9 + 1,
            "pmax": 1.0,
            "marks_at_dequeue": False,
            "has_telemetry": False,
            "path_load_ps": 0,
            "telemetry_hop_bytes": 0,
            "trim_bytes": 0,
            "trim_class": 0,
            "weights": (0, 0),
        }
        values |= changes
        for name in ("kmin_bytes", "kmax_bytes"):  # the same for all ports where one number is given
            if isinstance(values[name], int):
                values[name] = dict.fromkeys(range(4), values[name])
        values["choice"] = PortChoiceConfig(**own_fields(PortChoiceConfig, values))
        values["buffer"] = BufferConfig(**own_fields(BufferConfig, values))
        config = SwitchConfig(**own_fields(SwitchConfig, values))
        classes = len(config.weights)
        room = own_fields(Room, changes)
        self.ports = [
            hand_port(self.clock, self.counted, port, local_index=port, classes=classes, **room) for port in range(4)
        ]
        self.wires = [HandWire() for _ in self.ports]
        self.switch = SwitchNode(config, self.clock, self.ports, self.routes, self.selection)
        for port, wire in zip(self.ports, self.wires, strict=True):
            port.join(self.switch, wire)

    @property
    def out(self) -> Port:
        return self.ports[OUT]

    def holds(self, *classes: int) -> None:
        """The far end of port 2 lets nothing of these classes go."""
        for traffic_class in classes or range(self.switch.classes):
            self.out.pause_until_ps[traffic_class] = 10**15

    def lets_go(self, packets: int) -> None:
        """The far end of port 2 lets so many packets go, one after the other."""
        for _ in range(packets):
            self.out.pause_until_ps = [0] * self.switch.classes
            self.out.start()
            self.holds()
            self.clock.go_to(self.out.busy_until_ps)

    def takes(self, packets: int, port: int = IN, *, traffic_class: int = LOSSLESS, first: int = 0) -> list[Packet]:
        """So many full packets arrive at one instant."""
        arrived = [data(seq, traffic_class=traffic_class) for seq in range(first, first + packets)]
        for packet in arrived:
            self.ports[port].receive(packet)
        return arrived

    def ingress(self, port: int = IN, traffic_class: int = LOSSLESS) -> Ingress:
        """What the packets hold that came in by this port and class."""
        return self.switch.buffer.ingress[port][traffic_class]

    def asked(self, port: int = IN) -> list[str]:
        """Pause and resume frames that this port has sent."""
        self.clock.go_to(self.clock.now_ps + 10 * FRAME_PS)
        return ["pause" if quanta else "resume" for _, _, quanta in self.wires[port].pauses]

    def sent(self) -> list[Packet]:
        return [packet for _, packet in self.wires[OUT].packets]

    def queued(self, traffic_class: int = LOSSLESS) -> int:
        return len(self.switch.egress[OUT].queues[traffic_class])
