"""Read a tree of YAML nodes into sections, by their rows.

Every mistake is kept, and reading goes on. Also what ``--set`` does: it puts a node into the tree before it is read, so
that one set of rules judges both.
Leaves out: checks of one key against another (`weftwork.spec.scenario.checks`).
"""
# ruff: noqa: ANN401 - a resolved value is whatever its row makes of it

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from collections.abc import Mapping as MappingType
from collections.abc import Sequence as SequenceType
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from pydantic import BaseModel

from weftwork.base.errors import CodeError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.fix import Fix, Settings
from weftwork.base.folder import is_path
from weftwork.base.nearest import nearest
from weftwork.base.user_code import UserCode, is_in_package
from weftwork.spec.scenario.choice import NoKeys, Offer
from weftwork.spec.scenario.chosen import OPTIONS, Chooser, chooser_of, clash, means_nothing, usual_values
from weftwork.spec.scenario.devices import DeviceChoice, NodeModel, device_rows
from weftwork.spec.scenario.key_paths import is_null, joined_key, shown_key
from weftwork.spec.scenario.kinds import (
    DeviceKind,
    FileName,
    NameOrFile,
    PolicyChoiceKind,
    Section,
    SectionList,
    WrongValueError,
    either,
)
from weftwork.spec.scenario.model_names import nearest_model
from weftwork.spec.scenario.policies import PRESETS, ParameterCheck, ParameterValue, PolicyChoice
from weftwork.spec.scenario.python_tree import NO_LINE
from weftwork.spec.scenario.rows import REQUIRED, KeyRow, applies, resolved_default, rows_of, selector
from weftwork.spec.scenario.training import PlanProposal
from weftwork.spec.scenario.transport import TransportCheck
from weftwork.spec.scenario.unknown_key import KnownKeys, unknown_key
from weftwork.spec.scenario.yaml_tree import Mapping, Node, Scalar, Sequence, YamlEntry, show

__all__ = ["Places", "Reader"]

MANY = 100  # chosen: nobody reads more hints

_LOAD_BALANCING = "transport.load_balancing"
_OF_LOAD_BALANCING = ("transport.path_selection", "transport.port_selection")
_HEADS = ("name", "file")  # of a policy; every other key is a parameter


@dataclass(kw_only=True)
class Places:
    """The place of each key: its line, `NO_LINE` in a dict, None for ``--set``.

    Keys that ``--set`` removed are kept too. ``whole`` names the scenario in mistakes about all of it.
    """

    lines: dict[str, int | None] = field(default_factory=dict)
    removed: set[str] = field(default_factory=set)
    whole: str = "file"

    def line_of(self, path: str) -> int | None:
        """Line of a key, or of the nearest section around it in the file; None in a dict."""
        while path:
            line = self.lines.get(path)
            if line is not None and line != NO_LINE:
                return line
            path = path.rpartition(".")[0]
        return None

    def mistake(self, path: str, text: str, fix: Fix | None = None) -> Mistake:
        """Make a mistake with its place: a line, or its ``--set``.

        What ``load_balancing`` chose is told at that key.
        """
        if path in _OF_LOAD_BALANCING and path not in self.lines and _LOAD_BALANCING in self.lines:
            pair = (fix, "ecmp") if path == _OF_LOAD_BALANCING[0] else ("ecmp", fix)
            fix = next((name for name, chosen in PRESETS.items() if chosen == pair), None)
            path, text = _LOAD_BALANCING, f"its {path.rpartition('.')[2]}: {text}"
        if path in self.lines and self.lines[path] is None:
            return Mistake(path=f"--set {path}", text=text, fix=fix)
        shown = self.whole if path in {"", "file"} else path
        return Mistake(path=shown, text=text, line=self.line_of(path), fix=fix)


