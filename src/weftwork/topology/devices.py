"""Devices as users give them, to records and their caveats.

A device is a name, a mapping with fields that differ, or a record.
Leaves out: where the figures come from, which `weftwork.hardware.catalogue` knows.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from weftwork.base.caveat import Caveat, caveats_by_subject
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest_key
from weftwork.base.units import RATE, format_quantity
from weftwork.hardware import catalogue
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import Fabric
from weftwork.spec.scenario.devices import DeviceChoice, NodeModel, device_mistakes

__all__ = ["Device", "nic_of", "node_of", "switch_of", "unfed_links", "with_fields"]

_R = TypeVar("_R", bound=BaseModel)
Device = str | Mapping[str, Any] | BaseModel


def switch_of(device: Device, rates_bps: list[int]) -> tuple[Switch, dict[str, Caveat]]:
    """The switch's record, and its unverified figures."""
    if isinstance(device, Switch):
        return device, catalogue.switch_caveats(device.name)
    name, fields = _named(device)
    catalogue.ports_at(name, max(rates_bps, default=None))  # refuses links faster than the fastest port
    base = catalogue.switch(name, port_rate_bps=min(rates_bps, default=None))
    record = _over(base, fields, "fabric.switch")
    return record, _without(catalogue.switch_caveats(name), name, fields)


def nic_of(device: Device) -> tuple[Nic, dict[str, Caveat]]:
    """The NIC's record, and its unverified figures."""
    if isinstance(device, Nic):
        return device, catalogue.nic_caveats(device.name)
    name, fields = _named(device)
    return _over(catalogue.nic(name), fields, "fabric.nic"), _without(catalogue.nic_caveats(name), name, fields)


def node_of(device: Device) -> tuple[NodeModel, dict[str, Caveat]]:
    """The server with the user's fields, its defaults, and its unverified figures.

    Raises
    ------
    ConfigError : no such server, no such field, or fields that contradict each other
    """
    if isinstance(device, Server):
        return NodeModel(server=device), catalogue.node_caveats(device.name)
    name, fields = _named(device)
    model = catalogue.node(name)
    server = _over(model.server, fields, "fabric.node")
    if mistakes := device_mistakes(server):
        raise ConfigError("fabric", [Mistake(path=f"fabric.node.{key}", text=text) for key, text in mistakes])
    caveats = _without(catalogue.node_caveats(name), name, fields)
    if "nvlink_rate_bps" in fields:
        caveats = {
            key: text
            for key, text in caveats.items()
            if not key.startswith((f"{name}.nvlink_raw", f"{name}.nvlink_eff"))
        }
    return model.model_copy(update={"server": server}), caveats


def unfed_links(link_rate_bps: int, nic: Nic, server: str = "") -> dict[str, Caveat]:
    """What the links to hosts cannot get from a NIC: they are faster than its port, or than its host interface.

    Parameters
    ----------
    link_rate_bps : of a link
    nic : behind it
    server : that has the NIC
    """
    card_bps = catalogue.nic_rates_bps().get(nic.name)
    has = {"ports": card_bps, "PCIe": nic.pcie_rate_bps or None}
    less = [f"{word} of {format_quantity(RATE, rate)}" for word, rate in has.items() if rate and rate < link_rate_bps]
    if not less:
        return {}
    fitting = catalogue.nic_for_rate(link_rate_bps, like=nic.name)
    mending = f"fabric.nic: {fitting} feeds them" if fitting else "no NIC of the catalogue feeds them"
    if fitting and catalogue.is_custom_nic(server, fitting):
        mending += f" and is custom: '{server}' is not sold with it"
    text = (
        f"links to hosts of {format_quantity(RATE, link_rate_bps)} (fabric.link_rate) behind '{nic.name}', which has"
        f" {' and '.join(less)} and cannot feed them; {mending}"
    )
    return caveats_by_subject([Caveat(subject="fabric.link_rate", kind="mismatch", text=text)])


def with_fields(
    fabric: Fabric, *, switch: Device | None = None, nic: Device | None = None, node: Device | None = None
) -> Fabric:
    """Set fields in every device of a fabric.

    Parameters
    ----------
    fabric : with its devices, such as one from a file
    switch, nic, node : a mapping of fields that every switch, NIC or server takes; None: none

    Raises
    ------
    ConfigError : a model, an unknown field, or fields that contradict those of a device
    """
    asked = {"switch": (switch, fabric.switches), "nic": (nic, fabric.nics), "node": (node, fabric.servers)}
    made: dict[str, tuple[Any, ...]] = {}
    caveats = dict(fabric.caveats)
    mistakes: list[Mistake] = []
    for key, (device, records) in asked.items():
        fields = {} if device is None else _fields_alone(device, key)
        made[key] = tuple(_over(record, fields, f"fabric.{key}") for record in records) if fields else records
        for record in made[key] if fields else ():
            caveats = _without(caveats, record.name, fields)
            mistakes += [Mistake(path=f"fabric.{key}.{at}", text=text) for at, text in device_mistakes(record)]
    if mistakes:
        raise ConfigError("fabric", list(dict.fromkeys(mistakes)))
    return replace(fabric, switches=made["switch"], nics=made["nic"], servers=made["node"], caveats=caveats)


def _fields_alone(device: Device, key: str) -> dict[str, Any]:
    """Fields without a model, which a fabric that has its devices does not take."""
    fields: object = device
    if isinstance(device, DeviceChoice):
        fields = device.model or device.fields
    if isinstance(fields, Mapping) and not {"name", "model"} & set(fields):
        return dict(fields)
    text = f"found {device!r}, but the fabric has its devices; wanted a mapping of fields alone"
    raise ConfigError("fabric", [Mistake(path=f"fabric.{key}", text=text)])


def _named(device: Device) -> tuple[str, dict[str, Any]]:
    """Catalogue name and fields that differ, from any form of a device."""
    if isinstance(device, str):
        return device, {}
    fields = dict(device) if isinstance(device, Mapping) else device.model_dump()
    if set(fields) == {"model", "fields"}:  # a device as `weftwork.spec.scenario.devices` resolves it
        return str(fields["model"]), dict(fields["fields"])
    return str(fields.pop("name", None) or fields.pop("model", None) or "plain"), fields


def _over(base: _R, fields: Mapping[str, Any], path: str) -> _R:
    """``base`` with some fields replaced, at any depth."""

    def merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
        return {**old, **{key: merged(old[key], value) if isinstance(value, Mapping) and isinstance(old.get(key), dict)
                          else value for key, value in new.items()}}  # fmt: skip

    try:
        return type(base).model_validate(merged(base.model_dump(), fields))
    except ValidationError as wrong:
        known = list(type(base).model_fields)
        mistakes = [
            Mistake(
                path=".".join([path, *(str(part) for part in error["loc"])]),
                text=f"found {error['input']!r}: {error['msg'].lower()}",
                fix=nearest_key(str(error["loc"][-1]), known) if error["type"] == "extra_forbidden" else None,
            )
            for error in wrong.errors()
        ]
        raise ConfigError("fabric", mistakes) from wrong


def _without(caveats: dict[str, Caveat], name: str, fields: Mapping[str, Any]) -> dict[str, Caveat]:
    """Facts about figures that the user has not replaced."""
    own = {f"{name}.{key}" for key in fields} | {f"{name}.ecn_{key}" for key in fields.get("ecn", {})}
    return {key: text for key, text in caveats.items() if key not in own}
