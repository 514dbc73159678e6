"""Devices in a scenario: a catalogue model and fields that differ.

Fields are in the units of users. A field of `weftwork.spec.device` such as ``buffer_bytes`` is the key ``buffer``: the
unit goes, the value takes it.
Leaves out: the models themselves; the floor that knows the hardware catalogue puts the fields on top of a model.
"""
# ruff: noqa: ANN401 - annotations of a record's fields, and their values, are of any type

from __future__ import annotations

from dataclasses import replace
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, Field

from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, LENGTH, RATE, SIZE
from weftwork.spec.device import HashFunction, Nic, Record, Server, Switch
from weftwork.spec.scenario.kinds import Choice, Flag, Kind, Listing, Measure, Number, Section, Text, Whole
from weftwork.spec.scenario.rows import KeyRow
from weftwork.spec.scenario.software import SOFTWARE_ROWS

__all__ = ["DeviceChoice", "NodeModel", "device_mistakes", "device_rows", "hash_mistakes", "user_key"]

_R = TypeVar("_R", bound=BaseModel)

_QUANTITIES = {"_bytes": SIZE, "_bps": RATE, "_ps": DURATION, "_m": LENGTH}

# What each field says to a user, and where its default comes from; the records hold type, default and bounds.
_ROWS: dict[str, tuple[str, str]] = {
    "Switch.radix": ("Ports of the switch; 0 means as many as it has links.", "chosen: the fabric decides"),
    "Switch.forwarding_latency_ps": (
        "Fixed time from the last bit in to the packet's place in the egress queue.",
        "chosen: a round figure for a switch that stores and forwards",
    ),
    "Switch.buffer_bytes": (
        "Packet memory that all ports share.",
        "chosen: sonic-net/sonic-buildimage ships pools from 11 MB (7060CX) to 166 MB (7060X6)",
    ),
    "Switch.reserve_bytes": (
        "Memory that each port and priority in use has to itself.",
        "alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc: 4 KiB",
    ),
    "Switch.headroom_bytes": (
        "Room per port and lossless priority for what arrives after Xoff; left out, it follows from cable and rate.",
        "IEEE 802.1Q, buffer requirements for priority-based flow control",
    ),
    "Switch.alpha": (
        "A lossless ingress queue sends Xoff above alpha x free shared bytes.",
        "alibaba-edu/High-Precision-Congestion-Control, switch-mmu.cc: shift 3, 1/8",
    ),
    "Switch.xon_offset_bytes": (
        "Xon is sent when a queue is that far below its Xoff threshold.",
        "chosen: two frames of 4,160 B",
    ),
    "Switch.egress_alpha": (
        "A lossy egress queue drops above egress_alpha x free shared bytes.",
        "Choudhury and Hahne, IEEE/ACM ToN 6(2), 1998, doi:10.1109/90.664262: 1",
    ),
    "Switch.pause_quanta": (
        "Length of a pause in units of 512 bit times.",
        "IEEE 802.3, annex 31B; chosen: the largest",
    ),
    "Switch.ecn": ("ECN marking of the switch.", "see its keys"),
    "Switch.hash": ("The hash by which the switch spreads flows.", "see its keys"),
    "Switch.scheduling": ("Scheduling of the eight queues of an egress port.", "see its keys"),
    "Switch.telemetry": (
        "Whether the switch stamps queue, bytes, rate and time into packets (INT).",
        "chosen: few switches do",
    ),
    "Ecn.kmin_bytes": (
        "Queue length up to which nothing is marked.",
        "alibaba-edu/High-Precision-Congestion-Control, simulation/run.py: 100 KB x C/25G",
    ),
    "Ecn.kmax_bytes": (
        "Queue length from which everything is marked.",
        "alibaba-edu/High-Precision-Congestion-Control, simulation/run.py: 400 KB x C/25G",
    ),
    "Ecn.pmax": (
        "Probability of a mark just below kmax.",
        "alibaba-edu/High-Precision-Congestion-Control, run.py: 0.2",
    ),
    "Ecn.at": (
        "Whether the queue is looked at when a packet comes or when it leaves.",
        "chosen: most silicon marks at enqueue",
    ),
    "HashFunction.algorithm": (
        "Polynomial or function; crc and xor are affine, mix is not.",
        "chosen: CRC-32 is offered by all",
    ),
    "HashFunction.seed": ("Start value of the hash.", "sonic-net/sonic-buildimage, switch.json.j2: seeds of roles"),
    "HashFunction.offset": (
        "First bit of the hash that is used.",
        "sonic-net/sonic-buildimage, switch.json.j2: 0 and 10 on the lower two tiers; chosen: 20 on the third",
    ),
    "HashFunction.fields": ("Header fields that are hashed.", "the usual five; sonic-net/SONiC, hash design"),
    "Scheduling.weights": (
        "Weight of each priority, 0 to 7, in deficit round robin; 0 makes a queue strict.",
        "chosen: equal weights, control traffic strict",
    ),
    "Nic.receive_latency_ps": ("Fixed time from the last bit in to the NIC's handling of the packet.", "chosen: none"),
    "Nic.pcie_rate_bps": (
        "Rate of the host interface; 0bps means that the host is never the bottleneck.",
        "chosen: none",
    ),
    "Nic.pcie_latency_ps": ("Latency of the host interface.", "chosen: none"),
    "Nic.receive_buffer_bytes": ("Memory of the NIC for packets that wait for the host interface.", "chosen: 2 MB"),
    "Nic.xoff_bytes": (
        "Fill of the receive buffer above which the NIC sends Xoff.",
        "chosen: half of the receive buffer",
    ),
    "Nic.xon_bytes": ("Fill of the receive buffer below which the NIC sends Xon.", "chosen: 100 KB below Xoff"),
    "Nic.pause_quanta": ("Length of a pause in units of 512 bit times.", "IEEE 802.3, annex 31B; chosen: the largest"),
    "Server.gpus": ("GPUs of a server.", "chosen: the host of most papers has one"),
    "Server.nic_ports": (
        "Links from a server to the fabric: a multiple of its GPUs, or a divisor of their number.",
        "chosen: one NIC port",
    ),
    "Server.nvlink_domain_gpus": ("GPUs that NVLink joins, a divisor of gpus; 0 means no NVLink.", "chosen: none"),
    "Server.nvlink_rate_bps": (
        "Rate of a message between two GPUs of an NVLink domain, in one direction.",
        "chosen: none without NVLink",
    ),
    "Server.nvlink_latency_ps": ("Latency from GPU to GPU over NVLink, without software.", "chosen: none"),
    "Server.nvls": ("Whether the NVLink switch reduces and multicasts (NVLink SHARP).", "chosen: none without NVLink"),
    "Server.pcie_rate_bps": (
        "Rate of a GPU's PCIe, one direction, between GPUs that NVLink does not join.",
        "stas00/ml-engineering, compute/accelerator/README.md: PCIe 5 x16, 63 GB/s",
    ),
    "Server.pcie_latency_ps": ("Latency from GPU to GPU over PCIe, without software.", "chosen: none"),
    "Server.slice_bytes": (
        "Piece in which messages inside a server take turns on a port.",
        "chosen: a slice of NCCL's buffers",
    ),
    **SOFTWARE_ROWS,
}