@dataclass(kw_only=True)
class Reader:
    """Reads sections and collects mistakes.

    Parameters
    ----------
    known : names that exist, by kind of policy, and for ``switch`` and ``nic`` where the caller knows the catalogue;
        ``absent model`` are names that the catalogue itself refuses, with what they lack
    directory : folder to which files in the scenario are relative
    check_parameters : judges the parameters of a policy, or None
    check_transport : judges a transport with its policies, or None
    propose_plan : finds degrees of parallelism that all rules accept, or None
    paths : all keys of a scenario, to tell a user where a key belongs
    nodes : servers of the catalogue by name, where the caller knows it
    user_code : which Python files of the user's own are run
    later_files : keys whose files need not be there yet
    folder_words : what messages call ``directory``
    findings : take the mistakes, with their places
    """

    known: MappingType[str, SequenceType[str]]
    directory: Path
    check_parameters: ParameterCheck | None
    check_transport: TransportCheck | None = None
    propose_plan: PlanProposal | None = None
    paths: Callable[[], KnownKeys] = KnownKeys
    nodes: MappingType[str, NodeModel] = field(default_factory=dict)
    user_code: UserCode = UserCode.RUN
    later_files: frozenset[str] = frozenset()
    folder_words: str = "the scenario's folder"
    places: Places = field(default_factory=Places)
    findings: Findings = field(default_factory=Findings)
    bad: set[str] = field(default_factory=set)

    @property
    def mistakes(self) -> list[Mistake]:
        """All mistakes so far."""
        return self.findings.mistakes

    def wrong(self, path: str, text: str, fix: Fix | None = None) -> None:
        """Note a mistake at a key."""
        self.bad.add(path)
        self.findings.include([self.places.mistake(path, text, fix)])

    def is_sound(self, *paths: str) -> bool:
        """Whether no mistake was found at these keys or around them."""
        return not any(around in self.bad for path in paths for around in _around(path))

    def which(self, first: str, second: str) -> str:
        """Return the first key, unless the user wrote only the second."""
        return second if first not in self.places.lines and second in self.places.lines else first

    def runs(self, path: str, label: str) -> bool:
        """Whether a key's file may be run: a catalogue file or permitted user code."""
        return not is_path(label) or self.user_code is not UserCode.TOPOLOGY or path == "fabric.topology"

    def section(self, node: Node, path: str, model: type[BaseModel], later: MappingType[str, str] | None = None) -> Any:
        """Read a mapping into a record; wrong values become defaults."""
        rows = rows_of(model)
        chooser = chooser_of(model)
        if chooser is None:
            keys = [row.key for row in rows.values()]
            entries = self._entries(node, path, keys, later or {}, meaningless=partial(_unmet, rows, node))
            values = self._rows(rows, entries, path)
            return model.model_construct(**values)
        return self._chosen_section(chooser, node, path, model, later or {})

    def _chosen_section(
        self, chooser: Chooser, node: Node, path: str, model: type[BaseModel], later: MappingType[str, str]
    ) -> Any:
        """Read a section whose keys depend on the file that one key chooses."""
        rows = rows_of(model)
        if not isinstance(node, Mapping):
            node = self._mapping(node, path, [row.key for row in _with_options(rows, chooser)])
        chosen, offer = self._choice(chooser, node, path, model)
        is_open = offer is None and chosen is not None and is_path(chosen)  # nobody knows the keys of that file
        own = {} if offer is None else rows_of(offer.keys)
        keys = [chooser.row.key, *(row.key for row in own.values()), *(row.key for row in rows.values())]
        others: MappingType[str, tuple[tuple[str, ...], KeyRow]] = {}
        if not is_open and any(entry.key not in keys for entry in node.entries):  # else no other file is imported
            others = {key: row for key, row in chooser.others().items() if key not in keys}

        def meaningless(key: str) -> str | None:
            if key in others and self.is_sound(joined_key(path, chooser.row.key)):
                return means_nothing(chooser.row.key, chosen, others[key][0])
            return _unmet({**rows, **own}, node, key)

        entries = self._entries(
            node, path, list(dict.fromkeys(keys)), later, others, is_open=is_open, meaningless=meaningless
        )
        self._foreign(chooser, chosen, others, entries, path)
        options = self._rows(own, entries, path, {chooser.row.key: chosen})
        del rows[chooser.name]
        usual, wrong = usual_values(offer, rows, entries)
        for text, fix in wrong:
            self.wrong(joined_key(path, chooser.row.key), text, fix)
        values = self._rows(rows, entries, path, {chooser.row.key: chosen}, chooser.kind.folder.names, usual)
        kept = NoKeys() if offer is None else offer.keys.model_construct(**options)
        return model.model_construct(**{chooser.name: chosen, OPTIONS: kept, **values})

    def _rows(
        self,
        rows: dict[str, KeyRow],
        entries: dict[str, Node],
        path: str,
        chosen: MappingType[str, Any] | None = None,
        names: tuple[str, ...] = (),
        usual: MappingType[str, Node] = MappingProxyType({}),
    ) -> dict[str, Any]:
        """Read the value of each row.

        Parameters
        ----------
        chosen : keys that were read before, which conditions may name
        names : of the folder from which one was chosen
        usual : defaults that go before those of the rows
        """
        values: dict[str, Any] = {}
        given: set[str] = set()
        for name, row in rows.items():
            at = joined_key(path, row.key)
            entry = entries.get(row.key)
            if entry is None:
                values[name] = self._value(row, usual[row.key], at) if row.key in usual else self._default(row, at)
            elif is_null(entry) and row.default is None and not isinstance(row.kind, Section | SectionList):
                values[name] = None
            else:
                given.add(name)
                values[name] = self._value(row, entry, at)
        self._conditions(rows, values, given, path, chosen or {}, names)
        return values

    def _choice(
        self, chooser: Chooser, node: Mapping, path: str, model: type[BaseModel]
    ) -> tuple[str | None, Offer[Any] | None]:
        """Read the chosen file: name or path, and offer; None if wrong or open."""
        row, kind = chooser.row, chooser.kind
        at = joined_key(path, row.key)
        entry = node.get(row.key)
        if entry is not None:
            self.places.lines[at] = entry.line
        if entry is None or _is_removed(entry) or (is_null(entry.node) and row.default is None):
            label = self._default(row, at)
        else:
            label = self._value(row, entry.node, at)
            if self.is_sound(at) and is_path(label):
                label = self._code(label, at, kind.names, is_in_file=entry.node.line is not None)
        if label is None or not self.is_sound(at) or not self.runs(at, label):
            return label, None
        if label in kind.words:
            return label, None
        try:
            offer = kind.folder.load(label)
        except CodeError as wrong:
            self.wrong(at, str(wrong))
            return label, None
        if (key := clash(offer, model)) is not None:
            self.wrong(at, f"'{label}' brings a key '{key}', which every {path} has already; give it another name")
            return label, None
        return label, offer

    def _foreign(
        self,
        chooser: Chooser,
        chosen: str | None,
        others: MappingType[str, tuple[tuple[str, ...], KeyRow]],
        entries: dict[str, Node],
        path: str,
    ) -> None:
        """Refuse keys of another choice.

        If the choice itself is wrong, only the values of the keys are checked.
        """
        for key in [key for key in entries if key in others]:
            names, row = others[key]
            if not self.is_sound(joined_key(path, chooser.row.key)):
                self._value(row, entries[key], joined_key(path, key))
            elif not is_null(entries[key]):
                self.wrong(joined_key(path, key), means_nothing(chooser.row.key, chosen, names))

    def _mapping(self, node: Node, path: str, keys: list[str]) -> Mapping:
        if isinstance(node, Mapping):
            return node
        if not is_null(node):
            self.wrong(path, f"found {show(node)}, wanted a mapping with keys such as {', '.join(keys[:3])}")
        return Mapping()

    def _entries(
        self,
        node: Node,
        path: str,
        keys: list[str],
        later: MappingType[str, str],
        others: MappingType[str, object] = MappingProxyType({}),
        *,
        is_open: bool = False,
        meaningless: Callable[[str], str | None] = lambda _: None,
    ) -> dict[str, Node]:
        """Entries of a mapping by key: those of ``keys`` and ``others``.

        The caller judges the others. ``is_open``: any other key may be right, and is left aside. ``meaningless``: why
        a key would mean nothing beside the others.
        """
        known: dict[str, Node] = {}
        mapping = self._mapping(node, path, keys)
        beside = [entry.key for entry in mapping.entries]
        for entry in mapping.entries:
            at = joined_key(path, shown_key(entry.key))
            self.places.lines[at] = entry.line
            if entry.key in keys or entry.key in others:
                if _is_removed(entry):
                    self.places.removed.add(at)
                else:
                    known[entry.key] = entry.node
            elif entry.key in later:
                if not _is_removed(entry):
                    self.wrong(at, later[entry.key], Settings(((at, "null"),)))
            elif not is_open:
                text, fix = f"unknown key; wanted {_list_of(keys)}", None
                if len(self.mistakes) < MANY:  # else a file of another kind; looking for spellings would take minutes
                    text, fix = unknown_key(
                        entry.key, at, keys, self.paths(), others=others, given=self.places.lines,
                        beside=() if entry.line is None else beside,
                        value=entry.node, meaningless=meaningless,
                    )  # fmt: skip
                self.wrong(at, text, fix)
        return known

    def _default(self, row: KeyRow, path: str) -> Any:
        kind = row.kind
        if row.default == REQUIRED:
            if self.is_sound(path):  # else the section around it has had its say
                self.wrong(path, f"missing, wanted {kind.wanted}")
            return None
        if isinstance(kind, Section):
            return None if kind.optional else self.section(Mapping(), path, kind.model)
        if isinstance(kind, SectionList):
            return ()
        if isinstance(kind, PolicyChoiceKind):
            return None if row.default is None else self._policy(row, kind, Scalar(text=row.default), path)
        if isinstance(kind, DeviceKind):
            return DeviceChoice(model=str(row.default))
        return resolved_default(row)

    def _value(self, row: KeyRow, node: Node, path: str) -> Any:
        kind = row.kind
        if isinstance(kind, Section):
            return self.section(node, path, kind.model)
        if isinstance(kind, SectionList):
            return self._sections(kind, node, path)
        if isinstance(kind, PolicyChoiceKind):
            return self._policy(row, kind, node, path)
        if isinstance(kind, DeviceKind):
            return self._device(kind, node, path)
        try:
            value = kind.read(node)
        except WrongValueError as wrong:
            self.wrong(path, wrong.text, wrong.fix)
            return resolved_default(row)
        if isinstance(kind, FileName) and value not in kind.names:
            if is_path(str(value)) and str(value).endswith(".py"):
                return self._code(str(value), path, kind.names, is_in_file=node.line is not None)
            return self._file(str(value), path, is_in_file=node.line is not None)
        if isinstance(kind, NameOrFile):
            return self._name_or_file(kind, str(value), path, is_in_file=node.line is not None)
        return value

    def _name_or_file(self, kind: NameOrFile, text: str, path: str, *, is_in_file: bool) -> str:
        known = list(self.known.get(kind.catalogue, ()))
        if kind.endings and (text.endswith(kind.endings) or "/" in text):
            fix = nearest_model(text, known) if kind.catalogue == "model" and not text.endswith(kind.endings) else None
            return self._file(text, path, is_in_file=is_in_file, fix=fix)
        if known and text not in {*known, *self.known.get(f"absent {kind.catalogue}", ())}:
            file = f", or a file that ends in {either(kind.endings)}" if kind.endings else ""
            self.wrong(path, f"found '{text}', wanted {_list_of(known)}{file}", _nearest_of(kind, text, known))
        return text

    def _conditions(
        self,
        rows: dict[str, KeyRow],
        values: dict[str, Any],
        given: set[str],
        path: str,
        chosen: MappingType[str, Any],
        names: tuple[str, ...],
    ) -> None:
        by_key = {row.key: values[name] for name, row in rows.items()} | dict(chosen)
        for name, row in rows.items():
            deciding = selector(row)
            if deciding is None or not self.is_sound(joined_key(path, deciding)):
                continue
            found = by_key[deciding]
            if not applies(row, found):
                values[name] = DeviceChoice() if isinstance(row.kind, DeviceKind) else None
                if name in given:
                    self.wrong(joined_key(path, row.key), means_nothing(deciding, found, _wanted(row, names)))

    def _sections(self, kind: SectionList, node: Node, path: str) -> tuple[Any, ...]:
        if is_null(node):
            return ()
        if not isinstance(node, Sequence):
            self.wrong(path, f"found {show(node)}, wanted {kind.wanted}")
            return ()
        for index, item in enumerate(node.items):
            self.places.lines[f"{path}.{index}"] = item.line
        return tuple(self.section(item, f"{path}.{index}", kind.model) for index, item in enumerate(node.items))

    def _file(self, text: str, path: str, *, is_in_file: bool, fix: str | None = None) -> str:
        """Find a user's file.

        Paths start at the scenario's folder, or with ``--set`` at the working directory.
        """
        folder, seen_from = (self.directory, self.folder_words) if is_in_file else (Path(), "the current folder")
        try:
            full = (folder / text).absolute()
            is_there = path in self.later_files or full.is_file()
        except (OSError, ValueError):  # a name too long, or that the file system cannot hold
            is_there = False
        if not is_there:
            self.wrong(path, f"found '{text}', but there is no such file, seen from {seen_from}", fix)
            return text
        return str(full)

    def _code(self, text: str, path: str, names: SequenceType[str], *, is_in_file: bool) -> str:
        """Find a user's Python file, unless the caller permits no user code."""
        file = self._file(text, path, is_in_file=is_in_file)
        if self.user_code is not UserCode.REFUSED or not self.is_sound(path):
            return file
        if not is_in_package(Path(file)):
            found = f"found '{text}', a Python file outside the package, which --no-user-code refuses"
            wanted = f"; wanted {either(tuple(names))}" if names else ""
            self.wrong(path, f"{found}{wanted}", nearest(Path(text).stem, names))
        return str(Path(file).resolve())  # what was judged, whatever becomes of a link on the way to it

    def _policy(self, row: KeyRow, kind: PolicyChoiceKind, node: Node, path: str) -> PolicyChoice:
        parameters: dict[str, ParameterValue] = {}
        if isinstance(node, Mapping):
            node = replace(node, entries=tuple(e for e in node.entries if e.key not in _HEADS or not _is_removed(e)))
        label = node
        if isinstance(node, Mapping) and row.default is not None and not (node.get("name") or node.get("file")):
            node = node.put("name", Scalar(text=row.default))  # parameters of the default
        if isinstance(node, Mapping):
            heads = [entry for entry in node.entries if entry.key in _HEADS]
            if len(heads) != 1:
                self.wrong(path, f"found a mapping with {len(heads)} of name and file, wanted exactly one")
                return PolicyChoice()
            label = heads[0].node
            for entry in node.entries:
                if entry not in heads:
                    at = joined_key(path, shown_key(entry.key))
                    self.places.lines[at] = entry.line
                    self._parameter(parameters, entry.key, entry.node, at)
        known = list(self.known.get(kind.folder, ()))
        if not isinstance(label, Scalar) or not isinstance(label.value, str) or not label.text.isprintable():
            self.wrong(path, f"found {show(label)}, wanted {_list_of(known)}, or a file such as ./mine.py")
            return PolicyChoice()
        text = label.text
        if text.endswith(".py") or "/" in text:
            file = self._code(text, path, known, is_in_file=label.line is not None)
            choice = PolicyChoice(file=file, parameters=parameters)
        elif text in known:
            choice = PolicyChoice(name=text, parameters=parameters)
        else:
            self.wrong(
                path,
                f"found {show(label)}, wanted {_list_of(known)}, or a file such as ./mine.py",
                nearest(text, known),
            )
            return PolicyChoice(name=text, parameters=parameters)
        is_judged = self.is_sound(path) and self.runs(path, choice.label)
        if self.check_parameters is not None and parameters and is_judged:
            for mistake in self.check_parameters(kind.folder, choice.label, parameters):
                at = mistake.path if mistake.path.startswith(f"{path}.") else joined_key(path, mistake.path)
                self.wrong(at, mistake.text, mistake.fix)
        return choice

    def _parameter(self, parameters: dict[str, ParameterValue], key: str, node: Node, path: str) -> None:
        value = node.value if isinstance(node, Scalar) else None
        if is_null(node) and node.line is None:
            self.wrong(path, "the file does not give this parameter, so there is nothing to remove")
        elif value is None or (isinstance(value, float) and not math.isfinite(value)):
            self.wrong(path, f"found {show(node)}, wanted a number, true, false or text with a unit")
        else:
            parameters[key] = value

    def _device(self, kind: DeviceKind, node: Node, path: str) -> DeviceChoice:
        model = Scalar(text="plain")
        fields: dict[str, Any] = {}
        if isinstance(node, Mapping):
            rows = device_rows(kind.record)
            entries = self._entries(node, path, [kind.head, *(row.key for row in rows.values())], {})
            named = entries.pop(kind.head, model)
            fields = self._fields(rows, entries, path)
        else:
            named = node
        known = list(self.known.get(kind.catalogue, ()))
        if not isinstance(named, Scalar) or not isinstance(named.value, str) or not named.text.isprintable():
            self.wrong(path, f"found {show(named)}, wanted {kind.wanted}")
            return DeviceChoice(fields=fields)
        if known and named.text != "plain" and named.text not in known:
            names = list(dict.fromkeys(["plain", *known]))
            self.wrong(path, f"found {show(named)}, wanted {_list_of(names)}", nearest(named.text, names))
        return DeviceChoice(model=named.text, fields=fields)

    def _fields(self, rows: dict[str, KeyRow], entries: dict[str, Node], path: str) -> dict[str, Any]:
        fields: dict[str, Any] = {}
        for name, row in rows.items():
            node = entries.get(row.key)
            if node is None or (is_null(node) and row.absent):
                continue
            at = joined_key(path, row.key)
            if isinstance(row.kind, Section):
                inner = device_rows(row.kind.model)
                below = self._fields(inner, self._entries(node, at, [r.key for r in inner.values()], {}), at)
                if below:
                    fields[name] = below
            else:
                value = self._value(row, node, at)
                if self.is_sound(at):
                    fields[name] = value
        return fields


