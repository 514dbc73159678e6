"""``weftwork list``: the choices for every kind of thing in a scenario."""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.base.nearest import nearest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from rich.table import Table

    from weftwork.base.catalogue import Catalogue
    from weftwork.base.folder import Folder

__all__ = ["KINDS", "ListedChoice", "choices", "list_kind"]


PLANNED: Final = (("pinned paths",), ("constant entropy of a queue pair",))  # what laid paths need


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedChoice:
    """A choice with its name, one sentence, and its source."""

    name: str
    text: str
    source: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedNeeds(ListedChoice):
    """A choice, and its needs on switches and NICs in words."""

    switch: tuple[str, ...]
    nic: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedPolicy(ListedNeeds):
    """A policy with the needs of its variants and its presets."""

    variants: tuple[str, ...]


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedRouting(ListedChoice):
    """A routing, and the virtual channels that it needs in words."""

    channels: str


@dataclass(frozen=True, kw_only=True, slots=True)
class ListedSuspect(ListedChoice):
    """A kind of suspect, the key that changes it, and what it needs of a run."""

    key: str
    needs: tuple[str, ...]


def _policies(kind: str) -> Callable[[], list[ListedChoice]]:
    def found() -> list[ListedChoice]:
        from weftwork.policies.load import catalogue, load
        from weftwork.policies.needed import needed

        listed: list[ListedChoice] = []
        for entry in catalogue(kind):
            policy = load(kind, entry.name)
            asked = needed(policy)
            listed.append(
                ListedPolicy(
                    name=entry.name,
                    text=entry.text,
                    source=entry.source,
                    switch=asked.switch,
                    nic=asked.nic,
                    variants=tuple(policy.plugin.variants),
                )
            )
        return listed

    return found


def _devices(name: str, module: str = "weftwork.hardware.catalogue") -> Callable[[], list[ListedChoice]]:
    def found() -> list[ListedChoice]:
        from importlib import import_module

        rows: Catalogue = getattr(import_module(module), name)
        return [
            ListedChoice(
                name=row.name,
                text=row.title,
                source=", ".join(f"{figure.key} {figure.words}" for figure in row.figures.values()),
            )
            for row in rows.values()
        ]

    return found


def _offers(name: str) -> Callable[[], list[ListedChoice]]:
    """Files of a folder, with the first line and source of their docstrings."""

    def found() -> list[ListedChoice]:
        from weftwork.spec.scenario import choices as folders

        folder: Folder[Any] = getattr(folders, name)
        return [ListedChoice(name=one, text=folder.text(one), source=offer.source) for one, offer in folder.items()]

    return found


def _schemes() -> list[ListedChoice]:
    """Schemes of central engineering, which all need pinned paths."""
    return [
        ListedPolicy(
            name=one.name,
            text=one.text,
            source=one.source,
            switch=PLANNED[0],
            nic=PLANNED[1],
            variants=(),
        )
        for one in _offers("SCHEMES")()
    ]


def _topologies() -> list[ListedChoice]:
    """Topologies, and the words for a fabric without a topology."""
    from weftwork.spec.scenario.kinds import OfferKind
    from weftwork.spec.scenario.reference import row

    described = row("fabric.topology")
    words = described.kind.words if isinstance(described.kind, OfferKind) else {}
    others = [ListedChoice(name=name, text=text, source=described.source) for name, text in words.items()]
    return [*_offers("TOPOLOGIES")(), *others]


def _routings() -> list[ListedChoice]:
    from weftwork.spec.routings import ROUTINGS

    return [
        ListedRouting(name=name, text=row.text, source=row.source, channels=row.channels)
        for name, row in ROUTINGS.items()
    ]


