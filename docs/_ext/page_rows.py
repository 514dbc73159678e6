"""Tables made from the rows of the program: devices, policies and their parameters, columns, commands, lists of pages.

``<!-- rows: switch -->`` stands on a page where the rows of a kind belong, and ``<!-- end rows -->`` after them.
`python docs/outputs.py --write` fills the place and a test holds it current, so that nobody types a row twice.
Leaves out: the keys of a scenario, whose page `weftwork.spec.scenario.reference` writes.
"""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from weftwork.base.catalogue import Catalogue, Figure
    from weftwork.policies.parameters import ParameterRow

__all__ = ["package", "rows", "rows_of_build"]

ROOT = Path(__file__).parents[2]
_DETAILS: Final = ("ecn_", "receive_", "pcie_latency")  # keys that the table of all devices of a kind leaves out
_MARK: Final = {"verified": "", "unverified": " *unverified*", "chosen": " *chosen*"}


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;").replace("*", "\\*").replace("_", "\\_")


def _code(text: str) -> str:
    """Code in a cell of a table."""
    return "`" + text.replace("|", "\\|") + "`"


def _table(heads: Iterable[str], rows: Iterable[Iterable[str]]) -> Iterator[str]:
    names = list(heads)
    yield "| " + " | ".join(names) + " |"
    yield "|" + "---|" * len(names)
    for row in rows:
        yield "| " + " | ".join(row) + " |"
    yield ""


def _target(name: str) -> str:
    """A place that links lead to, on the site and on a code host."""
    return f'<a id="{name}"></a>'


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


# Devices


def _devices(
    kind: str, name: str, module: str = "weftwork.hardware.catalogue", *, level: str = "##", shown: int = 5
) -> Callable[[], Iterator[str]]:
    """All rows of a catalogue: first side by side with a few figures, then each with all and their sources."""

    def lines() -> Iterator[str]:
        catalogue: Catalogue = getattr(import_module(module), name)
        few = [key for key in _keys(catalogue) if not key.startswith(_DETAILS) and _share(catalogue, key) > 0.5][:shown]
        yield from _table(
            ["name", "what it is", *(_words(key) for key in few)],
            (
                [f"[{_code(row.name)}](#{kind}-{_slug(row.name)})", _cell(row.title)]
                + [_shown(row.figures[key]) if key in row.figures else "" for key in few]
                for row in catalogue.values()
            ),
        )
        for row in catalogue.values():
            yield _target(f"{kind}-{_slug(row.name)}")
            yield f"{level} {row.name}\n"
            yield _sentence(_cell(row.title)) + "\n"
            if not row.figures:
                continue
            yield from _table(
                ["figure", "value", "mark", "source"],
                (
                    [_code(key), _cell(figure.text), figure.standing, _cell(figure.source.removeprefix("chosen: "))]
                    for key, figure in row.figures.items()
                ),
            )

    return lines


def _keys(catalogue: Catalogue) -> list[str]:
    return list(dict.fromkeys(key for row in catalogue.values() for key in row.figures))


def _share(catalogue: Catalogue, key: str) -> float:
    return sum(key in row.figures for row in catalogue.values()) / len(catalogue)


