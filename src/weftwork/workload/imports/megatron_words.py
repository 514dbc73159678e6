"""Find Megatron-LM's arguments in a command line, script or YAML file.

Each argument has its line.
Source: NVIDIA/Megatron-LM, examples and tests/functional_tests/test_cases (``model_config.yaml``), for the forms;
PyTorch, torch/distributed/run.py, for ``--nnodes`` and ``--nproc-per-node``; Slurm, sbatch(1), for ``#SBATCH``.
Leaves out: what an argument means (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.spec.scenario.yaml_tree import Mapping as YamlMapping
from weftwork.spec.scenario.yaml_tree import Node, Scalar, read_tree
from weftwork.spec.scenario.yaml_tree import Sequence as YamlSequence
from weftwork.workload.imports.shell import ShellScript, ShellWord, read_shell, without_value

__all__ = ["Given", "Launch", "launch_in_script", "launch_in_yaml"]

# NeMo and Megatron-Core's own names in YAML files, and the argument that each stands for.
_YAML_NAMES: Final = {
    "encoder_seq_length": "--seq-length",
    "virtual_pipeline_model_parallel_size": "--num-virtual-stages-per-pipeline-rank",
    "activations_checkpoint_granularity": "--recompute-granularity",
    "activations_checkpoint_method": "--recompute-method",
    "activations_checkpoint_num_layers": "--recompute-num-layers",
    "fp8": "--fp8-format",
    "fp4": "--fp4-format",
    "tp_comm_overlap": "--tp-comm-overlap",
    "ub_tp_comm_overlap": "--tp-comm-overlap",
    "moe_router_topk": "--moe-router-topk",
    "num_moe_experts": "--num-experts",
}
# Switches whose YAML name says the opposite of the argument.
_YAML_OPPOSITES: Final = {
    "share_embeddings_and_output_weights": "--untie-embeddings-and-output-weights",
    "overlap_p2p_comm": "--no-overlap-p2p-communication",
    "add_bias_linear": "--disable-bias-linear",
    "bias": "--disable-bias-linear",
}
_NOT_ARGUMENTS: Final = ("ENV_VARS", "PARAMS")  # sections beside MODEL_ARGS
_NODES: Final = ("--nnodes", "--num_nodes")  # the second of DeepSpeed: deepspeed/launcher/runner.py
_EACH: Final = ("--nproc-per-node", "--nproc_per_node", "--num_gpus")
_SBATCH: Final = re.compile(
    r"^#SBATCH\s+(--nodes|-N|--gpus-per-node|--ntasks-per-node|--gres)[=\s]\s*(\S+)", re.MULTILINE
)
_NUMBER: Final = re.compile(r"-[0-9.]")
_PROGRAM: Final = re.compile(r"\.py$")


@dataclass(frozen=True, kw_only=True, slots=True)
class Given:
    """One argument: values, line, and whether it is conditional.

    A conditional argument stands below a condition of the script.
    """

    argument: str
    values: tuple[str, ...]
    line: int | None
    is_conditional: bool = False


@dataclass(frozen=True, kw_only=True, slots=True)
class Launch:
    """The launch command of a file.

    Attributes
    ----------
    given : arguments in the order of the file
    nodes, gpus_per_node : of the launcher, or None where it does not say; text that is no number has no value
    strays : words that belong to no argument, with their lines
    program : what a script starts, such as ``pretrain_gpt.py``
    words : all words behind the program
    """

    given: tuple[Given, ...]
    nodes: Given | None = None
    gpus_per_node: Given | None = None
    strays: tuple[ShellWord, ...] = ()
    program: str = ""
    words: tuple[ShellWord, ...] = ()

    @property
    def gpus(self) -> int | None:
        """All GPUs, if the launcher states both numbers."""
        counts = [_count(one) for one in (self.nodes, self.gpus_per_node)]
        return None if None in counts else (counts[0] or 0) * (counts[1] or 0)


def launch_in_script(
    text: str, known: Container[str], variables: Mapping[str, str] | None = None
) -> tuple[Launch, list[Mistake]]:
    """Find the arguments in a shell script or a command line.

    Parameters
    ----------
    text : of the script, or arguments alone
    known : arguments that tell the training program from others that the script starts
    variables : values that the script does not give

    Returns
    -------
    what is started, and what is wrong with the script
    """
    script = read_shell(text, variables)
    starts = [start for words in script.commands for start in _starts(words, variables) if _has_known(start[1], known)]
    if not starts:
        starts = list(_loose(script, known))
    if not starts:
        wanted = "wanted a command such as `torchrun pretrain_gpt.py --num-layers 32 ...`, or the arguments alone"
        return Launch(given=()), [Mistake(path="file", text=f"found no argument of Megatron-LM, {wanted}")]
    if len(starts) > 1:
        lines = " and ".join(dict.fromkeys(str(start[1][0].line) for start in starts))
        found = f"found {plural(len(starts), 'command')} with arguments of Megatron-LM, in lines {lines}; wanted one"
        return Launch(given=()), [Mistake(path="file", text=found, line=starts[1][1][0].line)]
    launcher, words = starts[0]
    given, strays = _parted(words)
    given = [one for one in given if one.argument not in {*_NODES, *_EACH}]
    before = {one.argument: one for one in _parted(launcher)[0]}
    slurm = {match[1]: match for match in _SBATCH.finditer(text)}
    nodes = _first(before, _NODES) or _sbatch(text, slurm, ("--nodes", "-N"))
    each = _first(before, _EACH) or _sbatch(text, slurm, ("--gpus-per-node", "--ntasks-per-node", "--gres"))
    launch = Launch(given=tuple(given), nodes=nodes, gpus_per_node=each, strays=tuple(strays))
    return replace(launch, program=_program_of(script, words), words=tuple(words)), []


def _program_of(script: ShellScript, words: Sequence[ShellWord]) -> str:
    """Name of the Python program in front of these words; empty if a script starts none."""
    lines = {word.line for word in words}
    texts = [
        part for command in script.commands for word in command if word.line in lines for part in word.text.split()
    ]
    programs = [text for text in texts if _PROGRAM.search(text)]
    return programs[0].rpartition("/")[2] if programs else ""


def launch_in_yaml(text: str) -> tuple[Launch, list[Mistake]]:
    """Find the arguments in a YAML file, at any depth.

    ``--num-layers: 32`` and ``num_layers: 32`` are the same.

    Returns
    -------
    what the file says, and where it is no YAML
    """
    root, mistakes = read_tree(text)
    if not isinstance(root, YamlMapping):
        return Launch(given=()), mistakes or [Mistake(path="file", text="found no keys, wanted arguments as keys")]
    given: list[Given] = []
    special: dict[str, Given] = {}
    for key, node in _leaves(root):
        special |= _trainer(key, node, given) or {}
    launch = Launch(given=tuple(given), nodes=special.get("nodes"), gpus_per_node=special.get("gpus_per_node"))
    if not given:
        mistakes = [*mistakes, Mistake(path="file", text="found no argument, wanted some such as num_layers: 32")]
    return launch, mistakes


def _starts(
    words: Sequence[ShellWord], variables: Mapping[str, str] | None
) -> Iterator[tuple[Sequence[ShellWord], Sequence[ShellWord]]]:
    """Words before and after a Python program, also inside ``sh -c "..."``."""
    for place, word in enumerate(words):
        if _PROGRAM.search(word.text):
            yield words[:place], words[place + 1 :]
            return
    if words and words[0].text.startswith("--"):
        yield (), words
        return
    for word in words:
        if ".py" in word.text and any(letter.isspace() for letter in word.text):
            for inner in read_shell(word.text, variables).commands:
                placed = [ShellWord(text=one.text, line=word.line, is_conditional=word.is_conditional) for one in inner]
                for before, behind in _starts(placed, variables):
                    yield [*words, *before], behind


def _loose(script: ShellScript, known: Container[str]) -> Iterator[tuple[Sequence[ShellWord], Sequence[ShellWord]]]:
    """Arguments in variables of a script that starts nothing.

    Other scripts may source such a script.
    """
    words = [
        ShellWord(text=text, line=word.line, is_conditional=word.is_conditional)
        for held in script.variables.values()
        if held and held[0].text.lstrip().startswith("--")
        for word in held
        for text in (word.text.split() if len(held) == 1 else [word.text])
    ]
    if _has_known(words, known):
        yield words, words


def _has_known(words: Sequence[ShellWord], known: Container[str]) -> bool:
    return any(word.text.partition("=")[0] in known for word in words)


def _parted(words: Sequence[ShellWord]) -> tuple[list[Given], list[ShellWord]]:
    """Arguments with their values, and the words before the first argument."""
    given: list[Given] = []
    strays: list[ShellWord] = []
    for word in words:
        if word.text.startswith("-") and not _NUMBER.match(word.text) and word.text != "-":
            name, has_value, value = word.text.partition("=")
            values = (value,) if has_value else ()
            given.append(Given(argument=name, values=values, line=word.line, is_conditional=word.is_conditional))
        elif given and not (without_value(word.text) and _is_bare(word.text)):
            last = given[-1]
            flag = last.is_conditional or word.is_conditional
            given[-1] = Given(
                argument=last.argument, values=(*last.values, word.text), line=last.line, is_conditional=flag
            )
        elif given and not given[-1].values:
            last = given[-1]
            given[-1] = Given(
                argument=last.argument, values=(word.text,), line=last.line, is_conditional=last.is_conditional
            )
        else:
            strays.append(word)
    return given, strays


def _is_bare(text: str) -> bool:
    """Whether a word is nothing but a variable without a value.

    It may stand for any number of words.
    """
    return re.fullmatch("(\0[^\1]*\1)+", text) is not None


def _first(found: Mapping[str, Given], names: Sequence[str]) -> Given | None:
    return next((found[name] for name in names if name in found), None)


def _sbatch(text: str, found: Mapping[str, re.Match[str]], names: Sequence[str]) -> Given | None:
    for name in names:
        match = found.get(name)
        if match is not None:
            line = text.count("\n", 0, match.start()) + 1
            return Given(argument=name, values=(match[2].rpartition(":")[2],), line=line)
    return None


def _count(given: Given | None) -> int | None:
    text = given.values[0] if given is not None and len(given.values) == 1 else ""
    return int(text) if re.fullmatch(r"[1-9][0-9]{0,8}", text) else None


def _leaves(node: YamlMapping) -> Iterator[tuple[str, Scalar | YamlSequence]]:
    for entry in node.entries:
        if isinstance(entry.node, YamlMapping) and entry.key in _NOT_ARGUMENTS:
            continue  # ENV_VARS of the tests of Megatron-LM
        if isinstance(entry.node, YamlMapping):
            yield from _leaves(entry.node)
        elif not entry.key.isupper():  # TEST_TYPE and METRICS, as above
            yield entry.key, entry.node


def _trainer(key: str, node: Scalar | YamlSequence, given: list[Given]) -> dict[str, Given]:
    """Add the argument of a key to ``given``, or return a key about servers."""
    values = _texts(node)
    line = node.line
    plain = key.lstrip("-").replace("-", "_")
    value = node.value if isinstance(node, Scalar) else values
    if plain in {"num_nodes", "nnodes"}:
        return {"nodes": Given(argument=key, values=values, line=line)}
    if plain in {"devices", "nproc_per_node", "gpus_per_node"}:
        return {"gpus_per_node": Given(argument=key, values=values, line=line)}
    name = _YAML_NAMES.get(plain, "--" + plain.replace("_", "-"))
    if plain in _YAML_OPPOSITES and isinstance(value, bool):
        name, value = _YAML_OPPOSITES[plain], not value
    elif plain == "precision":  # of NeMo: bf16, bf16-mixed, 16
        text = str(value).removesuffix("-mixed")
        name, value = {"bf16": ("--bf16", True), "16": ("--fp16", True)}.get(text, (name, value))
    elif plain == "activation" and value in {"swiglu", "fast-swiglu"}:
        name, value = "--swiglu", True
    elif plain == "fp8" and isinstance(value, bool):
        values = ("hybrid",)
        if value:
            given.append(Given(argument=name, values=values, line=line))
        return {}
    if value is None or value is False:
        return {}
    if key == "num_query_groups":  # of NeMo and Megatron-Core, which have no switch beside it
        given.append(Given(argument="--group-query-attention", values=(), line=line))
    given.append(Given(argument=name, values=() if value is True else values, line=line))
    return {}


def _texts(node: Node) -> tuple[str, ...]:
    if isinstance(node, Scalar):
        return (node.text,)
    return tuple(item.text for item in node.items if isinstance(item, Scalar)) if isinstance(node, YamlSequence) else ()
