"""Refuse to run a network whose hosts forward packets.

Leaves out: what such a network can be asked without a run: counts, limits, cost and pictures.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from weftwork.base.errors import ConfigError, Mistake

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["refuse_forwarding"]


def refuse_forwarding(scenario: Scenario, fabric: Fabric) -> None:
    """Refuse a fabric that no engine computes correctly.

    Parameters
    ----------
    scenario : whose fabric it is
    fabric : that is to be run

    Raises
    ------
    ConfigError : its hosts forward packets of other hosts
    """
    if fabric.direct is None or not fabric.direct.hosts_forward:
        return
    path = "fabric.topology" if scenario.fabric.file is None else "fabric.file"
    text = (
        f"found {fabric.direct.family}, in which servers forward packets of other servers; servers do not forward in"
        " either engine; weftwork topology and weftwork cost work; to run a job, wanted a topology whose switches join"
        " all servers"
    )
    raise ConfigError(scenario.source, [Mistake(path=path, text=text)])
