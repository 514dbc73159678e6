"""TPU pod: cubes of 4x4x4 chips, and slices of cubes behind optical circuit switches.

The fabric is one slice of the pod: a torus, or a twisted torus. A chip has its own switch with six links. Links inside
a cube are copper. Each of the 96 links at the faces of a cube goes to one of 48 optical switches, so that any healthy
cubes make the slice. Without optical switches, cubes are cabled in fixed positions, and a slice is a block of cubes
next to each other. A slice below one cube has no rings.
Source: Jouppi et al., ISCA 2023, arXiv:2304.01433, section 2; cloud.google.com/tpu/docs/v4 for shapes and rates.
Leaves out: the hosts of the chips and their data-centre network, and TPUs with two dimensions (v5e, v6e), whose pod is
a torus. A chip of another generation is a node of the catalogue, which brings the rates of its links.
"""

from __future__ import annotations

import math
import re
from typing import Final

import numpy as np

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.fabric import Fabric
from weftwork.spec.plug_in import (
    CubesOfPod,
    FabricSize,
    Findings,
    Flag,
    Ground,
    Listing,
    Parts,
    Record,
    Text,
    Topology,
    Whole,
    row,
)
from weftwork.topology.direct_fabric import direct_fabric, direct_size, hosts_that_fit
from weftwork.topology.optical_circuits import PALOMAR_PORTS, cube_places, optical_switches, through_optical
from weftwork.topology.torus_lattice import TorusLattice, shape_text
from weftwork.topology.tpu_slices import (
    Placed,
    chips_word,
    cubes_of,
    grid_of,
    is_part,
    largest_slice,
    place_slice,
    slice_lattice,
    slice_mistake,
)

__all__ = ["TOPOLOGY", "TpuPodKeys"]

SOURCE: Final = "Jouppi et al., ISCA 2023, arXiv:2304.01433, section 2"
PORTS_OF_A_CHIP: Final = 6  # links to neighbours
_CUBE: Final = re.compile(r"(?:cube)?([0-9]{1,4})")


class TpuPodKeys(Record):
    """The keys of a TPU pod."""

    slice: tuple[int, ...] | None = row(
        "slice",
        Listing(item=Whole(low=1, high=4_096, unit="chips")),
        absent="the largest slice of the healthy cubes",
        text="Chips along each of three dimensions, such as [8, 8, 16]: multiples of 4, or 1, 2 and 4 within one cube.",
        source="cloud.google.com/tpu/docs/v4",
    )
    twisted: bool = row(
        "twisted",
        Flag(),
        default=False,
        text="Whether the rings of short sides also shift; the slice is then K x K x 2K or K x 2K x 2K.",
        source="chosen: a regular torus, which every slice can be",
    )
    cubes: int = row(
        "cubes",
        Whole(low=1, high=1_024, unit="cubes"),
        default=64,
        text="Cubes of the pod, 64 chips each; an optical switch has two ports for each cube.",
        source=SOURCE,
    )
    failed_cubes: tuple[str, ...] = row(
        "failed_cubes",
        Listing(item=Text(longest=20), may_be_empty=True),
        default=(),
        text="Cubes that are down, such as [cube3, cube17]; other cubes of the pod take their places.",
        source="chosen: a healthy pod",
    )
    optical_switches: bool = row(
        "optical_switches",
        Flag(),
        default=True,
        text="Whether cubes are joined through optical switches; false: by fixed cables in the positions of the pod.",
        source=SOURCE,
    )
    optical_ports: int = row(
        "optical_ports",
        Whole(low=2, high=2_048, unit="ports"),
        default=PALOMAR_PORTS,
        text="Ports of an optical switch.",
        source=f"{SOURCE}.2: Palomar",
    )

    def failed(self) -> frozenset[int]:
        """Numbers of the failed cubes."""
        matches = (_CUBE.fullmatch(name) for name in self.failed_cubes)
        return frozenset(int(match[1]) for match in matches if match is not None)


