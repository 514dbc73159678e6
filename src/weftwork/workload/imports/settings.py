"""Settings of a job in YAML, TOML or Hydra's overrides, each with its dotted name and its line.

A value that only the program itself can work out, such as ``???`` or ``${oc.env:HOME}``, is marked as in a shell
script (`weftwork.workload.imports.shell.without_value`).
Source: OmegaConf 2.3, docs/source/usage.rst, for ``${a.b}``, ``${.b}`` and ``???``; Hydra 1.3, Override Grammar, for
``+``, ``++`` and ``~``; TOML 1.0.
Leaves out: resolvers of OmegaConf, groups of configuration files, and values that Hydra would sweep over.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.findings import Findings
from weftwork.spec.scenario.yaml_tree import Mapping as YamlMapping
from weftwork.spec.scenario.yaml_tree import Node, Scalar, read_tree

if TYPE_CHECKING:
    from weftwork.workload.imports.shell import ShellWord

__all__ = ["JobSetting", "is_override", "settings_of_overrides", "settings_of_toml", "settings_of_yaml"]

_WHOLE_REFERENCE: Final = re.compile(r"\$\{([^${}]{1,200})\}")
_MISSING: Final = "???"
_DEEPEST: Final = 8  # chosen: a reference to a reference to a reference is not written by hand
_DEEPEST_TABLE: Final = 16  # chosen: twice the depth of the deepest setting
_OVERRIDE: Final = re.compile(r"(\+\+|\+|~)?([A-Za-z_][\w-]*(?:[./@][\w-]+)*)(?:=(.*))?", re.DOTALL)
_TABLE: Final = re.compile(r"\s*\[\s*([^\[\]]+?)\s*\]\s*(?:#.*)?")
_KEY: Final = re.compile(r"\s*([A-Za-z0-9_\-.\"' ]+?)\s*=")
_AT_LINE: Final = re.compile(r"\(at line (\d+)")
_TRUE: Final = frozenset({"true", "yes", "on"})
_FALSE: Final = frozenset({"false", "no", "off"})
_NULL: Final = frozenset({"", "null", "none", "~"})


@dataclass(frozen=True, kw_only=True, slots=True)
class JobSetting:
    """One setting of a job.

    Attributes
    ----------
    name : dotted, as the program writes it
    text : value as text; of a list, and of an empty section, ``texts`` has the items
    texts : items of a list; None for a single value
    line : of the file, if it is known
    is_text : whether the value is a quoted text, which is no switch and no number
    """

    name: str
    text: str
    texts: tuple[str, ...] | None = None
    line: int | None = None
    is_text: bool = False

    @property
    def is_null(self) -> bool:
        """Whether the setting says nothing."""
        return self.texts is None and not self.is_text and self.text.lower() in _NULL

    @property
    def switch(self) -> bool | None:
        """The value as a switch; None if it is no switch."""
        plain = self.text.lower()
        if self.texts is not None or plain not in _TRUE | _FALSE:
            return None
        return plain in _TRUE


def settings_of_yaml(text: str, findings: Findings) -> tuple[JobSetting, ...]:
    """Settings of a YAML file, in its order, with references put in.

    Parameters
    ----------
    text : of the file
    findings : take what is wrong with it
    """
    root = read_tree(text, findings)
    if not isinstance(root, YamlMapping):
        return ()
    leaves = tuple(_leaves(root, ""))
    by_name = {one.name: one for one in leaves}
    return tuple(_resolved(one, by_name) for one in leaves)


def _leaves(node: YamlMapping, above: str) -> Iterator[JobSetting]:
    for entry in node.entries:
        name = f"{above}{entry.key}"
        if isinstance(entry.node, YamlMapping) and entry.node.entries:
            yield from _leaves(entry.node, f"{name}.")
        elif isinstance(entry.node, Scalar):
            yield JobSetting(name=name, text=entry.node.text, line=entry.node.line, is_text=not entry.node.plain)
        else:
            items = tuple(_item(item) for item in getattr(entry.node, "items", ()))
            yield JobSetting(name=name, text="", texts=items, line=entry.line)


def _item(node: Node) -> str:
    """An item of a list as text; lists inside lists are joined with spaces."""
    if isinstance(node, Scalar):
        return node.text
    if isinstance(node, YamlMapping):
        return ""
    return " ".join(_item(item) for item in node.items)


def _resolved(setting: JobSetting, by_name: Mapping[str, JobSetting]) -> JobSetting:
    """The setting with references to others put in; what has no value is marked."""
    if setting.texts is not None:
        return setting
    value, is_text, seen = setting.text, setting.is_text, setting.name
    for _ in range(_DEEPEST):
        match = _WHOLE_REFERENCE.fullmatch(value)
        if match is None:
            break
        target = by_name.get(_target(match[1].strip(), seen))
        if target is None:
            return JobSetting(name=setting.name, text=_marked(match[1].strip()), line=setting.line)
        if target.texts is not None:
            return JobSetting(name=setting.name, text="", texts=target.texts, line=setting.line)
        value, is_text, seen = target.text, target.is_text, target.name
    if value == _MISSING or "${" in value:
        value = _marked(value)
    return JobSetting(name=setting.name, text=value, line=setting.line, is_text=is_text)


def _target(reference: str, name: str) -> str:
    """Dotted name that a reference means; leading dots go up from the section of ``name``."""
    dots = len(reference) - len(reference.lstrip("."))
    if not dots:
        return reference
    section = name.split(".")[:-dots]
    return ".".join([*section, reference[dots:]])


def _marked(text: str) -> str:
    return f"\0{text}\1"


def settings_of_toml(text: str, findings: Findings) -> tuple[JobSetting, ...]:
    """Settings of a TOML file, in its order.

    Parameters
    ----------
    text : of the file
    findings : take where it is no TOML
    """
    try:
        tree = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        match = _AT_LINE.search(str(error))
        what = ascii(str(error).partition(" (at ")[0])[1:-1]
        line = int(match[1]) if match is not None else None
        findings.wrong("file", f"not TOML: {what}", line=line)
        return ()
    except RecursionError:
        findings.wrong("file", "not TOML: nested too deep")
        return ()
    lines = _lines_of_toml(text)
    return tuple(_toml_leaves(tree, "", lines))


def _toml_leaves(tree: Mapping[str, Any], above: str, lines: Mapping[str, int]) -> Iterator[JobSetting]:
    for key, value in tree.items():
        name = f"{above}{key}"
        if isinstance(value, dict) and value and name.count(".") < _DEEPEST_TABLE:
            yield from _toml_leaves(value, f"{name}.", lines)
        elif isinstance(value, list | dict):
            items = tuple(_toml_text(item) for item in value)
            yield JobSetting(name=name, text="", texts=items, line=lines.get(name))
        else:
            yield JobSetting(name=name, text=_toml_text(value), line=lines.get(name), is_text=isinstance(value, str))


def _toml_text(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _lines_of_toml(text: str) -> dict[str, int]:
    """Line of each ``key =`` by dotted name, as far as lines alone show it."""
    found: dict[str, int] = {}
    above = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if table := _TABLE.fullmatch(line):
            above = f"{table[1]}."
        elif key := _KEY.match(line):
            found.setdefault(above + key[1].replace('"', "").replace("'", "").replace(" ", ""), number)
    return found


def is_override(word: str) -> bool:
    """Whether a word of a command is an override of Hydra.

    Examples
    --------
    >>> [is_override(word) for word in ("model.num_layers=32", "+trainer.devices=8", "--num-layers=32", "a.py")]
    [True, True, False, False]
    """
    match = _OVERRIDE.fullmatch(word)
    return match is not None and (match[3] is not None or match[1] == "~")


def settings_of_overrides(words: Sequence[ShellWord]) -> tuple[JobSetting, ...]:
    """Settings of Hydra's overrides in a command; of one that is given twice the last counts."""
    found: dict[str, JobSetting] = {}
    for word in words:
        match = _OVERRIDE.fullmatch(word.text)
        if match is None or (match[3] is None and match[1] != "~"):
            continue
        name, value = match[2], match[3] or ""
        if match[1] == "~":
            found.pop(name, None)
            continue
        is_text = len(value) > 1 and value[0] == value[-1] and value[0] in "'\""
        texts = None
        if not is_text and value.startswith("[") and value.endswith("]"):
            texts = tuple(part.strip().strip("'\"") for part in value[1:-1].split(",") if part.strip())
        found[name] = JobSetting(
            name=name, text=value[1:-1] if is_text else value, texts=texts, line=word.line, is_text=is_text
        )
    return tuple(found.values())