def _presets() -> list[ListedChoice]:
    """Presets of load balancing; each needs what its policies need."""
    from weftwork.policies.load import load
    from weftwork.policies.needed import needed
    from weftwork.spec.scenario.policies import PRESETS, queue_pair_words
    from weftwork.spec.scenario.reference import row

    source = row("transport.load_balancing").source
    listed: list[ListedChoice] = []
    for name, (path, port) in PRESETS.items():
        at_nic, at_switch = needed(load("path_selection", path)), needed(load("port_selection", port))
        text, asked = f"path_selection {path}, port_selection {port}", [*at_nic.nic, *at_switch.nic]
        if words := queue_pair_words(name):
            text += f", {words}"
            asked.append("several queue pairs")
        listed.append(
            ListedNeeds(
                name=name,
                text=text,
                source=source,
                switch=tuple(dict.fromkeys((*at_nic.switch, *at_switch.switch))),
                nic=tuple(dict.fromkeys(asked)),
            )
        )
    return [*listed, *_planned()]


def _planned() -> list[ListedChoice]:
    """Planned paths, which are keys of the fabric and not presets."""
    from weftwork.spec.scenario.reference import row

    return [
        ListedNeeds(
            name=name, text=f"not a preset; use fabric.{key}: {text}", source=row(f"fabric.{key}").source,
            switch=PLANNED[0], nic=PLANNED[1],
        )
        for name, key, text in (
            ("path-pinning", "pinned", "your own paths between hosts"),
            ("planned", "engineering", "paths for the job's traffic matrix, by a scheme of central_engineering"),
        )
    ]  # fmt: skip


def _sizes() -> list[ListedChoice]:
    from weftwork.report.words import amount
    from weftwork.workload.traffic.sizes import load_sizes, published_sizes

    return [
        ListedChoice(
            name=name,
            text=f"mean {amount(load_sizes(name).mean_bytes, 'B')}",
            source="see weftwork/data/published/README.md",
        )
        for name in published_sizes()
    ]


def _collectives() -> list[ListedChoice]:
    """Algorithms with the first line of their file and their operations."""
    from weftwork.workload.collectives.catalogue import ALGORITHMS

    return [
        ListedChoice(
            name=name, text=f"{ALGORITHMS.text(name)} Does {', '.join(algorithm.operations)}.", source=algorithm.source
        )
        for name, algorithm in ALGORITHMS.items()
    ]


def _recipes() -> list[ListedChoice]:
    """Public recipes of training.

    `weftwork new recipe NAME` writes a recipe as a scenario.
    """
    from weftwork.workload.recipes.catalogue import RELEASES, recipe_names

    return [
        ListedChoice(
            name=name,
            text=f"{plural(recipe.gpus, 'GPU')}, batch {recipe.global_batch:,} x {recipe.sequence:,}, "
            f"tensor {recipe.tensor}, pipeline {recipe.pipeline}, context {recipe.context}, expert {recipe.expert}",
            source=f"NVIDIA-NeMo/Megatron-Bridge at {RELEASES[release]}, {recipe.file}, {recipe.recipe}",
        )
        for name, (recipe, release) in recipe_names().items()
    ]


def _suspects() -> list[ListedChoice]:
    """Kinds of suspects of an answer, the likeliest first."""
    from weftwork.study.answer.suspects import SUSPICIONS

    ranked = sorted(SUSPICIONS.items(), key=lambda item: item[1].rank)
    return [
        ListedSuspect(name=name, text=SUSPICIONS.text(name), key=kind.key, needs=tuple(sorted(kind.needs)))
        for name, kind in ranked
    ]


def _improvements() -> list[ListedChoice]:
    """Improvements of training that one can buy, in the order of the table ``what_if``."""
    from weftwork.study.answer.improvement import IMPROVEMENTS

    ranked = sorted(IMPROVEMENTS.items(), key=lambda item: item[1].rank)
    return [ListedChoice(name=name, text=IMPROVEMENTS.text(name)) for name, _ in ranked]


KINDS: Final[dict[str, Callable[[], list[ListedChoice]]]] = {
    "model": _devices("MODELS", "weftwork.workload.models.catalogue"),
    "software": _devices("SOFTWARE", "weftwork.workload.models.software"),
    "recipe": _recipes,
    "congestion_control": _policies("congestion_control"),
    "path_selection": _policies("path_selection"),
    "port_selection": _policies("port_selection"),
    "central_engineering": _schemes,
    "topology": _topologies,
    "routing": _routings,
    "switch": _devices("SWITCHES"),
    "nic": _devices("NICS"),
    "node": _devices("SERVERS"),
    "link": _devices("LINKS"),
    "gpu": _devices("GPUS"),
    "transport": _offers("TRANSPORTS"),
    "load_balancing": _presets,
    "traffic": _offers("PATTERNS"),
    "sizes": _sizes,
    "collective": _collectives,
    "fault": _offers("FAULTS"),
    "suspect": _suspects,
    "improvement": _improvements,
}


