"""The captured link of a run.

It is found by its name and written as pcapng; a run without packets is refused.

Leaves out: what a frame looks like, see `weftwork.study.run.captured_frames`.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake, UsageError
from weftwork.base.nearest import nearest
from weftwork.engine.capture import CaptureRequest
from weftwork.engine.packet_input import PacketInput
from weftwork.spec.fidelities import FIDELITIES
from weftwork.spec.scenario.choices import TRANSPORTS
from weftwork.spec.scenario.kind_reading import either
from weftwork.study.prepare.faults import MOST_COMPARED, named_mistake
from weftwork.study.run.captured_frames import CapturedFrames
from weftwork.topology.port_names import port_names
from weftwork.wire.pcapng import encode_pcapng

if TYPE_CHECKING:
    from collections.abc import Iterator

    from weftwork.engine.outcome import Outcome
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario
    from weftwork.spec.wire_format import WireFormat
    from weftwork.study.prepare.prepared import Prepared

__all__ = ["DEFAULT_PACKETS", "MOST_PACKETS", "CapturedLink", "capture_request", "refuse_capture", "written_capture"]

DEFAULT_PACKETS: Final = 10_000  # chosen: 42 MB of 4 KiB packets, which Wireshark opens at once
MOST_PACKETS: Final = 1_000_000  # chosen: 4 GB of 4 KiB packets, and 1 GB of memory while the run goes on
_NOT_IN_NAMES: Final = re.compile(r"[^A-Za-z0-9._-]+")


@dataclass(frozen=True, kw_only=True, slots=True)
class CapturedLink:
    """The link to capture, and its limits.

    Parameters
    ----------
    name : of a link, both of whose directions are captured, or of a port, such as ``leaf0->spine1``
    packets : the most that are kept, the earliest
    """

    name: str
    packets: int = DEFAULT_PACKETS

    @property
    def file(self) -> str:
        """Name of the capture in the run folder."""
        return f"capture-{_NOT_IN_NAMES.sub('-', self.name.replace('->', '-to-')).strip('-')}.pcapng"


def refuse_capture(scenario: Scenario, link: CapturedLink) -> None:
    """Refuse a capture before anything is prepared.

    Raises
    ------
    ConfigError : the run has no packets, or the limit is none
    """
    mistakes = []
    if not FIDELITIES[scenario.engine.fidelity].has_packets:
        text = "flows have no packets to capture; set engine.fidelity: packet"
        mistakes.append(Mistake(path="--capture", text=text))
    if not 1 <= link.packets <= MOST_PACKETS:
        text = f"found {link.packets}, wanted 1 to {MOST_PACKETS:,}"
        mistakes.append(Mistake(path="--capture-packets", text=text))
    if mistakes:
        raise ConfigError(scenario.source, mistakes)


def capture_request(prepared: Prepared, link: CapturedLink) -> CaptureRequest:
    """Find the captured ports.

    Raises
    ------
    ConfigError : the fabric has no such link or port, with the nearest name; or the transport has no wire format here
    """
    source, fabric = prepared.scenario.source, prepared.fabric
    if _wire_of(prepared) is None:
        captured = either(tuple(name for name in TRANSPORTS.names if TRANSPORTS[name].wire is not None))
        text = f"transport '{prepared.transport.name}' has no wire format here; captures are of {captured}"
        raise ConfigError(source, [Mistake(path="--capture", text=text)])
    return CaptureRequest(ports=_ports(source, fabric, link.name), packet_limit=link.packets)


def _wire_of(prepared: Prepared) -> WireFormat | None:
    """Wire format of the scenario's transport, if it offers one."""
    return TRANSPORTS.load(prepared.scenario.transport.protocol).wire


def _ports(source: str, fabric: Fabric, name: str) -> tuple[int, ...]:
    """Both ends of a link, or one port."""
    if "->" in name:
        names = port_names(fabric)
        if name in names:
            return (names.index(name),)
        fix = nearest(name, names if len(names) <= MOST_COMPARED else ())
    else:
        _, wrong = named_mistake(fabric, "link", name)
        if wrong is None:
            link = fabric.link(name)
            (first,) = (fabric.ports.link == link).nonzero()
            return tuple(int(port) for port in first)
        fix = wrong[1]
    text = f"found '{name}', wanted a link such as {fabric.link_names[0]} or a port such as {_first_port(fabric)}"
    raise ConfigError(source, [Mistake(path="--capture", text=text, fix=fix)])


def _first_port(fabric: Fabric) -> str:
    ends = fabric.node_names[int(fabric.ports.node[0])], fabric.node_names[int(fabric.ports.node[fabric.ports.peer[0]])]
    return "->".join(ends)


def written_capture(prepared: Prepared, outcome: Outcome, link: CapturedLink) -> tuple[dict[str, Any], Iterator[bytes]]:
    """Convert the captured packets to a file.

    Parameters
    ----------
    prepared : what ran, on packets
    outcome : with what was captured
    link : that was captured

    Returns
    -------
    what the provenance says of it, and the pieces of the file
    """
    wire = _wire_of(prepared)
    if not isinstance(prepared.engine_input, PacketInput) or wire is None:
        raise UsageError("only a run of packets with a wire format can be captured")
    frames = CapturedFrames(prepared.engine_input, outcome, prepared.fabric, wire)
    notes = frames.without_wire_form()
    named = f" Without a wire form in {wire.name}: {'; '.join(notes)}." if notes else ""
    comment = f"Simulated by Weftwork: {prepared.scenario.name}, {link.name}. {_SYNTHETIC}{named}"
    about = {
        "link": link.name,
        "file": link.file,
        "packets": frames.count,
        "left_out": outcome.captured_left_out,
        "wire_format": wire.name,
        "without_wire_form": notes,
    }
    return about, encode_pcapng(frames, comment=comment)


_SYNTHETIC: Final = "Times are simulated, from the start of the run; payloads are zeros, addresses are made up."