def _slug(name: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", name.lower())


def _words(key: str) -> str:
    return re.sub(r"_(bps|bytes|ps|m|w)$", "", key).replace("_", " ")


def _shown(figure: Figure) -> str:
    return _cell(figure.text) + _MARK[figure.standing]


# Policies


def _policies(kind: str) -> Callable[[], Iterator[str]]:
    def lines() -> Iterator[str]:
        from weftwork.cli.list import choices
        from weftwork.policies.load import catalogue, load
        from weftwork.policies.needed import NOTHING

        key, page = f"transport.{kind}", kind.replace("_", "-")
        entries = catalogue(kind)
        yield from _table(
            ["name", "what it is", "source"],
            ([f"[{_code(e.name)}](#{page}-{e.name})", _cell(e.text), _cell(e.source)] for e in entries),
        )
        needs: dict[str, Any] = {choice.name: choice for choice in choices(kind)}
        some = " It marks the needs of single variants." if any(one.variants for one in needs.values()) else ""
        yield f"The table lists what each of them needs, as `weftwork list {page}` prints it.{some}\n"
        yield from _table(
            ["name", "needs of switches", "needs of NICs", "variants"],
            (
                [
                    f"[{_code(name)}](#{page}-{name})",
                    *(_cell(", ".join(words) or NOTHING) for words in (listed.switch, listed.nic)),
                    ", ".join(map(_code, listed.variants)),
                ]
                for name, listed in needs.items()
            ),
        )
        for entry in entries:
            policy = load(kind, entry.name)
            yield _target(f"{page}-{entry.name}")
            yield f"## {entry.name}\n"
            yield _sentence(_cell(entry.text)) + "\n"
            yield f"`{key}: {entry.name}`\n"
            yield f"- File: {_code(entry.path.relative_to(package().parent).as_posix())}"
            yield f"- Source: {_cell(policy.plugin.source)}"
            listed = needs[entry.name]
            yield f"- Needs of switches: {', '.join(listed.switch) or NOTHING}"
            yield f"- Needs of NICs: {', '.join(listed.nic) or NOTHING}"
            if getattr(policy.plugin, "reorders", "never") != "never":
                yield f"- Packets overtake each other: {policy.plugin.reorders}."
            if getattr(policy.plugin, "reply_entropy", "own") == "echoed":
                text = "take the entropy of the packet that they answer, unless `transport.reply_entropy` is `own`"
                yield f"- ACKs and NAKs {text}."
            model = _model_page(entry.name)
            if model is not None:
                yield f"- Its model: [{model}](../models/{model}.md)"
            yield ""
            if policy.rows:
                yield from _parameters(policy.rows)
            else:
                yield "It takes no parameters.\n"

    return lines


def package() -> Path:
    """The folder of Weftwork as it is installed."""
    import weftwork

    return Path(weftwork.__path__[0])


def _model_page(name: str) -> str | None:
    return name if (ROOT / "docs" / "models" / f"{name}.md").is_file() else None


def _parameters(rows: Iterable[ParameterRow]) -> Iterator[str]:
    yield from _table(
        ["parameter", "default", "allowed", "meaning", "source"],
        ([_code(r.name), _cell(r.shown(r.default)), _cell(_limits(r)), _cell(r.text), _cell(r.source)] for r in rows),
    )


def _limits(row: ParameterRow) -> str:
    if row.type is bool:
        return "true or false"
    bounds = ((">=", row.minimum), ("<=", row.maximum))
    return " and ".join(f"{sign} {row.shown(limit)}" for sign, limit in bounds if limit is not None) or "any"


def _variants(kind: str, name: str) -> Callable[[], Iterator[str]]:
    """Named sets of parameters side by side: what a variant leaves out has the default."""

    def lines() -> Iterator[str]:
        from weftwork.policies.load import load

        names = list(load(kind, name).plugin.variants)
        sets = [load(kind, name, variant=variant) for variant in names]
        yield from _table(
            ["parameter", *(_code(variant) for variant in names)],
            ([_code(row.name), *(_cell(row.shown(one.values[row.name])) for one in sets)] for row in sets[0].rows),
        )

    return lines


def _variants_of_all() -> dict[str, Callable[[], Iterator[str]]]:
    """``NAME-variants`` of each congestion control and port selection; no name is in both catalogues."""
    from weftwork.policies.load import policy_names

    kinds = ("congestion_control", "port_selection")
    return {f"{name}-variants": _variants(kind, name) for kind in kinds for name in policy_names(kind)}


# The interface of policies


def _records(name: str) -> Callable[[], Iterator[str]]:
    """Fields of one record of the interface; the columns that no field of it fills are left out."""

    def lines() -> Iterator[str]:
        from weftwork.policies import described, interface

        rows = described.field_rows(getattr(interface, name))
        columns = {
            "field": [_code(f"{row.name}[{row.size}]" if row.size else row.name) for row in rows],
            "type": [row.type for row in rows],
            "unit": [_cell(row.unit) for row in rows],
            "set with": [_cell(row.when) or "all" for row in rows],
            "needs": [_code(row.need) if row.need else "" for row in rows],
            "meaning": [_marked(row.text) for row in rows],
        }
        if not any(row.when for row in rows):
            del columns["set with"]
        if not any(columns["needs"]):
            del columns["needs"]
        yield from _table(columns, zip(*columns.values(), strict=True))

    return lines


def _plugin_fields(name: str) -> Callable[[], Iterator[str]]:
    def lines() -> Iterator[str]:
        from weftwork.policies import described, interface

        rows = described.plugin_rows(getattr(interface, name))
        yield from _table(
            ["field", "default", "meaning"],
            ([_code(field), _code(default) if default else "", _marked(text)] for field, default, text in rows),
        )

    return lines


def _kinds() -> Iterator[str]:
    from weftwork.policies import described

    yield from _table(
        ["kind", "number", "meaning"],
        ([_code(name), str(number), _marked(text)] for name, number, text in described.kind_rows()),
    )


def _needs() -> Iterator[str]:
    from weftwork.policies import described

    yield from _table(
        ["need", "what it asks for", "fields"],
        ([_code(name), _marked(text), ", ".join(map(_code, fields))] for name, text, fields in described.need_rows()),
    )


def _marked(text: str) -> str:
    """A comment or docstring in a cell: what stands between backticks stays code."""
    pieces = re.split(r"`+", text)
    return "".join(_code(piece) if at % 2 else _cell(piece) for at, piece in enumerate(pieces))


# Words, tables, commands, changes


def _algorithms() -> Iterator[str]:
    """Algorithms of collectives, with what each says of itself at the top of its file."""
    from weftwork.workload.collectives import algorithms
    from weftwork.workload.collectives.catalogue import ALGORITHMS

    for name, algorithm in ALGORITHMS.items():
        text = import_module(f"{algorithms.__name__}.{name.replace('-', '_')}").__doc__ or ""
        first, _, rest = text.partition("\n")
        yield _target(f"algorithm-{name}")
        yield f"### {name}\n"
        yield f"{_cell(first)}\n"
        yield f"Operations: {', '.join(sorted(algorithm.operations))}.\n"
        about, _, cited = rest.partition("Source: ")
        if about.strip():
            yield f"{_cell(about.strip())}\n"
        left_out = cited.partition("Leaves out: ")[2]
        yield f"- Source: {_cell(algorithm.source)}"
        yield f"- Leaves out: {_cell(left_out.strip())}\n" if left_out else ""


def _choices(kind: str) -> Callable[[], Iterator[str]]:
    """What ``weftwork list KIND`` lists."""

    def lines() -> Iterator[str]:
        from weftwork.cli.list import choices

        yield from _table(
            ["name", "what it is", "source"], ([_code(c.name), _cell(c.text), _cell(c.source)] for c in choices(kind))
        )

    return lines


def _routings() -> Iterator[str]:
    """What ``weftwork list routing`` lists; each name leads to its page, beside the page with these rows."""
    from weftwork.spec.routings import ROUTINGS

    yield from _table(
        ["name", "what it is", "virtual channels", "source"],
        (
            [f"[{_code(name)}]({name}.md)", _cell(row.text), _cell(row.channels), _cell(row.source)]
            for name, row in ROUTINGS.items()
        ),
    )


def _tables() -> Iterator[str]:
    from weftwork.spec.result import TABLES

    for name, columns in TABLES.items():
        yield _target(f"table-{name}")
        yield f"## {name}\n"
        yield from _table(
            ["column", "type", "unit", "meaning"],
            (
                [_code(c.name), c.type + (" or null" if c.optional else ""), _cell(c.unit), _cell(c.text)]
                for c in columns
            ),
        )


def _leaves(group: Any, before: str = "") -> Iterator[tuple[str, Any]]:  # noqa: ANN401 - typer's own class
    """Yield the commands of a group and of the groups in it, each by all its words."""
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _leaves(command, f"{before}{name} ")
        else:
            yield f"{before}{name}", command


def _commands() -> Iterator[str]:
    from weftwork.cli.commands import root_command

    group = root_command()
    yield from _table(
        ["command", "what it does"],
        (
            [f"[{_code(f'weftwork {name}')}](#weftwork-{name.replace(' ', '-')})", _cell(command.help)]
            for name, command in _leaves(group)
        ),
    )
    for name, command in _leaves(group):
        arguments = [one for one in command.params if one.param_type_name == "argument"]
        options = ["[OPTIONS]"] if len(arguments) < len(command.params) else []
        usage = " ".join(["weftwork", name, *options, *map(_metavar, arguments)])
        yield _target(f"weftwork-{name.replace(' ', '-')}")
        yield f"## weftwork {name}\n"
        yield _sentence(_cell(command.help)) + "\n"
        yield f"```text\n{usage}\n```\n"
        if command.params:
            yield from _table(["argument or option", "meaning"], (_parameter(one) for one in command.params))


def _metavar(argument: Any) -> str:  # noqa: ANN401 - typer's own class
    name = argument.metavar or argument.name.upper()
    shown = f"{name}..." if argument.nargs == -1 else name
    return shown if argument.required else f"[{shown}]"


def _parameter(one: Any) -> list[str]:  # noqa: ANN401 - as above
    text = _cell(one.help or "")
    if one.param_type_name == "argument":
        return [_code(_metavar(one)), text]
    takes = "" if one.is_flag else f" {one.metavar or one.name.upper()}"
    plain = isinstance(one.default, int | float | str) and not one.is_flag
    default = f" By default {one.default}." if plain else ""
    return [", ".join(_code(opt + takes) for opt in one.opts), text + default]


def _absent_models() -> Iterator[str]:
    """Models that the catalogue leaves out, with what they have."""
    from weftwork.workload.models.catalogue import ABSENT

    yield from _table(
        ["name", "what it is", "what is missing", "source"],
        ([_code(row.name), _cell(row.title), _cell(row.missing), _cell(row.source)] for row in ABSENT.values()),
    )


def _peer_scenarios() -> Iterator[str]:
    """Shipped scenarios of the scripted peer, with the reaction that each expects."""
    from weftwork.rdma.peer.reading import find_script, read_script, scenario_names

    scripts = [(name, read_script(find_script(name))) for name in scenario_names()]
    yield from _table(
        ["name", "what happens", "expected reaction", "source"],
        (
            [_code(name), _cell(one.shows), _cell(" ".join(e.says for e in one.expect)), _cell(one.clause)]
            for name, one in scripts
        ),
    )


def _peer_keys() -> Iterator[str]:
    """Keys of a script of the peer, a table for each section."""
    from weftwork.rdma.peer import expectations, script
    from weftwork.spec.scenario.rows import rows_of

    sections = {
        "The script": script.PeerScript,
        "end": script.EndKeys,
        "rules": script.RuleKeys,
        "set": script.PacketKeys,
        "answer": script.AnswerKeys,
        "peer": script.PeerStep,
        "expect": expectations.Expectation,
        "after": expectations.MatchKeys,
    }
    for name, model in sections.items():
        yield f"### {name if ' ' in name else _code(name)}\n"
        yield from _table(
            ["key", "default", "allowed", "meaning"],
            (
                [_code(row.key), _cell(row.default_text), _cell(row.allowed), _marked(row.text)]
                for row in rows_of(model).values()
            ),
        )


def _unreleased() -> Iterator[str]:
    """Fragments of `changes.d`, by kind, as the next release will print them.

    Says so where there are none, such as right after a release.
    """
    import tomllib

    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["towncrier"]
    folder = ROOT / settings["directory"]
    if not any(folder.glob("*.*.md")):
        yield "Nothing since the last release."
    for kind in settings["type"]:
        fragments = sorted(folder.glob(f"*.{kind['directory']}.md"))
        if fragments:
            yield f"### {kind['name']}\n"
            yield from (f"- {' '.join(path.read_text(encoding='utf-8').split())}" for path in fragments)
            yield ""


# Pages


_NAVIGATION: Final = re.compile(r"^<!-- \{(?:toctree|rest-of-folder)\}\n(.*?)^-->$", re.MULTILINE | re.DOTALL)
_INCLUDE: Final = re.compile(r"^<!-- \{include\} (\S+)$", re.MULTILINE)


def _title(page: Path) -> str:
    """The first heading of a page, as the text of a link."""
    return next(line[2:] for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("# "))


def _pages(page: Path) -> Iterator[str]:
    """The pages that the navigation comments of a page name, since a code host does not show those."""
    for comment in _NAVIGATION.findall(page.read_text(encoding="utf-8")):
        options = dict(re.findall(r"^:([a-z]+): *(.*)$", comment, re.MULTILINE))
        links = []
        for entry in (line for line in comment.splitlines() if line and not line.startswith(":")):
            title, _, name = entry.rpartition("<")
            names = [page.parent / f"{name.rstrip('>')}.md"]
            if "glob" in options:
                names = sorted(path for path in page.parent.glob(f"{entry}.md") if path != page)
            links += [f"[{title.strip() or _title(one)}]({one.relative_to(page.parent).as_posix()})" for one in names]
        if "caption" in options:
            yield f"**{options['caption']}:** {', '.join(links)}."
        else:
            yield from (f"- {link}" for link in links)
        yield ""


def _included(page: Path) -> Iterator[str]:
    """Links to the files that the site includes in a page."""
    for name in _INCLUDE.findall(page.read_text(encoding="utf-8")):
        yield f"- [{_title((page.parent / name).resolve())}]({name})"


_KINDS: Final[dict[str, Callable[[], Iterator[str]]]] = {
    "switch": _devices("switch", "SWITCHES"),
    "nic": _devices("nic", "NICS"),
    "node": _devices("node", "SERVERS"),
    "link": _devices("link", "LINKS"),
    "gpu": _devices("gpu", "GPUS"),
    "model": _devices("model", "MODELS", "weftwork.workload.models.catalogue"),
    "absent-model": _absent_models,
    "software": _devices("software", "SOFTWARE", "weftwork.workload.models.software"),
    "protocol": _devices("protocol", "PROTOCOLS", "weftwork.workload.collectives.protocols", level="###", shown=1),
    "collective-figures": _devices(
        "collective-figures", "FIGURES", "weftwork.workload.collectives.figures", level="###", shown=2
    ),
    "collective-networks": _devices(
        "collective-networks", "NETWORKS", "weftwork.workload.collectives.figures", level="###", shown=2
    ),
    "tuner-limits": _devices("tuner-limits", "TUNER", "weftwork.workload.collectives.tuner", level="###", shown=2),
    "tuner-regions": _devices("tuner-regions", "REGIONS", "weftwork.workload.collectives.tuner", level="###", shown=2),
    "algorithm": _algorithms,
    "congestion_control": _policies("congestion_control"),
    "path_selection": _policies("path_selection"),
    "port_selection": _policies("port_selection"),
    **{
        f"interface-{name}": _records(name)
        for name in ("Signal", "PortSignal", "Candidate", "SenderState", "ReceiverState", "PathState")
    },
    **{f"interface-{name}": _plugin_fields(name) for name in ("CongestionControl", "PathSelection", "PortSelection")},
    "interface-kinds": _kinds,
    "interface-needs": _needs,
    "topology": _choices("topology"),
    "routing": _routings,
    "traffic": _choices("traffic"),
    "sizes": _choices("sizes"),
    "load_balancing": _choices("load_balancing"),
    "transport": _choices("transport"),
    "collective": _choices("collective"),
    "tables": _tables,
    "commands": _commands,
    "peer-scenarios": _peer_scenarios,
    "peer-keys": _peer_keys,
}


_OF_PAGES: Final[dict[str, Callable[[Path], Iterator[str]]]] = {"pages": _pages, "included": _included}
_OF_BUILD: Final[dict[str, Callable[[], Iterator[str]]]] = {"unreleased": _unreleased}


def rows(kind: str, page: Path) -> Iterator[str]:
    """The lines of Markdown of a kind of rows.

    Raises
    ------
    KeyError : there are no rows of that kind; the text lists all kinds
    """
    if kind in _OF_PAGES:
        return _OF_PAGES[kind](page)
    kinds = _KINDS | _variants_of_all()
    if kind not in kinds:
        raise KeyError(f"no rows '{kind}', wanted {', '.join((*kinds, *_OF_PAGES))}")
    return kinds[kind]()


def rows_of_build(kind: str) -> Iterator[str]:
    """As `rows`, of what the repository does not keep since each change would touch it."""
    return _OF_BUILD[kind]()