def _resolve(keys: TpuPodKeys, ground: Ground, found: Findings) -> tuple[TpuPodKeys, int | None]:
    if keys.optical_switches and 2 * keys.cubes > keys.optical_ports:
        text = (
            f"found {keys.cubes:,}, wanted at most {keys.optical_ports // 2:,}: an optical switch has"
            f" {plural(keys.optical_ports, 'port')}, two for each cube"
        )
        found.wrong("cubes", text, str(keys.optical_ports // 2))
    for name in keys.failed_cubes:
        match = _CUBE.fullmatch(name)
        if match is None or int(match[1]) >= keys.cubes:
            found.wrong("failed_cubes", f"found '{name}', wanted cube0 to cube{keys.cubes - 1}")
    if not found.is_sound("slice", "twisted", "cubes", "failed_cubes", "optical_switches", "optical_ports"):
        return keys, ground.hosts
    failed = keys.failed()
    keys = keys.model_copy(update={"failed_cubes": tuple(f"cube{cube}" for cube in sorted(failed))})
    if keys.slice is None:
        largest = largest_slice(cubes=keys.cubes, failed=failed, has_optical=keys.optical_switches)
        if largest is None:
            found.wrong("failed_cubes", f"names all {plural(keys.cubes, 'cube')}; wanted at least one healthy cube")
            return keys, ground.hosts
        keys = keys.model_copy(update={"slice": largest})
    sides = keys.slice or ()
    if (wrong := slice_mistake(sides, is_twisted=keys.twisted)) is not None:
        text, near = wrong
        found.wrong("slice", text, None if near is None else _nearest_slice(keys, near))
        return keys, ground.hosts
    if keys.twisted and not keys.optical_switches:
        found.wrong("twisted", "found true, but fixed cables make no twist; it needs optical_switches: true", "false")
    if keys.twisted and is_part(sides):
        found.wrong("twisted", f"found true, but {chips_word(sides)} has no rings to shift", "false")
    if _placed(keys) is None:
        found.wrong("slice", *_does_not_fit(keys, sides))
        return keys, ground.hosts
    if ground.server is None:
        return keys, ground.hosts
    needed = ground.server.nic_ports + PORTS_OF_A_CHIP
    if ground.radix is not None and ground.radix < needed:
        text = f"found {ground.radix}, but a chip needs {needed}: {plural(ground.server.nic_ports, 'port')} to its host"
        found.wrong("radix", f"{text} and {PORTS_OF_A_CHIP} to neighbours", str(needed))
    return keys, hosts_that_fit(math.prod(sides) * ground.server.nic_ports, "slice", ground, found)


def _nearest_slice(keys: TpuPodKeys, sides: tuple[int, ...]) -> str | None:
    """The sides, or else the largest slice up to them, as a fix; None if the healthy cubes have neither."""
    if _placed(keys.model_copy(update={"slice": sides})) is not None:
        return str(list(sides))
    needed = math.prod(cubes_of(sides))
    largest = largest_slice(cubes=keys.cubes, failed=keys.failed(), has_optical=keys.optical_switches, most=needed)
    if largest is None or slice_mistake(largest, is_twisted=keys.twisted) is not None:
        return None
    return str(list(largest))


def _placed(keys: TpuPodKeys) -> Placed | None:
    return place_slice(
        keys.slice or (), cubes=keys.cubes, failed=keys.failed(), has_optical=keys.optical_switches
    )  # fmt: skip


def _does_not_fit(keys: TpuPodKeys, sides: tuple[int, ...]) -> tuple[str, str | None]:
    """Say why a slice does not fit, and which slice does."""
    failed = keys.failed()
    healthy = keys.cubes - len(failed)
    needed = math.prod(cubes_of(sides))
    largest = largest_slice(cubes=keys.cubes, failed=failed, has_optical=keys.optical_switches, most=needed)
    state = f"{healthy:,} of {plural(keys.cubes, 'cube is', 'cubes are')} healthy"
    if needed > healthy:
        why = f"but {state}"
    else:
        grid = shape_text(grid_of(keys.cubes))
        block = shape_text(cubes_of(sides))
        why = f"and {state}, but no block of {block} healthy cubes is left in the {grid} cubes of the pod"
    end = "" if largest is None else f"; the largest slice up to this size is {chips_word(largest)}"
    return f"found {chips_word(sides)}, {why}{end}", _nearest_slice(keys, sides)


def _lattice(keys: TpuPodKeys) -> tuple[TorusLattice, Placed]:
    placed = _placed(keys)
    sides = keys.slice or ()
    if placed is None:
        text, fix = _does_not_fit(keys, sides)
        raise ConfigError("fabric", [Mistake(path="fabric.slice", text=text, fix=fix)])
    return slice_lattice(sides, is_twisted=keys.twisted, rings=placed.rings), placed


def _size(keys: TpuPodKeys, parts: Parts) -> FabricSize:
    lattice, _ = _lattice(keys)
    return direct_size(parts, switches=lattice.switches, per_switch=parts.server.nic_ports, links=lattice.links)


def _build(keys: TpuPodKeys, parts: Parts) -> Fabric:
    lattice, placed = _lattice(keys)
    links = lattice.switch_links()
    has_optical = keys.optical_switches and not is_part(lattice.sides)
    kind = "twisted slice" if keys.twisted else "slice"
    return direct_fabric(
        parts,
        name=f"tpu-pod of {plural(keys.cubes, 'cube')}, {kind} {shape_text(lattice.sides)}",
        family="tpu-pod",
        dimensions=lattice.axes,
        switches=[("chip", lattice.switches)],
        per_switch=parts.server.nic_ports,
        links=links,
        axes=lattice.axes,
        sides=lattice.sides,
        coordinates=lattice.coordinates(),
        is_ordered=True,
        group=np.array(placed.cubes)[cube_places(lattice)],
        optical=optical_switches(through_optical(lattice, links), keys.optical_ports) if has_optical else None,
    )


def _cubes(keys: TpuPodKeys) -> CubesOfPod:
    return CubesOfPod(cubes=keys.cubes, failed=keys.failed(), slice=keys.slice)


TOPOLOGY: Final = Topology(
    keys=TpuPodKeys,
    resolve=_resolve,
    build=_build,
    size=_size,
    cubes=_cubes,
    source=SOURCE,
    # cloud.google.com/tpu/docs/v4: six links of 50 GB/s; a chip can send on all of them at once
    defaults={"link_rate": "2400Gbps", "fabric_rate": "400Gbps"},
)
