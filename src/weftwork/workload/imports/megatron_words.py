"""Find Megatron-LM's arguments in a command line, script or YAML file.

Each argument has its line.
Source: NVIDIA/Megatron-LM, examples and tests/functional_tests/test_cases (``model_config.yaml``), for the forms.
Leaves out: which command starts the job (`weftwork.workload.imports.launchers`), and what an argument means
(`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from weftwork.base.findings import Findings
from weftwork.spec.scenario.yaml_tree import Mapping as YamlMapping
from weftwork.spec.scenario.yaml_tree import Node, Scalar, read_tree
from weftwork.spec.scenario.yaml_tree import Sequence as YamlSequence
from weftwork.workload.imports.launchers import (
    LAUNCHER_ARGUMENTS,
    Start,
    assumption_text,
    read_starts,
    several_commands,
    start_counts,
    starts_without_program,
    words_up_to_redirection,
)
from weftwork.workload.imports.megatron_arguments import IGNORED
from weftwork.workload.imports.schedulers import Count
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
_NUMBER: Final = re.compile(r"-[0-9.]")


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
    nodes, gpus_per_node, total : of the launcher, or None where it does not say; text that is no number has no value
    strays : words that belong to no argument, with their lines
    assumed : what the script leaves open, and how it is read
    ignored : what else the script says, and why it is passed over
    deciding : variable of the script without a value, the variable whose value would set it, and the line of that
    line : of the command
    program : what a script starts, such as ``pretrain_gpt.py``
    words : all words behind the program
    """

    given: tuple[Given, ...]
    nodes: Given | None = None
    gpus_per_node: Given | None = None
    total: Given | None = None
    strays: tuple[ShellWord, ...] = ()
    assumed: Mapping[str, str] = field(default_factory=dict)
    ignored: Mapping[str, str] = field(default_factory=dict)
    deciding: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    line: int | None = None
    program: str = ""
    words: tuple[ShellWord, ...] = ()

    @property
    def gpus(self) -> int | None:
        """All GPUs, if the launcher states them, or the nodes and the GPUs of each."""
        counts = [_count(one) for one in (self.nodes, self.gpus_per_node)]
        return _count(self.total) if None in counts else (counts[0] or 0) * (counts[1] or 0)

    @property
    def named(self) -> dict[str, str]:
        """Values by name of what is read: arguments, and numbers of the launcher."""
        read = {one.argument: " ".join(one.values) for one in self.given if one.argument not in IGNORED}
        counts = [one for one in (self.nodes, self.gpus_per_node, self.total) if one is not None]
        return read | {one.argument: " ".join(one.values) for one in counts}


def launch_in_script(
    text: str, known: Container[str], findings: Findings, variables: Mapping[str, str] | None = None
) -> Launch:
    """Find the arguments in a shell script or a command line.

    Parameters
    ----------
    text : of the script, or arguments alone
    known : arguments that tell the training program from others that the script starts
    findings : take what is wrong with the script
    variables : values that the script does not give

    Returns
    -------
    what is started
    """
    script = read_shell(text, variables)
    starts = _known_starts(read_starts(script), known) or _known_starts(starts_without_program(script), known)
    if not starts:
        starts = _known_starts(read_starts(read_shell(text, variables, calls_all=True)), known)
    if not starts:
        starts = list(_loose(script, known))
    if script.is_cut:
        findings.wrong("file", "makes more work than a script that starts a job")
        return Launch(given=())
    if not starts:
        findings.wrong("file", _nothing_text(script), line=script.end_line)
        return Launch(given=())
    launches = [_launch(start, script) for start in starts]
    distinct = _distinct(launches)
    if len(distinct) > 1:
        findings.include([several_commands([(one.line, one.named) for one in distinct])])
        return Launch(given=())
    _check_cut_off(script, starts[0], known, findings)
    return distinct[0]


def _known_starts(starts: Iterable[Start], known: Container[str]) -> list[Start]:
    return [start for start in starts if _has_known(start.behind, known)]


def _nothing_text(script: ShellScript) -> str:
    wanted = "wanted a command such as `torchrun pretrain_gpt.py --num-layers 32 ...`, or the arguments alone"
    text = f"found no argument of Megatron-LM, {wanted}"
    if script.end_line is not None:
        text += "; the script ends itself here"
    names = ", ".join(f"'{name}' in line {line}" for name, line in script.unread.items())
    return text + (f"; it reads {names}, which is not read here" if names else "")


def _launch(start: Start, script: ShellScript) -> Launch:
    given, strays = _parted(start.behind)
    given = [one for one in given if one.argument not in LAUNCHER_ARGUMENTS]
    counts, assumed, ignored = start_counts(start, script.allocation)
    for one in script.assumed:
        name = f"${one.name}"
        assumed[name] = assumption_text(one)
    given_names = {one.argument for one in given} - IGNORED.keys()
    for word in script.added:
        for name in given_names.intersection(part.partition("=")[0] for part in word.text.split()):
            assumed[name] = f"taken: whether line {word.line} is reached is not known without running the script"
    for file, line in script.unread.items():
        ignored[file] = f"line {line} reads this file too, which is not read here; --variable gives its variables"
    named = {key: _of_launcher(count) for key, count in counts.items()}
    return Launch(
        given=tuple(given), nodes=named.get("nodes"), gpus_per_node=named.get("each"), total=named.get("total"),
        strays=tuple(strays), assumed=assumed, ignored=ignored, deciding=script.passed_over,
        line=start.behind[0].line, program=start.program.rpartition("/")[2], words=tuple(start.behind),
    )  # fmt: skip


def _of_launcher(count: Count) -> Given:
    return Given(argument=count.option, values=(count.text,), line=count.line)


def _distinct(launches: Sequence[Launch]) -> list[Launch]:
    """Launches that differ in what is read of them; those without a batch train nothing, if another one has it."""
    kinds: dict[object, Launch] = {}
    for one in launches:
        kinds.setdefault(frozenset(one.named.items()), one)
    distinct = list(kinds.values())
    training = [one for one in distinct if one.named.keys() & {"--micro-batch-size", "--global-batch-size"}]
    return training or distinct


def _check_cut_off(script: ShellScript, start: Start, known: Container[str], findings: Findings) -> None:
    """Find arguments that begin a command, since a comment or a missing backslash ends the one before."""
    text = "begins a command; the line before has no backslash at its end, or is a comment"
    alone = _known_starts(starts_without_program(script), known) if start.program else []
    for one in alone:
        findings.wrong(one.behind[0].text.partition("=")[0], text, line=one.behind[0].line)


def launch_in_yaml(text: str, findings: Findings) -> Launch:
    """Find the arguments in a YAML file, at any depth.

    ``--num-layers: 32`` and ``num_layers: 32`` are the same.

    Parameters
    ----------
    text : of the file
    findings : of this file alone, take where it is no YAML

    Returns
    -------
    what the file says
    """
    root = read_tree(text, findings)
    if not isinstance(root, YamlMapping):
        if not findings.has_mistakes:
            findings.wrong("file", "found no keys, wanted arguments as keys")
        return Launch(given=())
    given: list[Given] = []
    special: dict[str, Given] = {}
    for key, node in _leaves(root):
        special |= _trainer(key, node, given) or {}
    launch = Launch(given=tuple(given), nodes=special.get("nodes"), gpus_per_node=special.get("gpus_per_node"))
    if not given:
        findings.wrong("file", "found no argument, wanted some such as num_layers: 32")
    return launch


def _loose(script: ShellScript, known: Container[str]) -> Iterator[Start]:
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
        words = words_up_to_redirection(words)
        yield Start(before=words, behind=words, program="")


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