def _with_options(rows: dict[str, KeyRow], chooser: Chooser) -> list[KeyRow]:
    """Rows of a section, with its choices' rows behind the choosing key."""
    every = [row for _, row in chooser.others().values()]
    return [chooser.row, *every, *(row for row in rows.values() if row.key != chooser.row.key)]


def _unmet(rows: MappingType[str, KeyRow], node: Node, key: str) -> str | None:
    """Why a key means nothing beside the other keys of its section, or None."""
    by_key = {row.key: row for row in rows.values()}
    row = by_key.get(key)
    deciding = None if row is None else by_key.get(selector(row) or "")
    if row is None or deciding is None or not isinstance(node, Mapping):
        return None
    entry = node.get(deciding.key)
    chosen = resolved_default(deciding) if entry is None else getattr(entry.node, "value", None)
    return None if applies(row, chosen) else means_nothing(deciding.key, chosen, _wanted(row, ()))


def _wanted(row: KeyRow, names: tuple[str, ...]) -> tuple[str, ...]:
    """Values of the choosing key that give a row its meaning."""
    if row.only is not None:
        return row.only[1]
    return tuple(name for name in names if row.unless is None or name not in row.unless[1])


def _is_removed(entry: YamlEntry) -> bool:
    """Whether ``--set`` removed the key."""
    return is_null(entry.node) and entry.line is None


def _around(path: str) -> Iterator[str]:
    """Yield a key and the sections around it."""
    while path:
        yield path
        path = path.rpartition(".")[0]


def _nearest_of(kind: NameOrFile, text: str, known: list[str]) -> str | None:
    return nearest_model(text, known) if kind.catalogue == "model" else nearest(text, known)


def _list_of(names: list[str]) -> str:
    return (
        f"{', '.join(names[:-1])} or {names[-1]}"
        if len(names) > 1
        else names[0]
        if names
        else "a name (none is installed)"
    )
