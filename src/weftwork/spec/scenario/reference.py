"""The reference of scenario keys: one row, or the whole page.

``python -m weftwork.spec.scenario.reference > docs/scenario.md`` writes the page; a test holds it to the rows.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.nearest import nearest
from weftwork.spec.scenario.kinds import DeviceKind, PolicyChoiceKind, Section, SectionList, either
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.policies import PRESETS, known_policies, queue_pair_words
from weftwork.spec.scenario.rows import KeyRow
from weftwork.spec.scenario.scenario import rows

__all__ = ["below", "explanation", "facts", "page", "row", "rows_at"]


def row(path: str) -> KeyRow:
    """Return the row of a key, the first if several choices share it.

    Raises
    ------
    ConfigError : there is no such key; it names the nearest

    Examples
    --------
    >>> row("fabric.cable_length").text
    'Length of every cable, at 5 ns per metre.'
    """
    return rows_at(path)[0]


def rows_at(path: str) -> list[KeyRow]:
    """Return the rows of a key: one for each meaning.

    Different choices may give a key different meanings.

    Raises
    ------
    ConfigError : there is no such key; it names the nearest
    """
    by_path: dict[str, list[KeyRow]] = {}
    for one in rows():
        by_path.setdefault(one.path, []).append(one)
    if path in by_path:
        return by_path[path]
    leaf = {one.path.rpartition(".")[2]: one.path for one in reversed(rows())}
    word = nearest(path.rpartition(".")[2], leaf)
    near = nearest(path, by_path) if "." in path else None
    raise ConfigError(
        "weftwork explain",
        [
            Mistake(
                path=path or "key",
                text="no such key of a scenario",
                fix=near or (leaf[word] if word is not None else None),
            )
        ],
    )


def below(described: KeyRow) -> list[KeyRow]:
    """Return the rows of the keys directly inside a section or device.

    Empty for any other key.
    """
    head = f"{described.path}."
    return [one for one in rows() if one.path.startswith(head) and "." not in one.path.removeprefix(head)]


def facts(described: KeyRow) -> dict[str, Any]:
    """Return the facts about a key, as printed by ``weftwork explain --json``."""
    condition = None if described.only is None else f"{described.only[0]} {either(described.only[1])}"
    if described.unless is not None:
        condition = f"any {described.unless[0]} but {either(described.unless[1])}"
    return {
        "key": described.path,
        "text": described.text,
        "unit": described.unit,
        "default": described.default_text,
        "allowed": _allowed(described),
        "only_with": condition,
        "source": described.source,
        "keys": [one.path for one in below(described)],
    }


def _allowed(described: KeyRow) -> str:
    """Describe the allowed values, with the names of installed policies."""
    if not isinstance(described.kind, PolicyChoiceKind):
        return described.allowed
    names = known_policies()[described.kind.folder]
    return f"{', '.join(names)}; {described.allowed}"


def explanation(path: str) -> str:
    """Explain a key in a few lines; a section also lists its keys.

    Raises
    ------
    ConfigError : there is no such key
    """
    described = rows_at(path)
    lines = [path]
    for one in described:
        lines += _explained(one)
    inside = below(described[0])
    width = max((len(one.path) for one in inside), default=0)
    lines += list(dict.fromkeys(f"  {one.path:<{width}}  {one.text}" for one in inside))
    return "\n".join(lines)


def _explained(described: KeyRow) -> list[str]:
    lines = [f"  {described.text}"]
    if isinstance(described.kind, Section | SectionList):
        return lines
    told = facts(described)
    labels = ("unit", "default", "allowed", "only with", "source")
    found = ((label, told[label.replace(" ", "_")]) for label in labels)
    return lines + [f"  {label:<9} {value}" for label, value in found if value is not None]


_HEAD = f"""# The scenario

<!-- Made from the rows of src/weftwork/spec: `python -m weftwork.spec.scenario.reference > docs/scenario.md`. -->

A scenario is one YAML file. `weftwork explain KEY` prints any row below, by its full name such as `fabric.link_rate`;
`weftwork schema` prints the JSON Schema for editors. Below the meaning of a key stands where its default comes from.

