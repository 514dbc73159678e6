"""Arguments of Megatron-LM as keys of a scenario.

The result reports arguments that were read, assumed, ignored and not known. Defaults of Megatron-LM that differ from
those of a scenario are applied and told: without ``--sequence-parallel`` nothing is split along the sequence, without
``--overlap-grad-reduce`` no gradients hide behind computation.
Source: NVIDIA/Megatron-LM, megatron/training/arguments.py (commit 000c4ac2), for defaults and ``validate_args``.
Leaves out: the fabric, of which arguments say nothing but the number of GPUs.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.findings import Findings
from weftwork.base.grammar import plural
from weftwork.spec.training import Model
from weftwork.workload.imports.argument_reader import ArgumentReader
from weftwork.workload.imports.megatron_arguments import READ
from weftwork.workload.imports.megatron_keys import KeyValue, ScenarioKeys, value_text
from weftwork.workload.imports.megatron_model import MODEL_ARGUMENTS, ModelFound, find_model
from weftwork.workload.imports.megatron_modules import (
    read_bf16_layers,
    read_context_exchange,
    read_layout,
    read_recomputation,
    read_software,
)
from weftwork.workload.imports.megatron_words import Launch, launch_in_script
from weftwork.workload.imports.shell import without_value

if TYPE_CHECKING:
    from weftwork.workload.imports.relative import Translation

__all__ = [
    "DATA_OVERLAP", "EXPERT_OVERLAP", "TENSOR_OVERLAP", "MegatronImport", "read_launch", "read_megatron",
]  # fmt: skip

# Shares that hide where a switch is on: those that the scorecard declares for Megatron-Bridge's recipes
# (`weftwork.study.validation.recipes`), where they are priors and were never fitted.
TENSOR_OVERLAP: Final = 0.7
DATA_OVERLAP: Final = 0.9
EXPERT_OVERLAP: Final = 0.9

_SHARDING: Final = {"no_shard": 0, "optim": 1, "optim_grads": 2, "optim_grads_params": 3}
_FSDP: Final = ("--use-megatron-fsdp", "--use-custom-fsdp")
_EIGHT_BITS: Final = {"delayed": "fp8", "tensorwise": "fp8", "blockwise": "fp8", "mxfp8": "mxfp8"}
_ENDS: Final = ("--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split")


@dataclass(frozen=True, kw_only=True, slots=True)
class MegatronImport:
    """Result of an import of Megatron-LM's arguments.

    Attributes
    ----------
    keys : dotted key of a scenario and its value; those of `USUAL` that are at their default are among them
    model : its sizes; None where the arguments describe none
    config : the model as a ``config.json``, for the file that ``training.model`` names; None for the catalogue's
    gpus : of the job, or None where nobody says
    read : argument, and what it became
    places : key, and the argument that says it with its line
    assumed : key, and the value that it has without an argument, with the reason
    ignored : argument, and why it says nothing to a scenario
    unknown : argument that Megatron-LM does not have, and the nearest one that it has
    program : for which the job was written, Megatron-LM or one of its relatives
    """

    keys: Mapping[str, KeyValue]
    model: Model | None
    config: Mapping[str, Any] | None
    gpus: int | None
    read: Mapping[str, str]
    places: Mapping[str, tuple[str, int | None]]
    assumed: Mapping[str, str]
    ignored: Mapping[str, str]
    unknown: Mapping[str, str | None]
    program: str = "Megatron-LM"


def read_megatron(
    text: str,
    *,
    source: str = "--megatron",
    name: str = "megatron",
    gpus: int | None = None,
    is_whole: bool = True,
) -> MegatronImport:
    """Read arguments of Megatron-LM from a command line.

    Parameters
    ----------
    text : arguments, or a command with them
    source : what errors call it
    name : of the model, where it is none of the catalogue
    gpus : of the job, where the text does not start one
    is_whole : False where some arguments are enough: what is not given is then neither missed nor assumed

    Raises
    ------
    ConfigError : with every mistake

    Examples
    --------
    >>> found = read_megatron("--tensor-model-parallel-size 8 --sequence-parallel --lr 1e-4", is_whole=False)
    >>> dict(found.keys)
    {'training.tensor': 8, 'training.sequence_parallel': True}
    >>> found.ignored
    mappingproxy({'--lr': 'how weights are learnt; says nothing about time'})
    """
    findings = Findings(source=source)
    launch = launch_in_script(text.replace("\0", ""), READ, findings)
    mistakes = [
        Mistake(path=one.path if one.path != "file" else source, text=one.text, fix=one.fix)
        for one in findings.mistakes
    ]
    return read_launch(launch, mistakes, source=source, name=name, gpus=gpus, is_whole=is_whole)


def read_launch(
    launch: Launch,
    mistakes: list[Mistake],
    *,
    source: str,
    name: str,
    gpus: int | None,
    is_whole: bool = True,
    translation: Translation | None = None,
) -> MegatronImport:
    """Read a launch command.

    Parameters
    ----------
    launch : arguments of Megatron-LM
    mistakes : of the text that holds them
    source, name, gpus, is_whole : as of `read_megatron`
    translation : of a relative's job into these arguments; messages are in the words of the job

    Raises
    ------
    ConfigError : with every mistake
    """
    if mistakes and not launch.given:
        raise ConfigError(source, mistakes)
    reader = ArgumentReader(launch=launch, is_whole=is_whole)
    keys = _ScenarioKeys(reader=reader, gpus=gpus or launch.gpus)
    keys.servers(launch, is_given=gpus is not None)
    tensor = keys.degrees()
    named = None if translation is None else translation.model
    if named is not None:
        found: ModelFound | None = ModelFound(model=named, config=None, assumed={})
    else:
        found = find_model(reader, name=name, tensor=tensor)
    if found is not None:
        keys.model(found)
    layers = found.model.layers if found is not None else reader.whole("--num-layers")
    keys.stages(layers)
    keys.batch()
    keys.sharding()
    keys.precision()
    keys.overlap()
    read_software(keys)
    if mistakes or reader.mistakes:
        found_here = reader.mistakes
        if translation is not None:
            found_here = _worded_mistakes(found_here, translation, {one.path for one in mistakes})
        raise ConfigError(source, _once([*mistakes, *found_here]))
    imported = MegatronImport(
        keys=MappingProxyType(keys.values),
        model=None if found is None else found.model,
        config=None if found is None else found.config,
        gpus=keys.gpus,
        read=MappingProxyType({argument: keys.read.get(argument, _NOTHING) for argument in _order(keys, reader)}),
        places=MappingProxyType(keys.places),
        assumed=MappingProxyType(keys.assumed),
        ignored=MappingProxyType(reader.ignored),
        unknown=MappingProxyType(reader.unknown),
    )
    return imported if translation is None else _in_words_of_the_job(imported, translation)


def _worded_mistakes(mistakes: list[Mistake], translation: Translation, judged: set[str]) -> list[Mistake]:
    """Mistakes in arguments of Megatron-LM, as mistakes in settings of the job.

    A setting that was judged already is not missed as well, nor is what the job has no setting for.
    """
    worded = [
        replace(one, path=translation.names.get(one.path, one.path), text=translation.worded(one.text))
        for one in mistakes
    ]
    known = set(translation.names.values())
    return [one for one in worded if one.path not in judged and (not judged or one.path in known)]


def _in_words_of_the_job(imported: MegatronImport, translation: Translation) -> MegatronImport:
    """The import with what the settings of a relative's job say, in their names."""
    keys, assumed = dict(imported.keys), dict(imported.assumed)
    read: dict[str, str] = {}
    for argument, text in imported.read.items():
        reason = translation.defaults.get(argument)
        if reason is not None:
            assumed |= _assumed(text, reason)
            continue
        name, worded = translation.names.get(argument, argument), translation.worded(text)
        read[name] = f"{read[name]}; {worded}" if name in read and worded not in read[name] else worded
    for name, text in translation.read.items():
        read[name] = f"{read[name]}; {text}" if name in read else text
    places = {
        key: (translation.names.get(argument, argument), line) for key, (argument, line) in imported.places.items()
    }
    for key, (value, setting, text) in translation.keys.items():
        keys[key] = value
        assumed.pop(key, None)
        if setting is not None:
            places[key] = (setting.name, setting.line)
        else:
            places.pop(key, None)
            assumed[key] = f"{value_text(value)}: {text}" if text else value_text(value)
    return replace(
        imported,
        program=translation.title,
        keys=MappingProxyType(keys),
        read=MappingProxyType(read),
        places=MappingProxyType(places),
        assumed=MappingProxyType({key: translation.worded(text) for key, text in assumed.items()}),
        ignored=MappingProxyType({**translation.ignored, **imported.ignored}),
        unknown=MappingProxyType({**translation.unknown, **imported.unknown}),
    )