def choices(kind: str) -> list[ListedChoice]:
    """The choices of a kind.

    Raises
    ------
    ConfigError : there is no such kind; names all and the nearest
    """
    wanted = kind.replace("-", "_")
    if wanted not in KINDS:
        text = f"found '{kind}', wanted {', '.join(KINDS)}"
        raise ConfigError("weftwork list", [Mistake(path="kind", text=text, fix=nearest(wanted, KINDS))])
    return KINDS[wanted]()


def list_kind(kind: str | None, *, as_json: bool, with_sources: bool) -> None:
    """Print the choices of a kind, or the kinds.

    Parameters
    ----------
    kind : such as ``congestion_control``, or None
    as_json : a JSON list
    with_sources : whether to print where each comes from

    Raises
    ------
    ConfigError : there is no such kind
    """
    found = None if kind is None else choices(kind)
    if as_json:
        import json

        listed = list(KINDS) if found is None else [asdict(choice) for choice in found]
        sys.stdout.write(json.dumps(listed, indent=2) + "\n")
    elif found is None:
        sys.stdout.write("\n".join([*KINDS, ""]))
    else:
        _print_choices(found, with_sources=with_sources)


def _print_choices(found: list[ListedChoice], *, with_sources: bool) -> None:
    from rich.text import Text

    from weftwork.cli.console import console

    table = _table(show_header=False)
    table.add_column(no_wrap=True)
    table.add_column()
    for choice in found:
        table.add_row(choice.name, Text(choice.text))
        if with_sources and choice.source:
            table.add_row("", Text(choice.source, style="dim"))
    console().print(table)
    needing = [choice for choice in found if isinstance(choice, ListedNeeds)]
    if needing:
        console().print()
        console().print(_needs(needing))
    suspects = [choice for choice in found if isinstance(choice, ListedSuspect)]
    if suspects:
        console().print()
        console().print(_asked(suspects))
    routings = [choice for choice in found if isinstance(choice, ListedRouting)]
    if routings:
        console().print()
        console().print(_channels(routings))


def _asked(suspects: Iterable[ListedSuspect]) -> Table:
    """The key of each kind of suspect, and the runs that are asked for it."""
    from rich.text import Text

    table = _table(show_header=True)
    table.add_column("name", no_wrap=True)
    table.add_column("changed by", no_wrap=True)
    table.add_column("needs of a run")
    for suspect in suspects:
        table.add_row(suspect.name, Text(suspect.key), Text(", ".join(suspect.needs) or "nothing"))
    return table


def _channels(routings: Iterable[ListedRouting]) -> Table:
    """The virtual channels of each routing, by network."""
    from rich.text import Text

    table = _table(show_header=True)
    table.add_column("name", no_wrap=True)
    table.add_column("virtual channels of each priority")
    for one in routings:
        table.add_row(one.name, Text(one.channels))
    return table


def _needs(needing: Iterable[ListedNeeds]) -> Table:
    """The needs of each choice, and of the variants of a policy."""
    from rich.text import Text

    from weftwork.policies.needed import NOTHING

    table = _table(show_header=True)
    for head in ("name", "needs of switches", "needs of NICs"):
        table.add_column(head, no_wrap=head != "needs of NICs")
    rows = [(one.name, *(", ".join(words) or NOTHING for words in (one.switch, one.nic))) for one in needing]
    variants = [", ".join(one.variants) for one in needing if isinstance(one, ListedPolicy)]
    if variants:
        table.add_column("variants")
        rows = [(*row, words) for row, words in zip(rows, variants, strict=True)]
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _table(*, show_header: bool) -> Table:
    from rich.table import Table

    return Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), show_header=show_header, header_style="")
