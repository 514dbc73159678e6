"""A scenario as YAML again, complete, and the files that it names.

Leaves out: how YAML is read (`weftwork.spec.scenario.scenario`).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from pydantic import BaseModel

from weftwork.base.folder import is_path
from weftwork.spec.scenario.chosen import OPTIONS
from weftwork.spec.scenario.devices import DeviceChoice, device_rows
from weftwork.spec.scenario.kinds import (
    DeviceKind,
    FileName,
    NameOrFile,
    OfferKind,
    PolicyChoiceKind,
    Section,
    SectionList,
)
from weftwork.spec.scenario.policies import PolicyChoice
from weftwork.spec.scenario.rows import KeyRow, applies, rows_of, selector
from weftwork.spec.scenario.scenario import Scenario
from weftwork.spec.scenario.yaml_tree import write_tree

__all__ = ["dump", "files_of"]


def dump(
    scenario: Scenario,
    *,
    is_kept: Callable[[str], bool] | None = None,
    name_file: Callable[[str, str], str] | None = None,
) -> str:
    """Write the complete scenario as YAML, with all defaults and all that is derived; `loads` reads it back equal.

    Keys that mean nothing for this scenario are left out. Files are absolute paths unless ``name_file`` names them.

    Parameters
    ----------
    scenario : that was read
    is_kept : whether a key such as ``fabric.radix`` or ``faults`` is written; all are by default
    name_file : from a key and its file to the name that is written; a name without ``/`` and ``.py`` is one of the
        catalogue
    """
    tree = _section_tree(scenario, "", name_file or _as_it_is)
    if is_kept is None:
        return write_tree(tree)
    kept: dict[str, Any] = {}
    for key, value in tree.items():
        if isinstance(value, dict):
            section = {name: inner for name, inner in value.items() if is_kept(f"{key}.{name}")}
            kept |= {key: section} if section else {}
        elif is_kept(key):
            kept[key] = value
    return write_tree(kept)


def files_of(scenario: Scenario) -> dict[str, str]:
    """Every file that a scenario names, by its key, such as ``jobs.0.model``; absolute paths."""
    found: dict[str, str] = {}

    def note(key: str, file: str) -> str:
        found[key] = file
        return file

    _section_tree(scenario, "", note)
    return found


def _as_it_is(_: str, file: str) -> str:
    return file


def _section_tree(section: BaseModel, path: str, name_file: Callable[[str, str], str]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    described_rows = rows_of(type(section))
    field_of = {described.key: name for name, described in described_rows.items()}
    for name, described in described_rows.items():
        value = getattr(section, name)
        deciding = selector(described)
        means_nothing = deciding is not None and not applies(described, getattr(section, field_of[deciding]))
        is_of_file = value == DeviceChoice(model="")  # as the fabric file says, in all fields
        if value is not None and value != () and not means_nothing and not is_of_file:
            tree[described.key] = _written(described, value, f"{path}{described.key}", name_file)
        if isinstance(described.kind, OfferKind):
            tree |= _section_tree(getattr(section, OPTIONS), path, name_file)
    return tree


def _written(
    described: KeyRow,
    value: Any,  # noqa: ANN401 - whatever the row holds
    path: str,
    name_file: Callable[[str, str], str],
) -> Any:  # noqa: ANN401 - what YAML has for it
    kind = described.kind
    if isinstance(kind, Section):
        return _section_tree(value, f"{path}.", name_file)
    if isinstance(kind, SectionList):
        return [_section_tree(item, f"{path}.{place}.", name_file) for place, item in enumerate(value)]
    if isinstance(kind, PolicyChoiceKind):
        return _policy_tree(value, path, name_file)
    if isinstance(kind, DeviceKind):
        return _device_tree(kind, value)
    written = kind.write(value)
    return name_file(path, written) if isinstance(written, str) and _names_file(kind, written) else written


def _names_file(kind: Any, text: str) -> bool:  # noqa: ANN401 - the kind of any row
    """Whether a resolved word is the path of a file and not a name of a catalogue."""
    if isinstance(kind, FileName):
        return text not in kind.names
    if isinstance(kind, NameOrFile):
        return bool(kind.endings) and (text.endswith(kind.endings) or "/" in text)
    return isinstance(kind, OfferKind) and is_path(text)


def _policy_tree(choice: PolicyChoice, path: str, name_file: Callable[[str, str], str]) -> str | dict[str, Any]:
    label = choice.label if choice.file is None else name_file(path, choice.file)
    if not choice.parameters:
        return label
    return {"file" if is_path(label) else "name": label, **choice.parameters}


def _device_tree(kind: DeviceKind, choice: DeviceChoice) -> str | dict[str, Any]:
    if not choice.fields:
        return choice.model
    head = {kind.head: choice.model} if choice.model else {}  # beside a fabric file there is none
    return {**head, **_field_tree(device_rows(kind.record), choice.fields)}


def _field_tree(rows: Mapping[str, KeyRow], fields: Mapping[str, Any]) -> dict[str, Any]:
    tree: dict[str, Any] = {}
    for name, value in fields.items():
        kind = rows[name].kind
        if isinstance(kind, Section):
            tree[rows[name].key] = _field_tree(device_rows(kind.model), value)
        else:
            tree[rows[name].key] = _written(rows[name], value, rows[name].key, _as_it_is)
    return tree
