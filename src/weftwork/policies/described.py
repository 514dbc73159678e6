"""The policy interface as rows: field, unit, signals, need and meaning.

The signals fill the field, and the need makes it available. The rows are read from the comments and docstrings of
`weftwork.policies.interface`, so that a name stands in one place; the docs print them, and the conformance kits hold a
file to them.
Leaves out: the order of signals, and what the engine does around a step (docs/models/packet-engine.md).
"""

from __future__ import annotations

import ast
import dataclasses
import io
import re
import tokenize
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, Literal, get_type_hints

from weftwork.policies import interface
from weftwork.policies.interface import CongestionControl, Kind, Plugin, Signal

__all__ = ["FIELDS_OF_NEED", "FieldRow", "Step", "field_rows", "kind_rows", "need_rows", "plugin_rows", "told_kinds"]

Step = Literal["sender", "path", "receiver"]
# Fields that are 0 unless the policy, or another one of the run, needs them; those of a port selection follow.
FIELDS_OF_NEED: Final[dict[str, tuple[str, ...]]] = {
    "ecn": ("ecn", "marked_bytes"),
    "telemetry": ("hop_queue_bytes", "hop_tx_bytes", "hop_rate_bps", "hop_at_ps", "hop_port"),
    "path-load": ("path_load",),
    "rtt": ("rtt_ps", "host_delay_ps", "fabric_delay_ps"),
    "entropy": ("entropy",),  # where it is echoed
    "request": ("request_bytes",),
    "trimming": ("last_hop",),
    "queue": ("queue_bytes", "paused"),
    "weight": ("weight",),
    "hops-left": ("hops_left",),
    "non-minimal": ("minimal",),
    "channel": ("channel", "turn_channel"),
    "detour": ("from_group", "via_group", "detour", "queue_pair_detour", "hops_after_via"),
}
_UNITS: Final = {"_ps": "ps", "_bps": "bit/s", "bytes": "byte"}
# One part of a comment: whose step, kinds, and what the field then holds.
_PART: Final = re.compile(r"(?:(sender|path|receiver)\b ?)?((?:[A-Z]+, )*[A-Z]+)?: (.*)")
_TOLD: Final[dict[Step, frozenset[Kind]]] = {
    "sender": frozenset(Kind) - {Kind.DATA, Kind.REQUEST},
    "path": frozenset(Kind) - {Kind.DATA, Kind.REQUEST, Kind.CNP, Kind.CREDIT},
    "receiver": frozenset({Kind.DATA, Kind.TRIM, Kind.REQUEST, Kind.TIMER}),
}


@dataclass(frozen=True, kw_only=True, slots=True)
class FieldRow:
    """One field of a record.

    Attributes
    ----------
    name, type : ``int`` or ``float``
    size : elements of an array; 0: a number
    unit : from the name; empty: a number without one
    when : whose signals of which kinds fill it, in words; empty: all of them
    need : what has to be among ``needs`` for it; empty: nothing
    text : its meaning, as the class has it
    parts : by part of the text, whose step and which kinds it is about; None: any step, all kinds
    """

    name: str
    type: Literal["int", "float"]
    size: int
    unit: str
    when: str
    need: str
    text: str
    parts: tuple[tuple[Step | None, frozenset[Kind] | None], ...]

    def kinds(self, step: Step) -> frozenset[Kind]:
        """Kinds of signals that fill the field in this step."""
        told = _TOLD[step]
        if not self.parts:
            return told
        sides = ("sender", "path") if step == "path" else (step,)
        found: set[Kind] = set()
        for side, kinds in self.parts:
            if side is None or side in sides:
                found |= told if kinds is None else told & kinds
        return frozenset(found)


def told_kinds(step: Step) -> frozenset[Kind]:
    """Kinds of signals that an engine can send to this step."""
    return _TOLD[step]