def _assumed(text: str, reason: str) -> dict[str, str]:
    """Keys that an assumed argument became, with the reason."""
    parts = [part.partition(": ") for part in text.split("; ")]
    return {key: f"{value}: {reason}" for key, is_key, value in parts if is_key and key != "nothing"}


_NOTHING: Final = "nothing: another argument decides"


def _order(keys: _ScenarioKeys, reader: ArgumentReader) -> list[str]:
    launcher = [argument for argument in keys.read if argument not in reader.given]
    return [*launcher, *reader.given]


@dataclass(kw_only=True)
class _ScenarioKeys(ScenarioKeys):
    """Scenario keys made from arguments, with one method per subject."""

    def servers(self, launch: Launch, *, is_given: bool) -> None:
        """Read the number of GPUs, as far as the launcher states it."""
        self.assumed |= launch.assumed
        self.reader.ignored |= launch.ignored
        for one in (launch.nodes, launch.gpus_per_node, launch.total):
            if one is None or one.argument in launch.assumed:
                continue
            if is_given:
                self.reader.ignored[one.argument] = "the number of GPUs is given"
            elif launch.gpus is not None:
                self.read[one.argument] = f"fabric.gpus: {launch.gpus:,}"
                self.places.setdefault("fabric.gpus", (one.argument, one.line))
            else:
                missing = [name for value in one.values for name in without_value(value)]
                found = f"'{missing[0]}' has no value without running the script" if missing else "found no number"
                self.reader.ignored[one.argument] = f"{found}, so the number of GPUs is unknown"

    def degrees(self) -> int:
        """Read the parallel degrees of a model; returns the tensor degree."""
        found = {}
        for key, argument in (
            ("tensor", "--tensor-model-parallel-size"),
            ("context", "--context-parallel-size"),
            ("pipeline", "--pipeline-model-parallel-size"),
            ("expert", "--expert-model-parallel-size"),
        ):
            found[key] = self.reader.whole(argument, 1) or 1
            self.put(f"training.{key}", found[key], argument)
        read_context_exchange(self, found["context"])
        tensor = found["tensor"]
        own = self.reader.whole("--expert-tensor-parallel-size")
        has_experts = bool(self.reader.whole("--num-experts", 0, low=0))
        expert_tensor = own or (tensor if has_experts else 1)
        reason = "as --tensor-model-parallel-size is"
        self.put("training.expert_tensor", expert_tensor, "--expert-tensor-parallel-size", reason=reason)
        self.put("training.sequence_parallel", self.reader.flag("--sequence-parallel"), "--sequence-parallel")
        if tensor == 1 and self.reader.is_whole:  # as validate_args does: nothing is split
            del self.values["training.sequence_parallel"]
            self.assumed.pop("training.sequence_parallel", None)
            if self.reader.has("--sequence-parallel"):
                self.read["--sequence-parallel"] = "nothing: one rank splits nothing"
        is_mapped = self.reader.flag("--use-tp-pp-dp-mapping")
        self.put("training.order", "tp-cp-pp-dp" if is_mapped else "tp-cp-dp-pp", "--use-tp-pp-dp-mapping")
        return tensor

    def model(self, found: ModelFound) -> None:
        """Read the model."""
        name = found.model.name if found.config is None else f"./{found.model.name}.json"
        self.values["training.model"] = name
        for argument, size in MODEL_ARGUMENTS.items():
            if self.reader.has(argument):
                is_of_experts = argument == "--ffn-hidden-size" and not found.model.ffn
                before = f"{self.read[argument]}; " if argument in self.read else ""
                text = _size_text(found.model, "expert_ffn" if is_of_experts else size)
                if size == "sequence" and found.config is None:
                    text = f"nothing: {found.model.name} stays made for {plural(found.model.sequence, 'token')}"
                if argument == "--qk-layernorm" and not found.model.has_query_key_norm:
                    text = "nothing: norms of queries and keys are left out of such a model"
                if argument == "--tokenizer-type" and "tokenizer's" not in found.assumed.get("model.vocabulary", ""):
                    text = "nothing: --vocab-size or a model of the catalogue says the vocabulary"
                self.read[argument] = before + text
                self.places.setdefault("training.model", (argument, self.reader.given[argument].line))
        self.assumed |= found.assumed

    def stages(self, layers: int | None) -> None:
        """Read the assignment of layers to pipeline stages."""
        stages = self.reader.whole("--pipeline-model-parallel-size", 1) or 1
        each = self.reader.whole("--num-layers-per-virtual-pipeline-stage")
        virtual = self.reader.whole("--num-virtual-stages-per-pipeline-rank")
        ends = [self.reader.flag(argument) for argument in _ENDS]
        if each is not None and virtual is not None:
            text = "found beside --num-virtual-stages-per-pipeline-rank, wanted one of the two"
            self.reader.wrong("--num-layers-per-virtual-pipeline-stage", text)
        elif each is not None and layers is None:
            text = "says something about --num-layers alone, which is missing"
            self.reader.wrong("--num-layers-per-virtual-pipeline-stage", text)
        elif each is not None and layers is not None:
            own = layers + sum(ends)
            virtual = own // (stages * each)
            if own % (stages * each):
                text = (
                    f"found {each}, wanted a divisor of the layers of a stage: {plural(own, 'layer')} over "
                    f"{plural(stages, 'stage')}"
                )
                self.reader.wrong("--num-layers-per-virtual-pipeline-stage", text)
        in_layout = read_layout(self, stages, has_others=each is not None or virtual is not None or any(ends))
        self.put(
            "training.virtual_stages",
            virtual or in_layout or 1,
            "--num-virtual-stages-per-pipeline-rank",
            "--num-layers-per-virtual-pipeline-stage",
            "--pipeline-model-parallel-layout",
        )
        self.put("training.balanced_ends", all(ends), *_ENDS)
        if any(ends) and not all(ends):
            argument = _ENDS[ends.index(True)]
            self.read[argument] = "nothing: training.balanced_ends counts both ends or neither"

    def batch(self) -> None:
        """Read the sequences per iteration, and their length."""
        is_whole = self.reader.is_whole
        micro = self.reader.needed("--micro-batch-size") if is_whole else self.reader.whole("--micro-batch-size", 1)
        self.put("training.micro_batch", micro or 1, "--micro-batch-size")
        batch = self.reader.whole("--global-batch-size")
        if batch is not None:
            self.put("training.global_batch", batch, "--global-batch-size")
        elif is_whole and not self.reader.has("--global-batch-size"):
            self._one_micro_batch(micro or 1)
        sequence = self.reader.needed("--seq-length", 2048) if is_whole else self.reader.whole("--seq-length")
        if sequence is not None:
            self.put("training.sequence", sequence, "--seq-length")
        every = self.reader.whole("--save-interval")
        is_asynchronous = self.reader.flag("--async-save")
        if every is not None:
            self.put("training.checkpoint.every", every, "--save-interval")
            if is_asynchronous:
                self.put("training.checkpoint.asynchronous", is_asynchronous, "--async-save")

    def _one_micro_batch(self, micro: int) -> None:
        degrees = ("--tensor-model-parallel-size", "--context-parallel-size", "--pipeline-model-parallel-size")
        ranks = prod(self.reader.whole(argument, 1) or 1 for argument in degrees)
        if self.gpus is None or self.gpus % ranks:
            text = "missing, and the number of GPUs is unknown; wanted a whole number"
            self.reader.wrong("--global-batch-size", text)
            return
        copies = self.gpus // ranks
        reason = f"one micro batch on each of {plural(copies, 'copy', 'copies')},"
        self.put("training.global_batch", micro * copies, "--global-batch-size", reason=reason)

    def sharding(self) -> None:
        """Read sharding over data parallel ranks, and recomputation."""
        strategy = self.reader.word("--data-parallel-sharding-strategy", tuple(_SHARDING))
        has_fsdp = max(self.reader.flag(argument) for argument in _FSDP)
        has_torch = self.reader.flag("--use-torch-fsdp2")
        keeps_weights = self.reader.flag("--torch-fsdp2-no-reshard-after-forward")
        zero = 1 if self.reader.flag("--use-distributed-optimizer") else 0
        deciding = ["--use-distributed-optimizer"]
        if has_fsdp:
            zero = _SHARDING[strategy or "no_shard"]
            deciding = [*_FSDP, "--data-parallel-sharding-strategy"]
        elif has_torch:
            zero = 2 if keeps_weights else 3
            deciding = ["--use-torch-fsdp2", "--torch-fsdp2-no-reshard-after-forward"]
        self.put("training.zero", zero, *deciding)
        read_recomputation(self)

    def precision(self) -> None:
        """Read number formats of matrix products and of gradient sums."""
        has_bf16, has_fp16 = self.reader.flag("--bf16"), self.reader.flag("--fp16")
        if has_bf16 and has_fp16:
            self.reader.wrong("--fp16", "found beside --bf16, wanted one of the two")
        elif self.reader.is_whole and not has_bf16 and not has_fp16:
            text = "missing, wanted --bf16 or --fp16: Megatron-LM would compute in FP32, which a scenario does not have"
            self.reader.wrong("--bf16", text + self.reader.hint)
        eight = self.reader.word("--fp8-format", ("e4m3", "hybrid"))
        recipe = self.reader.word("--fp8-recipe", tuple(_EIGHT_BITS))
        four = self.reader.word("--fp4-format", ("e2m1",))
        precision, deciding = "bf16", ["--bf16", "--fp16"]
        if four is not None:
            precision, deciding = "nvfp4", ["--fp4-format"]
        elif eight is not None:
            precision, deciding = _EIGHT_BITS[recipe or "delayed"], ["--fp8-format", "--fp8-recipe"]
        self.put("training.precision", precision, *deciding)
        gather = "--fp4-param-gather" if precision == "nvfp4" else "--fp8-param-gather"
        keeps_few = [one for one in ("--fp8-param-gather", "--fp4-param-gather") if self.reader.flag(one)]
        if precision != "bf16":
            self.put("training.quantised_weights", gather in keeps_few, gather)
        for argument in keeps_few:
            if argument != gather or precision == "bf16":
                self.read[argument] = f"nothing: products are in {precision}"
        read_bf16_layers(self, is_delayed=eight is not None and four is None and recipe in {None, "delayed"})
        for argument, name in (("--bf16", "BF16"), ("--fp16", "FP16")):
            if self.reader.has(argument) and precision != "bf16":
                self.read[argument] = f"numbers that are not in {precision} are in {name}, as in a scenario"
        if has_fp16 and precision == "bf16":
            self.read["--fp16"] = "training.precision: bf16, which is as wide"
        is_wide = self.reader.flag("--accumulate-allreduce-grads-in-fp32")
        is_narrow = self.reader.flag("--grad-reduce-in-bf16") or (has_fp16 and not is_wide)
        arguments = ["--grad-reduce-in-bf16", "--accumulate-allreduce-grads-in-fp32"]
        self.put(
            "training.gradients",
            "bf16" if is_narrow else "fp32",
            *(arguments if self.reader.has(*arguments) or not has_fp16 else arguments[::-1]),
            reason="gradients are as wide as FP16",
        )

    def overlap(self) -> None:
        """Read the communication that hides behind computation."""
        has_tensor = self.reader.flag("--tp-comm-overlap")
        self.put("training.overlap.tensor", TENSOR_OVERLAP if has_tensor else 0.0, "--tp-comm-overlap")
        sends = self.reader.flag("--overlap-grad-reduce")
        gathers = self.reader.flag("--overlap-param-gather")
        if gathers and not sends:
            self.reader.wrong("--overlap-param-gather", "wanted --overlap-grad-reduce as well, as Megatron-LM does")
        has_gather = bool(self.values.get("training.zero", 0))
        share = DATA_OVERLAP if sends else 0.0
        if sends and not gathers and has_gather:
            share = DATA_OVERLAP / 2  # gradients are half of the bytes, weights the other half
        self.put("training.overlap.data", share, "--overlap-grad-reduce", "--overlap-param-gather")
        if self.reader.flag("--no-overlap-p2p-communication"):
            self.put("training.overlap.pipeline", 0.0, "--no-overlap-p2p-communication")
        has_expert = self.reader.flag("--overlap-moe-expert-parallel-comm")
        share = EXPERT_OVERLAP if has_expert else 0.0
        self.put("training.overlap.expert", share, "--overlap-moe-expert-parallel-comm")


def _size_text(model: Model, size: str) -> str:
    value = getattr(model, size)
    if size in {"latent_attention", "state_space"}:
        return f"model.{size}"
    return f"model.{size}: {value_text(value)}"


def _once(mistakes: list[Mistake]) -> list[Mistake]:
    """Mistakes without repetitions.

    An argument that is read twice has its mistake once.
    """
    return list(dict.fromkeys(mistakes))
