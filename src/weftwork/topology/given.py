"""Check a fabric that a user built in Python.

A fabric in memory is checked as one from a file is.
Leaves out: the rules of fabrics themselves, which are in `weftwork.topology.assemble`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from weftwork.base.caveat import Caveat
from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.device import Nic, Server, Switch
from weftwork.spec.fabric import HOST, LINK_DTYPE, SWITCH, Fabric
from weftwork.topology.assemble import assemble
from weftwork.topology.build import overload_mistakes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

__all__ = ["checked_fabric"]

SOURCE = "fabric, given in Python"
_INDEX_LIMITS = {"node_tier": 127, "node_pod": 2**31 - 1}  # of the types that `Fabric` has them in


def checked_fabric(fabric: Fabric) -> Fabric:
    """Check a fabric and convert its columns to the types of engines.

    Parameters
    ----------
    fabric : of any origin

    Raises
    ------
    ConfigError : columns of a wrong shape or type, devices that do not exist, and all that `assemble` refuses
    """
    if mistakes := [
        *_part_mistakes(fabric),
        *_column_mistakes(fabric),
        *_link_mistakes(fabric),
        *_direct_mistakes(fabric),
    ]:
        raise ConfigError(SOURCE, mistakes)
    checked = assemble(
        name=fabric.name, node_names=fabric.node_names, node_kind=fabric.node_kind, node_tier=fabric.node_tier,
        node_device=fabric.node_device, links=fabric.links.astype(LINK_DTYPE), link_names=fabric.link_names,
        switches=fabric.switches, nics=fabric.nics, caveats=fabric.caveats, servers=fabric.servers,
        node_server=fabric.node_server, node_pod=fabric.node_pod, extras=fabric.extras, tree=fabric.tree,
        direct=fabric.direct, source=SOURCE,
    )  # fmt: skip
    if overload := overload_mistakes(checked):
        raise ConfigError(SOURCE, overload)
    return checked


def _part_mistakes(fabric: Fabric) -> Iterator[Mistake]:
    """Devices, names and caveats of a wrong type."""
    for name, kind in (("switches", Switch), ("nics", Nic), ("servers", Server)):
        for number, device in enumerate(getattr(fabric, name)):
            if not isinstance(device, kind):
                yield Mistake(path=f"{name}.{number}", text=f"found {device!r}, wanted a {kind.__name__}")
    for name in ("node_names", "link_names"):
        odd = next((each for each in getattr(fabric, name) if not isinstance(each, str)), None)
        if odd is not None:
            yield Mistake(path=name, text=f"found {odd!r}, wanted text")
    caveats: dict[str, object] = {**fabric.caveats}
    for subject, caveat in caveats.items():
        if not isinstance(caveat, Caveat):
            yield Mistake(path=f"caveats.{subject}", text=f"found {caveat!r}, wanted a Caveat")


def _column_mistakes(fabric: Fabric) -> Iterator[Mistake]:
    """Node columns with wrong type, length or range."""
    nodes = len(fabric.node_names)
    sound: dict[str, np.ndarray] = {}
    for name in ("node_kind", "node_tier", "node_device", "node_server", "node_pod"):
        column = getattr(fabric, name)
        if column is None and name in {"node_server", "node_pod"}:
            continue
        if not isinstance(column, np.ndarray) or column.dtype.kind not in "iu":
            yield Mistake(path=name, text=f"found {type(column).__name__}, wanted an array of whole numbers")
        elif column.shape != (nodes,):
            yield Mistake(path=name, text=f"found the shape {column.shape}, wanted ({nodes},), one for each node")
        else:
            sound[name] = column
    for name, most in _INDEX_LIMITS.items():
        least = -1 if name == "node_pod" else 0
        if name in sound and nodes and not least <= sound[name].min() <= sound[name].max() <= most:
            yield Mistake(path=name, text=f"found {sound[name].min()} to {sound[name].max()}, wanted {least} to {most}")
    if "node_kind" not in sound:
        return
    if odd := sorted({int(kind) for kind in np.unique(sound["node_kind"])} - {HOST, SWITCH}):
        yield Mistake(path="node_kind", text=f"found {odd[0]}, wanted {HOST} (host) or {SWITCH} (switch)")
        return
    for name, kind, devices in (
        ("node_device", HOST, fabric.nics),
        ("node_device", SWITCH, fabric.switches),
        ("node_server", HOST, fabric.servers),
    ):
        own = sound[name][sound["node_kind"] == kind] if name in sound else np.empty(0, np.int64)
        if len(own) and not 0 <= own.min() <= own.max() < len(devices):
            word = "hosts" if kind == HOST else "switches"
            text = f"found {own.min()} to {own.max()} for {word}, wanted 0 to {len(devices) - 1}"
            yield Mistake(path=name, text=text if devices else f"found {word}, but no device for them")


def _link_mistakes(fabric: Fabric) -> Iterator[Mistake]:
    """Mistakes of the link table: other columns, or too few or many names."""
    names = LINK_DTYPE.names or ()
    links: object = fabric.links  # whatever somebody has put there
    found = links.dtype.names if isinstance(links, np.ndarray) else None
    if found is None or set(found) != set(names) or fabric.links.ndim != 1:
        text = f"found {type(fabric.links).__name__} of {found}, wanted an array of links with {', '.join(names)}"
        yield Mistake(path="links", text=text)
    elif len(fabric.link_names) != len(fabric.links):
        text = f"found {plural(len(fabric.link_names), 'name')}, wanted {len(fabric.links)}, one for each link"
        yield Mistake(path="link_names", text=text)


def _direct_mistakes(fabric: Fabric) -> Iterator[Mistake]:
    """Mistakes of a direct network: columns of a wrong shape, or dimensions that it does not name."""
    direct = fabric.direct
    if direct is None:
        return
    links, nodes = len(fabric.links), len(fabric.node_names)
    shapes = {
        "link_dimension": (direct.link_dimension, (links,)),
        "link_wraps": (direct.link_wraps, (links,)),
        "coordinates": (direct.coordinates, (nodes, len(direct.axes))),
    }
    if direct.optical is not None:
        shapes["optical.link_switch"] = (direct.optical.link_switch, (links,))
    for name, (column, shape) in shapes.items():
        if column.shape != shape:
            yield Mistake(path=f"direct.{name}", text=f"found the shape {column.shape}, wanted {shape}")
    ranges: dict[str, tuple[NDArray[np.signedinteger], int]] = {
        "link_dimension": (direct.link_dimension, len(direct.dimensions))
    }
    if direct.optical is not None:
        ranges["optical.link_switch"] = (direct.optical.link_switch, len(direct.optical.names))
    for name, (values, count) in ranges.items():
        if len(values) and not -1 <= values.min() <= values.max() < count:
            yield Mistake(
                path=f"direct.{name}", text=f"found {values.min()} to {values.max()}, wanted -1 to {count - 1}"
            )
    if len(direct.sides) != len(direct.axes):
        yield Mistake(
            path="direct.sides", text=f"found {len(direct.sides)}, wanted {len(direct.axes)}, one for each axis"
        )