# What it means to leave out a field that has no default.
_ABSENT = {
    "Switch.headroom_bytes": "from cable and rate",
    "Ecn.kmin_bytes": "100 KB x rate of the port / 25 Gb/s",
    "Ecn.kmax_bytes": "400 KB x rate of the port / 25 Gb/s",
    "HashFunction.seed": "by the switch's tier: 0, 10, 25, 40, 50",
    "HashFunction.offset": "by the switch's tier: 0, 10, 20, 5, 15; half of that for crc16-ccitt",
}


class DeviceChoice(Record):
    """A model of the catalogue, or ``plain``, and fields that differ.

    Beside a fabric file ``model`` is empty: every device is as the file says.

    ``fields`` has the field names and values of the device's record, nested as the record is.
    """

    model: str = "plain"
    fields: dict[str, Any] = Field(default_factory=dict)

    def on(self, base: _R) -> _R:
        """Return ``base`` with the fields of this choice set.

        Examples
        --------
        >>> DeviceChoice(fields={"ecn": {"kmin_bytes": 5_000}}).on(Switch()).ecn.kmin_bytes
        5000
        """
        return type(base).model_validate(_merged(base.model_dump(), self.fields))


class NodeModel(Record):
    """A server of the hardware catalogue, with its NIC, link rate and rails.

    Attributes
    ----------
    server : the record
    nic, nic_port_rate_bps : its NIC in the catalogue and the rate of a port; defaults of the links to hosts
    rails : leaves among which a rail-optimized fabric spreads its ports; 0: one for each GPU
    """

    server: Server = Server()
    nic: str = "plain"
    nic_port_rate_bps: int = 400_000_000_000  # IEEE 802.3bs
    rails: int = 0


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    return {
        **base,
        **{key: _merged(base[key], value) if isinstance(value, dict) else value for key, value in over.items()},
    }


def user_key(field: str) -> str:
    """Return the user's key of a field: its name without unit.

    The verb is removed too: ``buffer`` stands for ``buffer_bytes``.

    Examples
    --------
    >>> user_key("forwarding_latency_ps"), user_key("alpha")
    ('forwarding_latency', 'alpha')
    >>> user_key("has_fused_experts")
    'fused_experts'
    """
    field = field.removeprefix("has_")
    for suffix in _QUANTITIES:
        if field.endswith(suffix):
            return field.removesuffix(suffix)
    return field


def device_rows(record: type[BaseModel]) -> dict[str, KeyRow]:
    """Make the rows of a device's record from its fields.

    ``name`` has no row because ``model`` sets it.
    """
    rows: dict[str, KeyRow] = {}
    for field, info in record.model_fields.items():
        if field == "name":
            continue
        text, source = _ROWS[f"{record.__name__}.{field}"]
        kind = _kind(field, info.annotation, info.metadata)
        if isinstance(kind, Listing) and info.default == ():
            kind = replace(kind, may_be_empty=True)
        default = None if info.default is None or isinstance(kind, Section) else _default_text(kind, info.default)
        absent = _ABSENT.get(f"{record.__name__}.{field}", "")
        rows[field] = KeyRow(
            key=user_key(field), field=field, kind=kind, default=default, absent=absent, text=text, source=source
        )
    return rows


