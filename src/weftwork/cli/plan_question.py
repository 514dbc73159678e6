"""The question of ``weftwork plan`` without a file.

It is a model on a number of GPUs, or a job of Megatron-LM.

Leaves out: the search, and what is printed of it (`weftwork.cli.plan`).
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.grammar import plural
from weftwork.spec.scenario.migrations import SCHEMA
from weftwork.spec.scenario.yaml_tree import write_tree
from weftwork.study.imported import NODE, sections_of_import
from weftwork.study.plan.space import SEARCHED
from weftwork.workload.imports.megatron import read_megatron

if TYPE_CHECKING:
    from collections.abc import Mapping

    from weftwork.workload.imports.megatron import MegatronImport

__all__ = ["Question", "question", "refuse_options"]

SWITCH: Final = "tomahawk-5"  # chosen: of the fabric where no file names one: 64 ports of 800 Gb/s
TOKENS: Final = 4 * 2**20  # chosen: of a batch that nobody gives; Llama 3 trained with 4 to 16 Mi (arXiv:2407.21783)
SEQUENCE: Final = 8_192  # chosen: of a batch that nobody gives; the length of Llama 3's first stage
OPTIONS: Final = {  # by the key that each sets
    "training.model": "--model", "fabric.node": "--node", "fabric.gpus": "--gpus", "training": "--gpus",
    "training.global_batch": "--global-batch", "training.sequence": "--sequence",
}  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Question:
    """A plan's question without a file.

    Attributes
    ----------
    model : of the catalogue, or a config.json
    node : server of the catalogue
    gpus : how many
    training : other keys of the section
    config : of the model, where nobody has a file of it: the file's name, and its text
    imported : what Megatron-LM's arguments said; they hold a plan that the best are compared with
    """

    model: str
    node: str
    gpus: int
    training: Mapping[str, Any]
    config: tuple[str, str] | None = None
    imported: MegatronImport | None = None

    @property
    def name(self) -> str:
        """Name of the output folder, if no name is given."""
        return f"plan-{self._short}-{self.gpus}"

    @property
    def _short(self) -> str:
        return Path(self.model).name.removesuffix(".json")

    @property
    def has_own(self) -> bool:
        """Whether there is a plan to compare with the best plan."""
        return bool(self.imported is not None and frozenset(SEARCHED) & self.training.keys())

    def write(self, folder: Path) -> Path:
        """Write the scenario of the question into a folder."""
        if self.config is not None:
            (folder / self.config[0]).write_text(self.config[1], encoding="utf-8")
        file = folder / "question.yaml"
        file.write_text(self.scenario_text(), encoding="utf-8")
        return file

    def scenario_text(self) -> str:
        """The scenario of the question."""
        is_file = self.model.endswith(".json") and self.config is None
        training = {"model": str(Path(self.model).absolute()) if is_file else self.model, **self.training}
        sequence = training.setdefault("sequence", SEQUENCE)
        training.setdefault("global_batch", max(1, TOKENS // int(sequence)))
        tree: dict[str, Any] = {
            "schema": SCHEMA,
            "name": f"{self._short} on {plural(self.gpus, 'GPU')}",
            "fabric": {"topology": "rail-optimized", "gpus": self.gpus, "node": self.node, "switch": SWITCH},
            "training": training,
            "engine": {"fidelity": "flow"},
        }
        return write_tree(tree)

    def of_options(self, error: ConfigError) -> ConfigError:
        """Mistakes of a scenario made from options, by option."""
        places = {} if self.imported is None else {key: one for key, (one, _) in self.imported.places.items()}
        named = {**OPTIONS, **{key: f"--megatron {argument}" for key, argument in places.items()}}
        return ConfigError(
            "command line", [replace(one, path=named.get(one.path, one.path), line=None) for one in error.mistakes]
        )


def question(
    *,
    model: str | None,
    node: str | None,
    gpus: int | None,
    global_batch: int | None,
    sequence: int | None,
    megatron: str | None,
) -> Question:
    """The question of ``--model``, ``--node``, ``--gpus`` and ``--megatron``.

    Raises
    ------
    ConfigError : an option is missing, or two say the same; mistakes of the arguments
    """
    if megatron is not None:
        return _of_megatron(megatron, model, node, gpus, {"global_batch": global_batch, "sequence": sequence})
    if model is None or node is None or gpus is None:
        raise _missing({"--model": model, "--node": node, "--gpus": gpus})
    given = {"global_batch": global_batch, "sequence": sequence}
    training = {key: value for key, value in given.items() if value is not None}
    return Question(model=model, node=node, gpus=gpus, training=training)


def refuse_options(given: Mapping[str, object]) -> None:
    """Refuse options that repeat a file's keys.

    Raises
    ------
    ConfigError : one of them is given
    """
    named = [f"--{key.replace('_', '-')}" for key, value in given.items() if value is not None]
    if named:
        text = "is for a search without FILE; with FILE, change a key by --set KEY=VALUE"
        raise ConfigError("command line", [Mistake(path=name, text=text) for name in named])


def _of_megatron(
    text: str, model: str | None, node: str | None, gpus: int | None, given: Mapping[str, int | None]
) -> Question:
    found = read_megatron(text, gpus=gpus, is_whole=False)
    if found.model is not None:  # a job, and no fragment: what is not given has Megatron-LM's default
        found = read_megatron(text, gpus=gpus)
    training = {key: value for key, value in sections_of_import(found).get("training", {}).items() if key != "gpus"}
    own = {"model": model, **given}
    twice = [key for key, value in own.items() if value is not None and key in training]
    if twice:
        raise ConfigError(
            "command line",
            [
                Mistake(path=OPTIONS[f"training.{key}"], text=f"repeats {_argument(found, key)}; give one of the two")
                for key in twice
            ],
        )
    training |= {key: value for key, value in own.items() if value is not None}
    if "model" not in training or found.gpus is None:
        raise _missing({"--model": training.get("model"), "--gpus": found.gpus}, " and an argument of --megatron")
    config = None if found.config is None else (str(training["model"]), json.dumps(dict(found.config), indent=2) + "\n")
    return Question(
        model=str(training.pop("model")),
        node=node or NODE,
        gpus=found.gpus,
        training=training,
        config=config,
        imported=found,
    )


def _argument(found: MegatronImport, key: str) -> str:
    place = found.places.get(f"training.{key}")
    return "the model of --megatron" if place is None else f"{place[0]} of --megatron"


def _missing(given: Mapping[str, object], what: str = "") -> ConfigError:
    examples = {"--model": "llama-3-70b", "--node": "dgx-h100", "--gpus": "512"}
    return ConfigError(
        "command line",
        [
            Mistake(path=name, text=f"is missing without FILE{what}; such as {name} {examples[name]}")
            for name, value in given.items()
            if value is None
        ],
    )
