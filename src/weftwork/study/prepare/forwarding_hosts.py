"""Refuse to run a job on a fabric whose hosts forward packets of others, as in a BCube.

Leaves out: counts, pictures and cost of such a fabric, which need no run.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["refuse_forwarding_hosts"]


def refuse_forwarding_hosts(scenario: Scenario, fabric: Fabric) -> None:
    """Refuse a fabric whose hosts forward, because hosts of the engines do not.

    Parameters
    ----------
    scenario : whose key made the fabric
    fabric : of the scenario, or in its place

    Raises
    ------
    ConfigError : hosts forward
    """
    if not fabric.hosts_forward:
        return
    text = (
        f"'{fabric.name}' has servers that forward packets of others, and servers do not forward in the engines; "
        "weftwork topology and weftwork cost work with it; to run a job, take another topology, such as hyperx"
    )
    key = "fabric.topology" if scenario.fabric.file is None else "fabric.file"
    raise ConfigError(scenario.source, [Mistake(path=key, text=text)])
