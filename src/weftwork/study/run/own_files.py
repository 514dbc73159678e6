"""The user's own Python files that a scenario chooses, for the provenance of a run."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from weftwork.base.folder import is_path
from weftwork.base.user_code import text_digest, text_of

if TYPE_CHECKING:
    from weftwork.spec.scenario.scenario import Scenario

__all__ = ["own_files"]


def own_files(scenario: Scenario) -> dict[str, dict[str, str]]:
    """The Python files of the user's own that a scenario chooses, by key, each with the SHA-256 of its text.

    Policies are not among them: their hashes count their parameters, too.
    """
    chosen = {"fabric.topology": scenario.fabric.topology, "transport.protocol": scenario.transport.protocol}
    if scenario.fabric.engineering is not None:
        chosen["fabric.engineering.scheme"] = scenario.fabric.engineering.scheme
    if scenario.traffic is not None:
        chosen["traffic.pattern"] = scenario.traffic.pattern
    if scenario.collective is not None:
        chosen["collective.algorithm"] = scenario.collective.algorithm or ""
    return {
        key: {"file": label, "hash": text_digest(text_of(Path(label)))}
        for key, label in chosen.items()
        if is_path(label)
    }
