"""YAML text to a small tree with line numbers, and back.

The tree knows the line of every key and value. Scalars follow the core schema of YAML 1.2 (section 10.3.2): ``true``
and ``false`` alone are booleans, ``3:1`` and ``1_000`` are text.
The tree is built from parser events, so that no text can make it recurse, expand or construct anything.
Leaves out, and refuses by name: anchors, aliases, merge keys, tags and several documents in a file.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import yaml
from yaml import SafeLoader
from yaml.representer import SafeRepresenter

from weftwork.base.findings import Findings

__all__ = [
    "MAX_BYTES",
    "Mapping",
    "Node",
    "Scalar",
    "Sequence",
    "Value",
    "YamlEntry",
    "plain_value",
    "read_tree",
    "show",
    "write_tree",
]

MAX_BYTES = 250_000  # chosen: fifty times the longest scenario; a wrong file costs some seconds at most
MAX_DEPTH = 16  # chosen: twice the depth of the deepest key
MAX_NODES = 20_000  # chosen: as MAX_BYTES

Value = str | int | float | bool | None

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_TRUE = frozenset({"true", "True", "TRUE"})
_FALSE = frozenset({"false", "False", "FALSE"})
_INTEGER = re.compile(r"[-+]?[0-9]{1,40}|0o[0-7]{1,40}|0x[0-9a-fA-F]{1,40}")
_FLOAT = re.compile(
    r"[-+]?(?:\.[0-9]{1,40}|[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:[eE][-+]?[0-9]{1,4})?|[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)"
)
_SHOWN = 48  # chosen: characters of a wrong value that a message repeats


@dataclass(frozen=True, kw_only=True, slots=True)
class Scalar:
    """A scalar: its text, and whether the text was quoted.

    ``line`` is None if the value came from ``--set``.
    """

    text: str
    plain: bool = True
    line: int | None = None

    @property
    def value(self) -> Value:
        """The text resolved by the core schema of YAML 1.2."""
        if not self.plain:
            return self.text
        if self.text in _NULL:
            return None
        if self.text in _TRUE or self.text in _FALSE:
            return self.text in _TRUE
        if _INTEGER.fullmatch(self.text):
            return int(self.text, 0 if self.text[:2] in {"0x", "0o"} else 10)
        if _FLOAT.fullmatch(self.text):
            return float(self.text.lower().replace(".inf", "inf").replace(".nan", "nan"))
        return self.text


@dataclass(frozen=True, kw_only=True, slots=True)
class YamlEntry:
    """One key of a mapping and its value."""

    key: str
    node: Node
    line: int | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class Mapping:
    """Keys and values in the order of the file; keys are unique."""

    entries: tuple[YamlEntry, ...] = ()
    line: int | None = None

    def get(self, key: str) -> YamlEntry | None:
        """Return the entry of ``key``, or None."""
        return next((entry for entry in self.entries if entry.key == key), None)

    def put(self, key: str, node: Node) -> Mapping:
        """Return a copy with ``node`` at ``key``.

        An old key keeps its place, a new key comes last.
        """
        new = YamlEntry(key=key, node=node, line=node.line)
        if self.get(key) is None:
            return replace(self, entries=(*self.entries, new))
        return replace(self, entries=tuple(new if entry.key == key else entry for entry in self.entries))

    def drop(self, key: str) -> Mapping:
        """Return a copy without ``key``."""
        return replace(self, entries=tuple(entry for entry in self.entries if entry.key != key))


@dataclass(frozen=True, kw_only=True, slots=True)
class Sequence:
    """A list."""

    items: tuple[Node, ...] = ()
    line: int | None = None


Node = Scalar | Mapping | Sequence


def show(node: Node) -> str:
    """Describe a found node, for a message."""
    match node:
        case Mapping():
            return "a mapping" if node.entries else "an empty mapping"
        case Sequence():
            return "a list" if node.items else "an empty list"
        case Scalar(plain=True) if node.value is None:
            return "nothing"
        case Scalar():
            text = node.text if len(node.text) <= _SHOWN else node.text[: _SHOWN - 3] + "..."
            return ascii(text) if not text.isprintable() else f"'{text}'"


class _RefusedError(Exception):
    """The rest of the text cannot be read."""

    def __init__(self, text: str, line: int | None) -> None:
        self.text = text
        self.line = line
        super().__init__(text)


@dataclass(kw_only=True)
class _Open:
    """A collection whose end has not been read."""

    line: int
    path: str
    is_mapping: bool
    entries: list[YamlEntry] = field(default_factory=list)
    items: list[Node] = field(default_factory=list)
    key: str | None = None
    key_line: int = 0
    first_lines: dict[str, int] = field(default_factory=dict)
    skip: bool = False  # the key was given before: read its value and forget it


def read_tree(text: str, findings: Findings, *, where: str = "") -> Node | None:
    """Read one YAML document.

    Parameters
    ----------
    text : the document
    findings : take all mistakes
    where : dotted path that stands in mistakes of the text itself

    Returns
    -------
    the tree, or None where the text cannot be read to its end
    """
    label = where or "file"
    if len(text) > MAX_BYTES:
        findings.wrong(label, f"longer than {MAX_BYTES:,} characters; a scenario is never that long")
        return None
    reader = _Reader(label=label, findings=findings)
    try:
        return reader.read(yaml.parse(text, Loader=SafeLoader))
    except _RefusedError as refused:
        findings.wrong(label, refused.text, line=refused.line)
    except yaml.MarkedYAMLError as error:
        _broken(error, text, label, findings)
    except yaml.YAMLError as error:
        # a ReaderError: a character that YAML forbids; it has a position but no mark
        position = getattr(error, "position", 0)
        line = text.count("\n", 0, position) + 1
        findings.wrong(label, "a character that YAML does not allow; save the file as plain UTF-8 text", line=line)
    except (ValueError, OverflowError):
        # PyYAML passes the digits of escapes and of %YAML to chr() and int() unchecked
        findings.wrong(label, "an escape or a directive with a number out of range")
    return None


def _broken(error: yaml.MarkedYAMLError, text: str, label: str, findings: Findings) -> None:
    mark = error.problem_mark or error.context_mark
    line = mark.line + 1 if mark is not None else None
    problem = str(error.problem or error.context or "it ends too early")
    lines = text.splitlines()
    if line is not None and line <= len(lines) and re.match(r"[ ]*\t", lines[line - 1]):
        findings.wrong(label, "not YAML: a tab indents this line; use spaces", line=line)
        return
    begins = error.context_mark.line + 1 if error.context_mark is not None else line
    context = f" {error.context} from line {begins}" if error.context is not None and begins != line else ""
    findings.wrong(label, f"not YAML: {ascii(problem + context)[1:-1]}", line=line)


@dataclass(kw_only=True)
class _Reader:
    label: str
    findings: Findings
    stack: list[_Open] = field(default_factory=list)
    root: Node | None = None
    nodes: int = 0
    documents: int = 0

    def read(self, events: Iterator[Any]) -> Node | None:
        for event in events:
            line = event.start_mark.line + 1
            match event:
                case yaml.DocumentStartEvent():
                    self.documents += 1
                    if self.documents > 1:
                        message = "a second document begins ('---'); a file holds one scenario"
                        raise _RefusedError(message, line)
                case yaml.AliasEvent():
                    anchor = ascii(event.anchor)[1:-1]
                    message = f"found the alias '*{anchor}'; a scenario has no aliases, write the value itself"
                    raise _RefusedError(message, line)
                case yaml.ScalarEvent():
                    self._check(event, line)
                    self._place(Scalar(text=event.value, plain=event.style is None, line=line), line)
                case yaml.MappingStartEvent() | yaml.SequenceStartEvent():
                    self._check(event, line)
                    self._open(line, is_mapping=isinstance(event, yaml.MappingStartEvent))
                case yaml.MappingEndEvent() | yaml.SequenceEndEvent():
                    done = self.stack.pop()
                    self._place(
                        Mapping(entries=tuple(done.entries), line=done.line)
                        if done.is_mapping
                        else Sequence(items=tuple(done.items), line=done.line),
                        done.line,
                    )
                case _:
                    pass
        return self.root

    def _check(self, event: yaml.Event, line: int) -> None:
        self.nodes += 1
        if self.nodes > MAX_NODES:
            message = f"more than {MAX_NODES:,} values; a scenario is never that long"
            raise _RefusedError(message, line)
        if event.anchor is not None:
            message = f"found the anchor '&{ascii(event.anchor)[1:-1]}'; a scenario has no anchors and aliases"
            raise _RefusedError(message, line)
        if event.tag is not None:
            message = f"found the tag '{ascii(event.tag)[1:-1]}'; a scenario has no tags"
            raise _RefusedError(message, line)
        if isinstance(event, yaml.ScalarEvent) and any("\ud800" <= character <= "\udfff" for character in event.value):
            message = "half of a surrogate pair (an escape between \\ud800 and \\udfff) is not a character"
            raise _RefusedError(message, line)

    def _open(self, line: int, *, is_mapping: bool) -> None:
        if len(self.stack) >= MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} deep; a scenario is never that deep"
            raise _RefusedError(message, line)
        if self.stack and self.stack[-1].is_mapping and self.stack[-1].key is None:
            message = "found a mapping or a list as a key; a key is one word"
            raise _RefusedError(message, line)
        self.stack.append(_Open(line=line, path=self._path(), is_mapping=is_mapping))

    def _path(self) -> str:
        if not self.stack:
            return ""
        parent = self.stack[-1]
        last = parent.key if parent.is_mapping else str(len(parent.items))
        return f"{parent.path}.{last}" if parent.path else str(last)

    def _place(self, node: Node, line: int) -> None:
        if not self.stack:
            self.root = node
            return
        parent = self.stack[-1]
        if not parent.is_mapping:
            parent.items.append(node)
        elif parent.key is None:
            self._key(parent, node, line)
        else:
            if not parent.skip:
                parent.entries.append(YamlEntry(key=parent.key, node=node, line=parent.key_line))
            parent.key = None

    def _key(self, parent: _Open, node: Node, line: int) -> None:
        text = node.text if isinstance(node, Scalar) else ""
        if text == "<<":
            message = "found the merge key '<<'; a scenario has no anchors and aliases, write the keys themselves"
            raise _RefusedError(message, line)
        parent.key, parent.key_line = text, line
        first = parent.first_lines.get(text)
        parent.first_lines.setdefault(text, line)
        parent.skip = first is not None
        if first is not None:
            path = f"{parent.path}.{text}" if parent.path else text
            self.findings.wrong(path, f"given twice, first in line {first}", line=line)


def plain_value(node: Node) -> Any:  # noqa: ANN401 - whatever a file holds
    """Plain dicts, lists and scalars of a tree."""
    if isinstance(node, Mapping):
        return {entry.key: plain_value(entry.node) for entry in node.entries}
    return node.value if isinstance(node, Scalar) else [plain_value(item) for item in node.items]


def write_tree(tree: dict[str, Any]) -> str:
    """Write plain dicts, lists and scalars as YAML.

    `read_tree` reads the text back to the same values.
    """
    root = SafeRepresenter(sort_keys=False, default_flow_style=False).represent_data(tree)
    _quote(root)
    text: str = yaml.serialize(root, Dumper=yaml.SafeDumper, width=100)
    return text


def _quote(node: yaml.Node) -> None:
    """Quote texts that YAML 1.2 would read as another type.

    PyYAML knows version 1.1 alone.
    """
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            _quote(key)
            _quote(value)
    elif isinstance(node, yaml.SequenceNode):
        for item in node.value:
            _quote(item)
    elif node.tag == "tag:yaml.org,2002:str" and not isinstance(Scalar(text=node.value).value, str):
        node.style = '"'
