"""Policies in a scenario: kinds, known names, and load-balancing presets.

The folder is the catalogue: names are those of the files in ``weftwork/policies``, which are listed and not imported.
Leaves out: what a policy's parameters may be, and what it needs of a transport; the floor that loads policies hands in
checks for both.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from typing import Final, Literal, get_args

from pydantic import Field

from weftwork.base.errors import Mistake
from weftwork.spec.device import Record

__all__ = [
    "POLICY_KINDS",
    "PRESETS",
    "QUEUE_PAIR_PRESETS",
    "ParameterCheck",
    "ParameterValue",
    "PolicyChoice",
    "PolicyKind",
    "QueuePairUse",
    "known_policies",
    "queue_pair_words",
]

# Kinds of policies: keys of ``transport``, folders of ``weftwork/policies``, and the word for a kind everywhere else.
PolicyKind = Literal["congestion_control", "path_selection", "port_selection"]
POLICY_KINDS: Final[tuple[PolicyKind, ...]] = get_args(PolicyKind)

# A preset of load balancing is two keys: path_selection at the NIC, port_selection at the switch.
PRESETS: Mapping[str, tuple[str, str]] = {
    "ecmp": ("ecmp", "ecmp"),
    "e-ecmp": ("ecmp", "ecmp"),
    "flow-splitting": ("ecmp", "ecmp"),
    "spray": ("spray", "ecmp"),
    "oblivious": ("oblivious", "ecmp"),
    "plb": ("plb", "ecmp"),
    "reps": ("reps", "ecmp"),
    "bitmap": ("bitmap", "ecmp"),
    "mixed": ("mixed", "ecmp"),
    "switch-spray": ("ecmp", "spray"),
    "least-loaded": ("ecmp", "least-loaded"),
    # decided at the switch
    "wcmp": ("ecmp", "wcmp"),
    "letflow": ("ecmp", "letflow"),
    "conga": ("ecmp", "conga"),
    "drill": ("ecmp", "drill"),
    "ars": ("ecmp", "ars"),
    "adaptive": ("ecmp", "adaptive"),
    "round-robin": ("ecmp", "round-robin"),
}

# Two presets are ECMP over several queue pairs: how many, and how messages use them (`queue_pairs`, `queue_pair_use`).
# Four is what public launch scripts of NCCL jobs set most (NCCL_IB_QPS_PER_CONNECTION); Meta's E-ECMP takes turns
# (Gangidi et al., SIGCOMM 2024).
QueuePairUse = Literal["split", "in-turn"]
QUEUE_PAIR_PRESETS: Mapping[str, tuple[int, QueuePairUse]] = {"e-ecmp": (4, "in-turn"), "flow-splitting": (4, "split")}


def queue_pair_words(preset: str) -> str:
    """Keys of queue pairs that a preset sets, as text.

    For example ``queue_pairs 4, queue_pair_use split``; empty for none.
    """
    if preset not in QUEUE_PAIR_PRESETS:
        return ""
    queue_pairs, use = QUEUE_PAIR_PRESETS[preset]
    return f"queue_pairs {queue_pairs}, queue_pair_use {use}"


ParameterValue = str | int | float | bool

# (kind, name or file, parameters) -> mistakes; the path of each is the parameter's name, alone or after
# `transport.<kind>.`; its line is filled in here
ParameterCheck = Callable[[str, str, Mapping[str, ParameterValue]], Sequence[Mistake]]


class PolicyChoice(Record):
    """A policy by catalogue name or user's file, with its set parameters.

    Exactly one of name and file is given. ``file`` is an absolute path. ``parameters`` are as the user wrote them, with
    their units.
    """

    name: str | None = None
    file: str | None = None
    parameters: dict[str, ParameterValue] = Field(default_factory=dict)

    @property
    def label(self) -> str:
        """The name, or the file."""
        return self.name if self.name is not None else str(self.file)


def known_policies() -> dict[str, tuple[str, ...]]:
    """List the installed policies by kind, without importing them.

    Returns
    -------
    kind, such as ``congestion_control``, to sorted names, such as ``fixed-window``
    """
    root = files("weftwork") / "policies"
    return {
        kind: tuple(
            sorted(
                entry.name.removesuffix(".py").replace("_", "-")
                for entry in (root / kind).iterdir()
                if entry.name.endswith(".py") and not entry.name.startswith("_")
            )
        )
        for kind in POLICY_KINDS
    }
