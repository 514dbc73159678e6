"""A fabric built in Python, in place of the scenario's fabric.

It is checked, and kept with the run as a file.

Its JSON goes into the run folder as ``fabric.json``, and the scenario that is written names that file: the folder alone
says what ran.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from weftwork.study.prepare.prepare import read_scenario
from weftwork.topology.export import to_json
from weftwork.topology.given import checked_fabric

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["FILE", "GivenFabric", "with_fabric"]

FILE: Final = "fabric.json"


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenFabric:
    """A fabric from Python, as the run uses it, and as JSON."""

    fabric: Fabric
    text: str


def with_fabric(
    scenario: str | Path | Mapping[str, object],
    fabric: Fabric,
    overrides: Mapping[str, object] | None,
    *,
    user_code: bool = True,
) -> tuple[Scenario, GivenFabric]:
    """Read a scenario with a fabric in place of its section.

    The file may lack the section.

    Parameters
    ----------
    scenario : a file or a dict
    fabric : from `weftwork.topology`
    overrides : as in `read_scenario`
    user_code : as in `read_scenario`

    Raises
    ------
    ConfigError : with all mistakes of the scenario, or all of the fabric
    """
    checked = checked_fabric(fabric)
    given = GivenFabric(fabric=checked, text=to_json(checked))
    section = {"fabric": {"file": FILE}}
    later = frozenset({"fabric.file"})  # written with the run's folder
    return read_scenario(scenario, {**(overrides or {}), **section}, user_code=user_code, later_files=later), given
