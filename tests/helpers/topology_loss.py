"""A small fabric that loses parts, and what the terminal prints of what is left."""

from __future__ import annotations

from io import StringIO

from rich.console import Console

from weftwork.cli.topology_loss import print_loss
from weftwork.spec.fabric import Fabric
from weftwork.topology.build import fabric_of
from weftwork.topology.without import measure_loss

FABRIC = fabric_of(topology="leaf-spine", leaves=4, spines=4, hosts_per_leaf=4)


def console() -> tuple[Console, StringIO]:
    text = StringIO()
    return Console(file=text, width=110, highlight=False), text


def told(fabric: Fabric, names: list[str]) -> str:
    out, text = console()
    print_loss(out, fabric, measure_loss(fabric, names))
    return text.getvalue()
