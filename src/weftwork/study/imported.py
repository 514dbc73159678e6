"""A scenario for `weftwork run` from another program's arguments.

Arguments say nothing about the fabric: it is the one that most of the documents have, and that is told as assumed. A
job that cannot run becomes a scenario too, with each mistake as a comment at its key.
Leaves out: what arguments mean (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.overrides import apply_override
from weftwork.spec.scenario.training import NO_RECIPE
from weftwork.spec.scenario.yaml_tree import Mapping as Tree
from weftwork.spec.scenario.yaml_tree import plain_value, read_tree, write_tree
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.workload.imports.megatron_keys import USUAL
from weftwork.workload.models.catalogue import MODELS, model

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from weftwork.workload.imports.megatron import MegatronImport
    from weftwork.workload.imports.megatron_keys import KeyValue

__all__ = ["NODE", "ImportedScenario", "digests_of", "scenario_of_import", "sections_of_import", "unchanged_import"]

NODE: Final = "dgx-h100"  # chosen: the server of most published runs of Megatron-LM today
TOPOLOGY: Final = "rail-optimized"  # chosen: how such servers are usually connected
SWITCH: Final = "tomahawk-5"  # chosen: as in the quick start
_OPTIONS: Final = {"fabric.gpus": "--gpus", "fabric.node": "--node"}
_CHECK: Final = re.compile(r"#[^\n]*\n# [^\n]*check ([0-9a-f]{16}) ([0-9a-f]{16}|-)\)\n")


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedScenario:
    """A scenario written from arguments.

    Attributes
    ----------
    text : of the scenario
    config : text of the ``config.json`` that it names, with its file's name; None for a model of the catalogue
    assumed : key of the fabric, and the value that no argument says, with the reason
    mistakes : why the job cannot run, by argument and line
    """

    text: str
    config: tuple[str, str] | None
    assumed: Mapping[str, str]
    mistakes: tuple[Mistake, ...] = ()


def scenario_of_import(
    found: MegatronImport,
    *,
    name: str,
    source: str,
    node: str | None = None,
    settings: Mapping[str, str] | None = None,
    folder: Path | None = None,
    user_code: bool = True,
) -> ImportedScenario:
    """Write the scenario of imported arguments, and prepare it as a run would.

    Parameters
    ----------
    found : what the arguments say
    name : of the scenario
    source : what errors call the arguments
    node : server of the hardware catalogue
    settings : keys and their values as YAML text, in place of those of the arguments
    folder : of the scenario, to which its files are relative; the current one by default
    user_code : whether the settings may name Python files, which are then run

    Raises
    ------
    ConfigError : nobody says how many GPUs there are, or every mistake is one of an option
    """
    settings = settings or {}
    if found.gpus is None and "fabric.gpus" not in settings:
        hint = "".join(f"; {key}: {why}" for key, why in found.ignored.items() if why.endswith("GPUs is unknown"))
        text = f"is missing, wanted the number of GPUs here, or --nnodes and --nproc-per-node of a launcher{hint}"
        raise ConfigError(source, [Mistake(path="--gpus", text=text)])
    tree = {"schema": SCHEMA, "name": name, "fabric": _fabric(found.gpus, node), **sections_of_import(found)}
    known = tree["training"].get("model")
    if known in MODELS and model(known).experts and "training.recipe" not in settings:
        tree["training"]["recipe"] = NO_RECIPE  # what the arguments leave open has the default of their program
    config = None
    if found.config is not None:
        config = (str(found.keys["training.model"]), json.dumps(dict(found.config), indent=2) + "\n")
    assumed = {"fabric.topology": f"{TOPOLOGY} with {SWITCH}: arguments say nothing about switches"}
    if node is None:
        assumed["fabric.node"] = f"{NODE}: --node chooses another server"
    assumed = {key: text for key, text in assumed.items() if key not in settings}
    text = write_tree(_with(tree, settings, source))
    checked = write_tree(_with(tree, _from_folder(settings, folder or Path()), source))
    mistakes = _mistakes(checked, config, user_code=user_code)
    placed = [_placed(mistake, found, settings) for mistake in mistakes]
    if placed and all(mistake.path.startswith("--") and mistake.line is None for mistake in placed):
        raise ConfigError(source, placed)  # the command is quickly written anew
    if mistakes:
        text = _with_comments(text, mistakes, config)
    return ImportedScenario(text=text, config=config, assumed=assumed, mistakes=tuple(placed))


def _fabric(gpus: int | None, node: str | None) -> dict[str, Any]:
    fabric = {"topology": TOPOLOGY, "gpus": gpus, "node": node or NODE, "switch": SWITCH}
    return {key: value for key, value in fabric.items() if value is not None}


def sections_of_import(found: MegatronImport) -> dict[str, Any]:
    """Imported keys as a tree, the model first.

    A default of the scenario is written only if an argument gives it.
    """
    order = sorted(found.keys, key=lambda key: key != "training.model")
    tree: dict[str, Any] = {}
    for key in order:
        value: KeyValue = found.keys[key]
        if value == USUAL.get(key) and key not in found.places:
            continue
        *above, last = key.split(".")
        section = tree
        for part in above:
            section = section.setdefault(part, {})
        section[last] = list(value) if isinstance(value, tuple) else value
    return tree


def _with(tree: dict[str, Any], settings: Mapping[str, str], source: str) -> dict[str, Any]:
    """The tree with the settings in it.

    Raises
    ------
    ConfigError : with the mistakes of the settings themselves
    """
    findings = Findings(source=source)
    root = read_tree(write_tree(tree), findings)
    if not isinstance(root, Tree):
        raise ConfigError(source, findings.mistakes)
    for key, text in settings.items():
        root = apply_override(root, key, text, findings)
    findings.refuse()
    changed: dict[str, Any] = plain_value(root)
    return changed


def _from_folder(settings: Mapping[str, str], folder: Path) -> dict[str, str]:
    """Settings whose files are named from the root, so that any folder may hold the scenario."""
    placed = {}
    for key, text in settings.items():
        is_file = text.isprintable() and 0 < len(text) < 200 and (folder / text).is_file()
        placed[key] = json.dumps(str((folder / text).resolve())) if is_file else text
    return placed


def _mistakes(text: str, config: tuple[str, str] | None, *, user_code: bool) -> tuple[Mistake, ...]:
    """Prepare the scenario in a temporary folder."""
    with TemporaryDirectory(prefix="weftwork-import-") as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(text, encoding="utf-8")
        if config is not None:
            (Path(folder) / config[0]).write_text(config[1], encoding="utf-8")
        try:
            prepare(read_scenario(path, user_code=user_code))
        except ConfigError as error:
            return error.mistakes
    return ()


def _placed(mistake: Mistake, found: MegatronImport, settings: Mapping[str, str]) -> Mistake:
    """A mistake of the scenario as a mistake of the arguments.

    Keys that nobody gave keep their names.
    """
    setting = next((key for key in settings if mistake.path == key or mistake.path.startswith(f"{key}.")), None)
    if setting is not None:
        return Mistake(path=f"--set {mistake.path}", text=mistake.text, fix=mistake.fix)
    argument, line = found.places.get(mistake.path, (_OPTIONS.get(mistake.path), None))
    path = mistake.path if argument is None else f"{argument} ({mistake.path})"
    return Mistake(path=path, text=mistake.text, line=line, fix=mistake.fix)


def _with_comments(text: str, mistakes: Sequence[Mistake], config: tuple[str, str] | None) -> str:
    """The scenario with each mistake at the line of its key, or of the section where the key is missing."""
    root = read_tree(text, Findings())
    lines = text.splitlines()
    above = []
    for mistake in mistakes:
        fix = f"; did you mean '{mistake.fix}'?" if mistake.fix is not None else ""
        comment = "  # mistake: " + " ".join(f"{mistake.path}: {mistake.text}{fix}".split())
        line = _line_of(root, mistake.path) if isinstance(root, Tree) else None
        commented = [row + comment if number == line else row for number, row in enumerate(lines, start=1)]
        again = read_tree("\n".join(commented), Findings())
        if line is None or again is None or root is None or plain_value(again) != plain_value(root):
            above.append(comment.strip())  # the value has several lines
        else:
            lines = commented
    body = "".join(f"{row}\n" for row in [*above, *lines])
    digests = " ".join(digests_of(body, None if config is None else config[1]))
    count = plural(len(mistakes), "mistake")
    return (
        f"# This job cannot run: {count}, each at its key. Mend it here, or import it again.\n"
        f"# A new import writes over this file while it is unchanged (check {digests})\n{body}"
    )


def _line_of(root: Tree, path: str) -> int | None:
    """Line of a key, or of the nearest section above it."""
    line, node = None, root
    for part in path.split("."):
        entry = node.get(part)
        if entry is None:
            return line
        line = entry.line
        if not isinstance(entry.node, Tree):
            return line
        node = entry.node
    return line


def digests_of(body: str, config: str | None) -> tuple[str, str]:
    """Short digests of a scenario without its first lines and of its model file."""
    texts = (body, config)
    first, second = ("-" if text is None else hashlib.sha256(text.encode("utf-8")).hexdigest()[:16] for text in texts)
    return first, second


def unchanged_import(text: str) -> tuple[str, str] | None:
    """Digests that an import wrote into a scenario that cannot run, if nobody changed it since; else None."""
    match = _CHECK.match(text)
    if match is None or digests_of(text[match.end() :], None)[0] != match[1]:
        return None
    return match[1], match[2]