def field_rows(owner: type) -> tuple[FieldRow, ...]:
    """Fields of an interface record, in its order.

    Parameters
    ----------
    owner : ``Signal``, ``PortSignal``, ``Candidate`` or the prefix of a state
    """
    comments = _comments(owner.__name__)
    need_of = {name: need for need, names in FIELDS_OF_NEED.items() for name in names}
    rows = []
    for name, hint in get_type_hints(owner).items():
        text = comments.get(name, "")
        parts = _parts(text) if owner is Signal else ()
        default = owner.__dict__.get(name)
        rows.append(
            FieldRow(
                name=name,
                type="float" if hint in (float, list[float]) else "int",
                size=len(default) if isinstance(default, list) else 0,
                unit=next((unit for end, unit in _UNITS.items() if name.endswith(end)), ""),
                when="; ".join(dict.fromkeys(said for _, _, said in parts)),
                need=need_of.get(name, "") if "State" not in owner.__name__ else "",
                text=text,
                parts=tuple((side, kinds) for side, kinds, _ in parts),
            )
        )
    return tuple(rows)


def kind_rows() -> tuple[tuple[str, int, str], ...]:
    """Name, number and meaning of each `Kind`."""
    comments = _comments("Kind")
    return tuple((kind.name, int(kind), comments.get(kind.name, "")) for kind in Kind)


def need_rows() -> tuple[tuple[str, str, tuple[str, ...]], ...]:
    """Name and meaning of each need, and the fields that it fills."""
    return tuple((name, text, FIELDS_OF_NEED.get(name, ())) for name, text in _comments("Need").items())


def plugin_rows(owner: type[Plugin]) -> tuple[tuple[str, str, str], ...]:
    """Fields of a plug-in: name, default as written, and meaning.

    An empty default means that the field is required.

    Parameters
    ----------
    owner : ``CongestionControl``, ``PathSelection`` or ``PortSelection``; what its docstring leaves out is as that of
        the first
    """
    texts = _parameters(CongestionControl) | _parameters(owner)
    rows = []
    for field in dataclasses.fields(owner):
        if field.default_factory is not dataclasses.MISSING:
            default = repr(field.default_factory())
        else:
            default = "" if field.default is dataclasses.MISSING else repr(field.default)
        rows.append((field.name, default, texts.get(field.name, "")))
    return tuple(rows)


def _parts(text: str) -> list[tuple[Step | None, frozenset[Kind] | None, str]]:
    """Parts of a comment that name a step or kinds.

    Each part has both, and their text.
    """
    found: list[tuple[Step | None, frozenset[Kind] | None, str]] = []
    for part in text.split("; "):
        match = _PART.match(part)
        if match is None or not (match[1] or match[2]):
            continue
        names = (match[2] or "").split(", ") if match[2] else []
        if not all(name in Kind.__members__ for name in names):
            continue
        side: Step | None = match[1]  # type: ignore[assignment]
        kinds = frozenset(Kind[name] for name in names) if names else None
        found.append((side, kinds, " ".join(word for word in (match[1], match[2]) if word)))
    return found


@cache
def _source() -> tuple[ast.Module, dict[int, str]]:
    """Syntax tree of the interface, and its comments by line."""
    text = Path(interface.__file__).read_text(encoding="utf-8")
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return ast.parse(text), {
        token.start[0]: token.string.lstrip("# ") for token in tokens if token.type == tokenize.COMMENT
    }


@cache
def _comments(owner: str) -> dict[str, str]:
    """Comments of a class by name, or of a ``Literal`` by text."""
    tree, comments = _source()
    found: dict[str, str] = {}
    for node in tree.body:
        if isinstance(node, ast.ClassDef) and node.name == owner:
            for line in node.body:
                if isinstance(line, (ast.AnnAssign, ast.Assign)):
                    target = line.target if isinstance(line, ast.AnnAssign) else line.targets[0]
                    found[ast.unparse(target)] = comments.get(line.end_lineno or line.lineno, "")
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == owner:
            texts = (leaf for leaf in ast.walk(node.value) if isinstance(leaf, ast.Constant))
            found |= {str(leaf.value): comments.get(leaf.lineno, "") for leaf in texts}
    return found


def _parameters(owner: type) -> dict[str, str]:
    """Section ``Parameters`` of a numpydoc docstring: text of each name."""
    found: dict[str, str] = {}
    names: list[str] = []
    _, _, section = (owner.__doc__ or "").partition("----------\n")
    for line in section.splitlines():
        head, is_head, text = line.strip().partition(" : ")
        if is_head and len(line) - len(line.lstrip()) == 4:
            names = head.split(", ")
            found |= dict.fromkeys(names, text)
        else:
            found |= {name: f"{found[name]} {line.strip()}".strip() for name in names}
    return found
