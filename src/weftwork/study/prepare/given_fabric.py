"""A fabric built in Python, in place of the scenario's fabric.

It is checked, and kept with the run as a file.

Its JSON goes into the run folder as ``fabric.json``, and the scenario that is written names that file: the folder alone
says what ran.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.spec.scenario.yaml_tree import Mapping as YamlMapping
from weftwork.spec.scenario.yaml_tree import Scalar, read_tree
from weftwork.study.prepare.prepare import read_scenario
from weftwork.topology.build import changed_fabric
from weftwork.topology.export import to_json
from weftwork.topology.given import checked_fabric

if TYPE_CHECKING:
    from weftwork.spec.fabric import Fabric
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["FILE", "GivenFabric", "with_fabric"]

FILE: Final = "fabric.json"

KEPT: Final = ("routing", "paths", "detour_bias", "cycles", "reconvergence_delay", "failover_delay")


@dataclass(frozen=True, kw_only=True, slots=True)
class GivenFabric:
    """A fabric from Python: as the run uses it, and as JSON without the changes that the scenario makes."""

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

    The file may lack the section. Of the section, keys about routes and their delays stay, see `KEPT`.

    Parameters
    ----------
    scenario : a file or a dict
    fabric : from `weftwork.topology`
    overrides : as in `read_scenario`; of the section ``fabric``, keys that a fabric file takes
    user_code : as in `read_scenario`

    Raises
    ------
    ConfigError : with all mistakes of the scenario, or all of the fabric
    """
    checked = checked_fabric(fabric)
    odd = [key for key in ("fabric", "fabric.file", "fabric.topology") if key in (overrides or {})]
    if odd:
        text = "means nothing beside a fabric from Python, which takes the place of the section; leave it out"
        raise ConfigError("overrides", [Mistake(path=key, text=text) for key in odd])
    section = {"fabric": {"file": FILE, **_kept(scenario)}}
    later = frozenset({"fabric.file"})  # written with the run's folder
    read = read_scenario(scenario, {**section, **(overrides or {})}, user_code=user_code, later_files=later)
    try:
        changed = changed_fabric(checked, read.fabric)
    except ConfigError as wrong:
        raise read.locate(wrong) from wrong
    return read, GivenFabric(fabric=changed, text=to_json(checked))


def _kept(scenario: str | Path | Mapping[str, object]) -> dict[str, object]:
    """Keys of the scenario's own section that hold for any fabric; a wrong file is judged when it is read."""
    if isinstance(scenario, Mapping):
        section = scenario.get("fabric")
        return {key: section[key] for key in KEPT if key in section} if isinstance(section, Mapping) else {}
    path = Path(scenario)
    if not path.is_file():
        return {}
    tree = read_tree(path.read_text(encoding="utf-8", errors="replace"), Findings())
    entry = tree.get("fabric") if isinstance(tree, YamlMapping) else None
    if entry is None or not isinstance(entry.node, YamlMapping):
        return {}
    return {one.key: one.node.value for one in entry.node.entries if one.key in KEPT and isinstance(one.node, Scalar)}