def _default_text(kind: Any, value: Any) -> Any:
    written = kind.write(value)
    return tuple(written) if isinstance(written, list) else written


def _kind(field: str, annotation: Any, metadata: list[Any]) -> Kind:
    if get_origin(annotation) in {Union, UnionType}:
        annotation = next(part for part in get_args(annotation) if part is not type(None))
    if get_origin(annotation) is Literal:
        return Choice(options=get_args(annotation))
    if get_origin(annotation) is tuple:
        first, *others = get_args(annotation)
        if others == [Ellipsis]:
            return Listing(item=Choice(options=get_args(first)))
        return Listing(item=Whole(high=1_000, unit="weight"), length=1 + len(others))
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return Section(model=annotation)
    low = next((bound.ge for bound in metadata if isinstance(bound, Ge)), None)
    above = next((bound.gt for bound in metadata if isinstance(bound, Gt)), None)
    high = next((bound.le for bound in metadata if isinstance(bound, Le)), None)
    below = next((bound.lt for bound in metadata if isinstance(bound, Lt)), None)
    if annotation is bool:
        return Flag()
    if annotation is str:
        return Text()
    if annotation is float:
        return Number(low=_float(low), high=_float(high), above=_float(above))
    lowest = int(str(low)) if low is not None else int(str(above)) + 1 if above is not None else 0
    highest = int(str(high)) if high is not None else int(str(below)) - 1 if below is not None else None
    for suffix, quantity in _QUANTITIES.items():
        if field.endswith(suffix):
            return Measure(quantity=quantity, low=lowest, high=highest)
    return Whole(low=lowest) if highest is None else Whole(low=lowest, high=highest)


def _float(bound: Any) -> float | None:
    return None if bound is None else float(bound)


def device_mistakes(device: Switch | Nic | Server) -> list[tuple[str, str]]:
    """Find fields of one device that contradict each other.

    Returns
    -------
    pairs of the dotted key as a user writes it, such as ``ecn.kmin``, and what is wrong
    """
    if isinstance(device, Server):
        return _server_mistakes(device)
    found: list[tuple[str, str]] = []
    if isinstance(device, Nic):
        if device.xon_bytes > device.xoff_bytes:
            found.append(("xon", f"found {device.xon_bytes:,} B, wanted at most xoff, {device.xoff_bytes:,} B"))
        if device.xoff_bytes > device.receive_buffer_bytes:
            found.append(
                (
                    "xoff",
                    f"found {device.xoff_bytes:,} B, wanted at most receive_buffer, {device.receive_buffer_bytes:,} B",
                )
            )
        return found
    kmin, kmax = device.ecn.kmin_bytes, device.ecn.kmax_bytes
    if kmin is not None and kmax is not None and kmin > kmax:
        found.append(("ecn.kmin", f"found {kmin:,} B, wanted at most kmax, {kmax:,} B"))
    if device.reserve_bytes > device.buffer_bytes:
        found.append(("reserve", f"found {device.reserve_bytes:,} B, wanted at most buffer, {device.buffer_bytes:,} B"))
    if device.headroom_bytes is not None and device.headroom_bytes > device.buffer_bytes:
        found.append(
            ("headroom", f"found {device.headroom_bytes:,} B, wanted at most buffer, {device.buffer_bytes:,} B")
        )
    return found + [(f"hash.{key}", text) for key, text in hash_mistakes(device.hash)]


def hash_mistakes(function: HashFunction) -> list[tuple[str, str]]:
    """Find contradictions between the fields of a hash.

    Returns
    -------
    pairs of the key and what is wrong
    """
    found: list[tuple[str, str]] = []
    if len(set(function.fields)) < len(function.fields):
        found.append(("fields", "a field stands twice"))
    if function.offset is not None and function.offset >= function.bits:
        has = f"a {function.algorithm} has {function.bits} bits"
        text = f"found {function.offset}, wanted at most {function.bits - 1}: {has}"
        found.append(("offset", text))
    return found


def _server_mistakes(server: Server) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    gpus, ports, domain = server.gpus, server.nic_ports, server.nvlink_domain_gpus
    if ports % gpus and gpus % ports:
        found.append(("nic_ports", f"found {ports}, wanted a multiple or a divisor of the {plural(gpus, 'GPU')}"))
    if domain and gpus % domain:
        found.append(
            ("nvlink_domain_gpus", f"found {domain}, wanted a divisor of the {plural(gpus, 'GPU')}, or 0 for no NVLink")
        )
    if domain > 1 and not server.nvlink_rate_bps:
        found.append(("nvlink_rate", "found 0bps, wanted a rate, since there are NVLink domains"))
    if server.nvls and not domain:
        found.append(("nvls", "found true, wanted false, since there is no NVLink domain"))
    return found