```yaml
schema: {SCHEMA}
name: sixteen senders into one port
fabric:    {{topology: fat-tree, tiers: 3, radix: 8, link_rate: 400Gbps, cable_length: 20m}}
transport: {{congestion_control: dcqcn, load_balancing: ecmp, flow_control: pfc}}
traffic:   {{pattern: incast, senders: 16, size: 1MiB}}
engine:    {{fidelity: packet, seed: 1}}
faults:    [{{at: 2ms, link: leaf3-agg1, event: down}}]
```

Unknown keys are refused, and all mistakes of a file are told at once, each with its line and the nearest fix. Text
follows the core schema of YAML 1.2: only `true` and `false` are booleans. Anchors, aliases, merge keys and tags are
refused.

Units: rates `bps`, `kbps`, `Mbps`, `Gbps`, `Tbps`; sizes `B`, `KB`, `MB`, `GB`, `TB` (1,000) and `KiB`, `MiB`, `GiB`,
`TiB` (1,024), or a number of bytes such as `1e6`; times `ps`, `ns`, `us`, `ms`, `s`; lengths `mm`, `cm`, `m`, `km`.
Case counts (`b` is a bit, `B` a byte), except that `K` is `k`.

`--set KEY=VALUE` changes one key from the command line by the same rules; `null` removes it, and items of a list are
counted from 0: `--set faults.0.at=1ms`. Mistakes in it say `--set KEY`.

**Sweep.** A section `sweep` varies keys over many runs. `weftwork sweep FILE` alone reads it;
[its page](sweep.md) and `weftwork explain sweep` have its keys. Every other command refuses it;
`--set sweep=null` leaves it out.

**Schema and migration.** The first key is `schema: {SCHEMA}`. A change after which an old file would mean something
else, or be refused, raises the number and brings a migration that rewrites older files when they are read and says
what it changed. Schema 3 is that of the first release: `schema: 1` and `schema: 2` are refused, and so are newer ones.

**Policies.** `congestion_control`, `path_selection` and `port_selection` take a name, a file of your own (`./my_cc.py`,
relative to the scenario), or a mapping of either with parameters: `{{name: dcqcn, g: 0.004}}`. `load_balancing` is a
preset of the last two:

| load_balancing | path_selection | port_selection | beside these |
|---|---|---|---|
"""


def page() -> str:
    """Write the reference page of all keys, in Markdown."""
    presets = "".join(
        f"| {name} | {path} | {port} | {queue_pair_words(name)} |\n" for name, (path, port) in PRESETS.items()
    )
    top = [one for one in rows() if "." not in one.path]
    return _HEAD + presets + "\n" + "\n".join(_tables(top))


def _tables(described: list[KeyRow]) -> Iterator[str]:
    plain = [one for one in described if not _has_rows(one)]
    if plain:
        yield from _table(plain)
    for one in described:
        if _has_rows(one):
            yield f"## {one.path}\n"
            yield f"{one.text}\n"
            if isinstance(one.kind, DeviceKind):
                yield f"Allowed: {one.allowed}.\n"
            own = [inside for inside in below(one) if not _is_of_training(inside)]
            if len(own) < len(below(one)):
                yield f"All keys of [training](#training){', and' if own else ''}\n"
            yield from _tables(own)


def _is_of_training(described: KeyRow) -> bool:
    """Whether a key of `jobs` repeats a key of `training`.

    The table of `training` then stands for both.
    """
    head, _, tail = described.path.partition(".")
    return head == "jobs" and any(
        replace(one, path=described.path) == described for one in rows() if one.path == f"training.{tail}"
    )


def _has_rows(described: KeyRow) -> bool:
    return bool(below(described)) and not isinstance(described.kind, PolicyChoiceKind)


def _table(described: list[KeyRow]) -> Iterator[str]:
    """A table with one row per key.

    The source stands in small print below the meaning, so that the table fits a page.
    """
    yield "| key | meaning | unit | default | allowed |\n|---|---|---|---|---|"
    for one in described:
        condition = "" if one.only is None else f" Only with {one.only[0]} {either(one.only[1])}."
        if one.unless is not None:
            condition = f" Not with {one.unless[0]} {either(one.unless[1])}."
        meaning = f"{one.text}{condition}<br><small>{one.source}</small>"
        cells = [f"`{one.path.rpartition('.')[2]}`", meaning, one.unit, one.default_text, one.allowed]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


if __name__ == "__main__":
    sys.stdout.write(page())
