"""The command of a script that starts a training job, and its number of GPUs.

Source: PyTorch, torch/distributed/run.py, for torchrun and its defaults; DeepSpeed, deepspeed/launcher/runner.py;
Accelerate, commands/launch.py; Open MPI 5, mpirun(1); IBM jsrun; Slurm, srun(1).
Leaves out: what the arguments behind the program mean (`weftwork.workload.imports.megatron`).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import PurePosixPath
from typing import Final

from weftwork.base.errors import Mistake
from weftwork.base.grammar import plural
from weftwork.workload.imports.schedulers import Allocation, Count, read_slurm_options
from weftwork.workload.imports.shell import ShellScript, ShellWord, without_value
from weftwork.workload.imports.shell_commands import TALKERS
from weftwork.workload.imports.shell_walk import Assumption

__all__ = [
    "LAUNCHER_ARGUMENTS",
    "Start",
    "assumption_text",
    "read_starts",
    "several_commands",
    "start_counts",
    "starts_without_program",
    "words_up_to_redirection",
]

_PROGRAM: Final = re.compile(r"\.py$")
_REDIRECTION: Final = re.compile(r"\d*(>>?|<<?<?|>\||&>>?|>&)(.*)", re.DOTALL)
_END: Final = frozenset({"|", "|&", "||", "&&", ";", "&"})
_TORCH: Final = re.compile(r"torchrun|torch\.distributed\.(run|launch)|.*/torchrun")
_OWN_MODULES: Final = (
    "torch.distributed",
    "deepspeed",
    "accelerate",
    "memray",
    "cProfile",
    "coverage",
    "debugpy",
    "pdb",
)
_MPI: Final = frozenset({"mpirun", "mpiexec", "orterun", "horovodrun", "prterun", "aprun", "jsrun", "mpiexec.hydra"})
_AROUND: Final = frozenset({"srun", "ssh", "pdsh", "clush", "parallel-ssh", "sbatch", "ray", "blaunch", *_MPI})
LAUNCHER_ARGUMENTS: Final = frozenset({"--nnodes", "--nproc-per-node", "--nproc_per_node"})  # not the program's
_MOST_SHOWN: Final = 4  # chosen: more names in a sentence are not read
_LONGEST: Final = 40  # chosen: letters of a value in a message
_ALL_GPUS: Final = frozenset({"gpu", "auto"})


@dataclass(frozen=True, kw_only=True, slots=True)
class Start:
    """A command that starts a program.

    Attributes
    ----------
    before, behind : words in front of the program, and its arguments
    program : its file or module; empty for arguments alone
    """

    before: Sequence[ShellWord]
    behind: Sequence[ShellWord]
    program: str


def read_starts(script: ShellScript) -> Iterator[Start]:
    """Commands that start a Python program."""
    for words in script.commands:
        start = _start(words)
        if start is not None:
            yield start


def starts_without_program(script: ShellScript) -> Iterator[Start]:
    """Commands that are arguments alone."""
    for words in script.commands:
        if words[0].text.startswith("--"):
            yield Start(before=(), behind=words_up_to_redirection(words), program="")


def _start(words: Sequence[ShellWord]) -> Start | None:
    for place, word in enumerate(words):
        name = PurePosixPath(word.text).name
        if name in TALKERS and place == 0:
            return None
        is_module = place > 0 and words[place - 1].text in {"-m", "--module"} and not name.startswith(_OWN_MODULES)
        if _PROGRAM.search(word.text) or (is_module and re.fullmatch(r"[A-Za-z_][\w.]*", name)):
            behind = words_up_to_redirection(words[place + 1 :])
            return Start(before=words[:place], behind=behind, program=word.text)
    return None


def words_up_to_redirection(words: Sequence[ShellWord]) -> list[ShellWord]:
    """Arguments without redirections, and up to what ends a command.

    They stand there if a variable holds a whole command line.
    """
    kept: list[ShellWord] = []
    is_target = False
    for word in words:
        if is_target:
            is_target = False
            continue
        match = _REDIRECTION.fullmatch(word.text)
        if word.text in _END:
            break
        if match is not None:
            is_target = not match[2]
        elif word.text.endswith(";") and len(word.text) > 1:
            kept.append(ShellWord(text=word.text[:-1], line=word.line, is_conditional=word.is_conditional))
            break
        else:
            kept.append(word)
    return kept


def start_counts(start: Start, allocation: Allocation) -> tuple[dict[str, Count], dict[str, str], dict[str, str]]:
    """Nodes, GPUs of a node, and all GPUs of a job.

    Returns
    -------
    counts by ``nodes``, ``each`` and ``total``; what is assumed; and what is passed over, with the reason
    """
    before = list(start.before)
    names = {PurePosixPath(word.text).name for word in before}
    options = _options_of(before)
    line = before[0].line if before else None
    slurm = read_slurm_options([word.text for word in before], line) if names & {"srun", "sbatch", "salloc"} else {}
    job = Allocation(scheduler="SBATCH" if slurm else "", counts=slurm).over(allocation)
    counts: dict[str, Count] = {}
    assumed: dict[str, str] = {}

    def take(key: str, *named: str) -> None:
        for name in named:
            if key not in counts and name in options:
                counts[key] = options[name]

    is_torch = any(_TORCH.fullmatch(word.text) for word in before)
    take("nodes", "--nnodes", "--num_nodes", "--num-nodes", "--num_machines")
    take("each", "--nproc-per-node", "--nproc_per_node", "--num_gpus", "--num-gpus")
    starts_ranks = not is_torch and not (names & {"deepspeed", "accelerate", "accelerate-launch"})
    if "accelerate" in names or "accelerate-launch" in names:
        take("total", "--num_processes")
    if starts_ranks and names & _MPI:
        take("total", *(("-n", "-np", "--np", "--n") if "jsrun" not in names else ()))
        take("each", "-N", "--npernode", "-npernode", "-ppn", "--ppn")
        if "jsrun" in names:
            take("nodes", "--nrs", "-n")
            take("each", "--gpu_per_rs", "-g")
    if counts.get("each") is not None and counts["each"].text in _ALL_GPUS:
        counts["each"] = job.counts.get("gpus_per_node", counts["each"])
    _from_job(counts, job, starts_ranks=starts_ranks and not names & _MPI)
    is_alone = not names & _AROUND and not allocation.counts
    if is_torch and is_alone and "nodes" not in counts and counts.get("each") and counts["each"].value:
        counts["nodes"] = Count(option="--nnodes", text="1", line=None)
        assumed["--nnodes"] = "1: torchrun's default"
    return counts, assumed, _differences(counts, allocation)


def _from_job(counts: dict[str, Count], job: Allocation, *, starts_ranks: bool) -> None:
    """Counts of the scheduler, for what the launcher does not say."""
    given = job.counts
    if "total" in counts:
        return
    keys = ["gpus_per_node", "tasks_per_node"]
    each = given.get("tasks_per_node")
    if starts_ranks and each is not None and each.value != 1:
        keys.reverse()
    for key in keys:
        if key in given and "each" not in counts:
            counts["each"] = given[key]
    if "nodes" not in counts and "nodes" in given:
        counts["nodes"] = given["nodes"]
    total = given.get("tasks") if starts_ranks else given.get("gpus")
    total = total or given.get("gpus")
    if total is not None and not ("nodes" in counts and "each" in counts):
        counts["total"] = total


def _differences(counts: Mapping[str, Count], allocation: Allocation) -> dict[str, str]:
    """Numbers of the scheduler that differ from those of the launcher."""
    passed_over = {}
    for key, name in (("nodes", "nodes"), ("each", "gpus_per_node")):
        asked, taken = allocation.counts.get(name), counts.get(key)
        if asked is not None and taken is not None and asked.value and taken.value and asked.value != taken.value:
            label = f"#{allocation.scheduler} {asked.option}"
            passed_over[label] = f"it says {asked.value:,}, and {taken.option} says {taken.value:,}, which counts"
    return passed_over


def _options_of(words: Sequence[ShellWord]) -> dict[str, Count]:
    """Options and their values: ``--name=value``, ``--name value`` and ``-n 8``."""
    options = {}
    for word, behind in zip_longest(words, words[1:]):
        if not word.text.startswith("-"):
            continue
        name, equals, value = word.text.partition("=")
        text = value if equals else "" if behind is None else behind.text
        options[name] = Count(option=name, text=text, line=word.line)
    return options


def assumption_text(assumption: Assumption) -> str:
    """How a variable of a condition is read."""
    asks = f"line {assumption.line} asks for it"
    if assumption.is_set:
        return f"set: {asks}, and the script ends without it"
    if assumption.name.isidentifier():
        return f"not set: {asks}; --variable {assumption.name}=VALUE sets it"
    return f"not given: {asks}; the script is read as if started without arguments"


def several_commands(commands: Sequence[tuple[int | None, Mapping[str, str]]]) -> Mistake:
    """The mistake that several commands start different jobs.

    Parameters
    ----------
    commands : line and values of each, by argument
    """
    numbers = list(dict.fromkeys(str(line) for line, _ in commands))
    lines = "line " + " and line ".join(numbers)
    names = dict.fromkeys(name for _, values in commands for name in values)
    differing = [name for name in names if len({values.get(name) for _, values in commands}) > 1]
    shown = [f"{name} ({_choices([values.get(name) for _, values in commands])})" for name in differing[:_MOST_SHOWN]]
    more = f" and {plural(len(differing) - len(shown), 'other argument')}" if len(differing) > len(shown) else ""
    text = (
        f"found {plural(len(commands), 'command')} with arguments of Megatron-LM, in {lines}, which differ in "
        f"{', '.join(shown)}{more}; wanted one: --variable sets a variable that decides, or keep one in a copy"
    )
    return Mistake(path="file", text=text, line=commands[1][0])


def _choices(values: Sequence[str | None]) -> str:
    words = [_shown(value) for value in dict.fromkeys(values)]
    return " or ".join(words[:_MOST_SHOWN])


def _shown(value: str | None) -> str:
    if value is None:
        return "not there"
    missing = without_value(value)
    return f"${missing[0]}" if missing else value[:_LONGEST] or "there"
