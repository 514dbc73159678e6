"""A topology of a user's own: a circle of switches, as a file that a scenario names."""

from __future__ import annotations

from pathlib import Path

__all__ = ["DESIGN", "DESIGN_FIELD", "LIMITS", "write_circle"]

LIMITS = """

def limits(measured):
    size = DirectSize(
        words="1,000 switches", endpoints=1_000 * measured.hosts, switches=1_000, switch_links=1_000, diameter_links=500
    )
    ends = "Its numbers of switches end a circle: 1,000 of them"
    return DirectLimits(family="circle", ports=measured.ports, ends=ends, sizes=(size,))
"""
DESIGN = """

def shape_for(asked):
    if asked.radix is None or asked.ports + 2 > asked.radix:
        return None
    return {"switches": max(3, asked.servers), "hosts_per_switch": 1}
"""
DESIGN_FIELD = 'design=DesignSpace(shape=shape_for, usual={"routing": "minimal"}),'
_CIRCLE = '''"""Circle: servers on each switch, and a link from each switch to the next.

Source: none. Leaves out: chords.
"""

from weftwork.spec.plug_in import *
from weftwork.topology.torus_lattice import TorusLattice, lattice_fabric, lattice_hosts


class Keys(Record):
    """The keys of a circle."""

    switches: int = row("switches", Whole(low=3, high=1_000), default=4, text="Switches.", source="none")
    hosts_per_switch: int = row("hosts_per_switch", Whole(low=1, high=64), default=1, text="Servers.", source="none")


def lattice(keys):
    return TorusLattice(sides=(keys.switches,), rings=(True,))


def resolve(keys, ground, found):
    return keys, lattice_hosts(lattice(keys), keys.hosts_per_switch, ground, found, "switches")


def build(keys, parts):
    return lattice_fabric(lattice(keys), parts, keys.hosts_per_switch, family="circle")
FUNCTIONS

TOPOLOGY = Topology(keys=Keys, resolve=resolve, build=build, FIELDS source="none")
'''


def write_circle(folder: Path, *, functions: str = "", fields: str = "") -> Path:
    """Write ``circle.py``, with further functions and fields of its record such as ``limits=limits,``."""
    file = folder / "circle.py"
    file.write_text(_CIRCLE.replace("FUNCTIONS", functions).replace("FIELDS", fields), encoding="utf-8")
    return file
