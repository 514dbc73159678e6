"""Memory of a fabric, known from its counts before it is built.

Leaves out: routes, engines and tables, which `weftwork.study.prepare.estimate` adds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.memory import memory_limit, memory_words

if TYPE_CHECKING:
    from collections.abc import Sequence

    from weftwork.spec.scenario.topology import FabricSize

__all__ = ["fabric_bytes", "refuse_size"]

# Measured with /usr/bin/time on leaf-spines and fat trees of 24,576 to 4,198,400 links: what the most memory grows by
LINK_BYTES: Final = 135
NODE_BYTES: Final = 60


def fabric_bytes(size: FabricSize) -> int:
    """Peak memory of building a fabric."""
    return LINK_BYTES * size.links + NODE_BYTES * size.nodes


def refuse_size(size: FabricSize | None, keys: Sequence[str]) -> None:
    """Refuse a fabric that does not fit into memory.

    None, an unknown size, passes.

    Parameters
    ----------
    size : of the fabric
    keys : of the section ``fabric`` that decide the size

    Raises
    ------
    ConfigError : it needs more than `weftwork.base.memory.memory_limit`
    """
    limit = memory_limit()
    if size is None or fabric_bytes(size) <= limit.limit_bytes:
        return
    text = (
        f"{plural(size.links, 'link')} between {plural(size.hosts, 'host')} and "
        f"{plural(size.switches, 'switch', 'switches')} need"
        f" {memory_words(fabric_bytes(size))} of memory, wanted at most {limit}; take less of"
        f" {', '.join(keys) or 'its hosts and switches'}"
    )
    raise ConfigError("fabric", [Mistake(path=f"fabric.{keys[0]}" if keys else "fabric", text=text)])
