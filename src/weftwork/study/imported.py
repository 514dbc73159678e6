"""A scenario for `weftwork run` from another program's arguments.

Arguments say nothing about the fabric: it is the one that most of the documents have, and that is told as assumed.
Leaves out: what arguments mean (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.study.prepare.prepare import prepare, read_scenario
from weftwork.workload.imports.megatron_keys import USUAL

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.workload.imports.megatron import MegatronImport
    from weftwork.workload.imports.megatron_keys import KeyValue

__all__ = ["NODE", "ImportedScenario", "scenario_of_import", "sections_of_import"]

NODE: Final = "dgx-h100"  # chosen: the server of most published runs of Megatron-LM today
TOPOLOGY: Final = "rail-optimized"  # chosen: how such servers are usually connected
SWITCH: Final = "tomahawk-5"  # chosen: as in the quick start
_OPTIONS: Final = {"fabric.gpus": "--gpus", "fabric.node": "--node"}


@dataclass(frozen=True, kw_only=True, slots=True)
class ImportedScenario:
    """A scenario written from arguments.

    Attributes
    ----------
    text : of the scenario
    config : text of the ``config.json`` that it names, with its file's name; None for a model of the catalogue
    assumed : key of the fabric, and the value that no argument says, with the reason
    """

    text: str
    config: tuple[str, str] | None
    assumed: Mapping[str, str]


def scenario_of_import(found: MegatronImport, *, name: str, source: str, node: str | None = None) -> ImportedScenario:
    """Write the scenario of imported arguments, and prepare it as a run would.

    Parameters
    ----------
    found : what the arguments say
    name : of the scenario
    source : what errors call the arguments
    node : server of the hardware catalogue

    Raises
    ------
    ConfigError : nobody says how many GPUs there are, or the job cannot run; with every mistake, by argument and line
    """
    if found.gpus is None:
        hint = "".join(f"; {key}: {why}" for key, why in found.ignored.items() if why.endswith("GPUs is unknown"))
        text = f"is missing, wanted the number of GPUs here, or --nnodes and --nproc-per-node of a launcher{hint}"
        raise ConfigError(source, [Mistake(path="--gpus", text=text)])
    tree = {"schema": SCHEMA, "name": name, "fabric": _fabric(found.gpus, node), **sections_of_import(found)}
    config = None
    if found.config is not None:
        config = (str(found.keys["training.model"]), json.dumps(dict(found.config), indent=2) + "\n")
    assumed = {"fabric.topology": f"{TOPOLOGY} with {SWITCH}: arguments say nothing about switches"}
    if node is None:
        assumed["fabric.node"] = f"{NODE}: --node chooses another server"
    written = ImportedScenario(text=write_tree(tree), config=config, assumed=assumed)
    _refuse(written, found, source)
    return written


def _fabric(gpus: int, node: str | None) -> dict[str, Any]:
    return {"topology": TOPOLOGY, "gpus": gpus, "node": node or NODE, "switch": SWITCH}


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


def _refuse(written: ImportedScenario, found: MegatronImport, source: str) -> None:
    """Prepare the scenario in a temporary folder, and trace mistakes to arguments."""
    with TemporaryDirectory(prefix="weftwork-import-") as folder:
        path = Path(folder) / "scenario.yaml"
        path.write_text(written.text, encoding="utf-8")
        if written.config is not None:
            (Path(folder) / written.config[0]).write_text(written.config[1], encoding="utf-8")
        try:
            prepare(read_scenario(path))
        except ConfigError as error:
            raise ConfigError(source, [_placed(one, found) for one in error.mistakes]) from error


def _placed(mistake: Mistake, found: MegatronImport) -> Mistake:
    """A mistake of the scenario as a mistake of the arguments.

    Keys that nobody gave keep their names.
    """
    argument, line = found.places.get(mistake.path, (_OPTIONS.get(mistake.path), None))
    path = mistake.path if argument is None else f"{argument} ({mistake.path})"
    return Mistake(path=path, text=mistake.text, line=line, fix=mistake.fix)
