"""Devices in a scenario: a catalogue model and fields that differ.

Fields are in the units of users. A field of `weftwork.spec.device` such as ``buffer_bytes`` is the key ``buffer``: the
unit goes, the value takes it.
Leaves out: the models themselves; the floor that knows the hardware catalogue puts the fields on top of a model.
"""
# ruff: noqa: ANN401 - annotations of a record's fields, and their values, are of any type

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from types import UnionType
from typing import Any, Literal, TypeVar, Union, get_args, get_origin

from annotated_types import Ge, Gt, Le, Lt
from pydantic import BaseModel, Field

from weftwork.base.fix import Fix, Settings
from weftwork.base.grammar import plural
from weftwork.base.units import DURATION, LENGTH, RATE, SIZE
from weftwork.spec.device import HashFunction, Nic, Record, Server, Switch
from weftwork.spec.scenario.effects import Effect
from weftwork.spec.scenario.kinds import Choice, Flag, Kind, Listing, Measure, Number, Section, Text, Whole
from weftwork.spec.scenario.rows import KeyRow

__all__ = [
    "DeviceChoice",
    "NodeModel",
    "device_mistakes",
    "device_rows",
    "gpu_mistake",
    "hash_mistakes",
    "user_key",
]

_R = TypeVar("_R", bound=BaseModel)

_QUANTITIES = {"_bytes": SIZE, "_bps": RATE, "_ps": DURATION, "_m": LENGTH}


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
    gpu : of the catalogue, the one that it holds; None: any
    pod_link_rate_bps : of a link between two chips of a pod; None: a server is no chip of a pod
    """

    server: Server = Server()
    nic: str = "plain"
    nic_port_rate_bps: int = 400_000_000_000  # IEEE 802.3bs
    rails: int = 0
    gpu: str | None = None
    pod_link_rate_bps: int | None = None


def gpu_mistake(gpu: str, node: str, nodes: Mapping[str, NodeModel], *, node_key: str) -> tuple[str, Fix] | None:
    """Find out whether a server holds a GPU; None where it does, and where nothing is known of the server.

    Parameters
    ----------
    gpu, node : of the catalogues
    nodes : servers of the catalogue by name
    node_key : dotted key that names the server, such as ``fabric.node``

    Returns
    -------
    what is wrong, and the nearest fix: another server of as many GPUs and NIC ports with this GPU, or this server's GPU
    """
    model = nodes.get(node)
    if model is None or model.gpu is None or model.gpu == gpu:
        return None
    holders = [name for name, other in nodes.items() if other.gpu == gpu]
    verb = "holds" if len(holders) == 1 else "hold"
    others = f"{', '.join(holders)} {verb} '{gpu}', and " if holders else ""
    text = f"found '{gpu}', wanted '{model.gpu}', the GPU of node '{node}'; {others}plain holds any GPU"
    counts = model.server.gpus, model.server.nic_ports
    alike = [name for name in holders if (nodes[name].server.gpus, nodes[name].server.nic_ports) == counts]
    return text, Settings(((node_key, alike[0]),)) if alike else model.gpu


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
        text, source, absent, effect = _described(record, field)
        kind = _kind(field, info.annotation, info.metadata)
        if isinstance(kind, Listing) and info.default == ():
            kind = replace(kind, may_be_empty=True)
        default = None if info.default is None or isinstance(kind, Section) else _default_text(kind, info.default)
        rows[field] = KeyRow(
            key=user_key(field),
            field=field,
            kind=kind,
            default=default,
            absent=absent,
            text=text,
            source=source,
            effect=effect,
        )
    return rows


def _described(record: type[BaseModel], field: str) -> tuple[str, str, str, Effect]:
    """Meaning of a field, source of its default, what holds without one, and the runs in which it has an effect."""
    extra: Any = record.model_fields[field].json_schema_extra
    return extra["text"], extra["source"], extra["absent"], extra["effect"]


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
