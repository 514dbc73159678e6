"""What a scheduler gives to a job: options in the script's head or on a command line, and variables made from them.

Source: Slurm 24.05, sbatch(1) and srun(1), for options and ``SLURM_*``; OpenPBS 23.06, qsub(1B) and
pbs_resources(7B); IBM Spectrum LSF 10.1, bsub, for ``-n``, ``-nnodes``, ``-gpu`` and ``span[ptile=N]``.
Leaves out: partitions, times and memory, of which a scenario knows nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Final

__all__ = ["Allocation", "Count", "read_directives", "read_slurm_options"]

_DIRECTIVE: Final = re.compile(r"#(SBATCH|PBS|BSUB)\s+(.*)")
_COMMENT: Final = re.compile(r"\s+#.*")
_SLURM: Final = {
    "--nodes": "nodes", "-N": "nodes", "--gpus-per-node": "gpus_per_node", "--gres": "gpus_per_node",
    "--ntasks-per-node": "tasks_per_node", "--tasks-per-node": "tasks_per_node", "--ntasks": "tasks", "-n": "tasks",
    "--gpus": "gpus", "-G": "gpus", "--cpus-per-task": "cpus_per_task", "-c": "cpus_per_task",
    "--job-name": "name", "-J": "name",
}  # fmt: skip
_OF_GPUS: Final = frozenset({"gpus_per_node", "gpus"})
_FROM_HOSTS: Final = re.compile(r"\s*scontrol\s+show\s+host(name|names)\b[^|;&]*\|\s*wc\s+-l\s*")
_NODE_FILES: Final = re.compile(r"\$\{?(PBS_NODEFILE|LSB_DJOB_HOSTFILE)\b")
_COUNTS_LINES: Final = frozenset({"cat", "sort", "uniq", "wc", "l", "u", "PBS_NODEFILE", "LSB_DJOB_HOSTFILE"})
_FROM_NVIDIA: Final = re.compile(
    r"\s*nvidia-smi\s+(-L|--list-gpus|--query-gpu=\w+\s+--format=csv,noheader)\s*\|\s*(wc\s+-l|grep\s+-c\s+\S+)\s*"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Count:
    """A number as a script says it.

    Attributes
    ----------
    option : that says it
    text : of its value
    line : in the script
    """

    option: str
    text: str
    line: int | None

    @property
    def value(self) -> int | None:
        """The number, or None where the text is none."""
        return int(self.text) if re.fullmatch(r"[1-9][0-9]{0,8}", self.text) else None


@dataclass(frozen=True, kw_only=True, slots=True)
class Allocation:
    """Nodes, GPUs and processes of a job, by what the scheduler calls them."""

    scheduler: str = ""
    counts: Mapping[str, Count] = field(default_factory=dict)

    def value(self, key: str) -> int | None:
        """A number, also where it follows from others."""
        count = self.counts.get(key)
        if count is not None:
            return count.value
        tasks, each, nodes = (self.counts.get(name) for name in ("tasks", "tasks_per_node", "nodes"))
        if key == "nodes" and tasks and each and tasks.value and each.value:
            return -(-tasks.value // each.value)
        if key == "tasks" and nodes and each and nodes.value and each.value:
            return nodes.value * each.value
        return None

    @property
    def variables(self) -> dict[str, str]:
        """Variables that the scheduler sets, as far as the options say them."""
        nodes, tasks = self.value("nodes"), self.value("tasks")
        each, gpus = self.value("tasks_per_node"), self.value("gpus_per_node")
        names = _VARIABLES.get(self.scheduler, {})
        numbers = {"nodes": nodes, "tasks": tasks, "tasks_per_node": each, "gpus_per_node": gpus,
                   "gpus": self.value("gpus"), "cpus_per_task": self.value("cpus_per_task")}  # fmt: skip
        found = {name: str(numbers[key]) for name, key in names.items() if numbers[key] is not None}
        if self.scheduler == "SBATCH" and each is not None and nodes is not None:
            found["SLURM_TASKS_PER_NODE"] = f"{each}(x{nodes})" if nodes > 1 else str(each)
        return found

    def output(self, command: str) -> str | None:
        """What a command prints that counts nodes or GPUs, or None."""
        if _FROM_NVIDIA.fullmatch(command):
            key = "gpus_per_node"
        elif _FROM_HOSTS.fullmatch(command):
            key = "nodes"
        elif _NODE_FILES.search(command) and "wc" in command and set(re.findall(r"\w+", command)) <= _COUNTS_LINES:
            key = "nodes" if re.search(r"\buniq\b|sort\s+-u", command) else "tasks"
        else:
            return None
        number = self.value(key)
        return None if number is None else str(number)

    def over(self, other: Allocation) -> Allocation:
        """These counts, and those of another one that they do not say."""
        return replace(other, scheduler=self.scheduler or other.scheduler, counts={**other.counts, **self.counts})


_VARIABLES: Final[Mapping[str, Mapping[str, str]]] = {
    "SBATCH": {
        "SLURM_NNODES": "nodes", "SLURM_JOB_NUM_NODES": "nodes", "SLURM_NTASKS": "tasks", "SLURM_NPROCS": "tasks",
        "SLURM_NTASKS_PER_NODE": "tasks_per_node", "SLURM_GPUS_ON_NODE": "gpus_per_node",
        "SLURM_GPUS_PER_NODE": "gpus_per_node", "SLURM_GPUS": "gpus", "SLURM_CPUS_PER_TASK": "cpus_per_task",
    },
    "PBS": {"PBS_NUM_NODES": "nodes", "PBS_NP": "tasks", "PBS_NUM_PPN": "tasks_per_node"},
    "BSUB": {"LSB_DJOB_NUMPROC": "tasks"},
}  # fmt: skip


def read_directives(text: str, *, line: int = 1) -> Allocation:
    r"""Read ``#SBATCH``, ``#PBS`` and ``#BSUB`` lines, which stand before the first command.

    Parameters
    ----------
    text : of the script
    line : of its first letter

    Examples
    --------
    >>> read_directives("#!/bin/bash\n#SBATCH -N 48 --gres=gpu:8").variables["SLURM_NNODES"]
    '48'
    """
    scheduler = ""
    counts: dict[str, Count] = {}
    for place, row in enumerate(text.splitlines()):
        if row.strip() and not row.lstrip().startswith("#"):
            break
        match = _DIRECTIVE.match(row)
        if match is None:
            continue
        scheduler = match[1]
        words = _COMMENT.sub("", match[2]).split()
        reads = {"SBATCH": read_slurm_options, "PBS": _read_pbs, "BSUB": _read_lsf}
        counts |= reads[scheduler](words, line + place)
    return Allocation(scheduler=scheduler, counts=counts)


def read_slurm_options(words: Sequence[str], line: int | None) -> dict[str, Count]:
    """Counts in options of sbatch and srun: ``--nodes=4``, ``--nodes 4``, ``-N4`` and ``-N 4``."""
    counts = {}
    for option, value in _options(words, _SLURM):
        key = _SLURM[option]
        text = value
        if key in _OF_GPUS:
            text = _gpus_of(value, needs_name=option == "--gres")
        elif key == "nodes":
            text = _same(value.split("-"))
        if text:
            counts[key] = Count(option=option, text=text, line=line)
    return counts


def _options(words: Sequence[str], names: Iterable[str]) -> list[tuple[str, str]]:
    known = tuple(names)
    pairs = []
    for word, behind in zip_longest(words, words[1:], fillvalue=""):
        name, equals, value = word.partition("=")
        if equals and name in known:
            pairs.append((name, value))
        elif word in known:
            pairs.append((word, behind))
        elif word[:2] in known and word[:1] == "-" and word[1:2] != "-" and word[2:].isdigit():
            pairs.append((word[:2], word[2:]))
    return pairs


def _gpus_of(value: str, *, needs_name: bool) -> str:
    """Number in ``gpu:8``, ``gpu:h100:8``, ``h100:8`` or ``8``; empty where there are no GPUs."""
    for resource in re.split(r"[,&]", value):
        parts = re.sub(r"\(.*", "", resource).split(":")
        if needs_name and parts[0] not in {"gpu", "gres/gpu"}:
            continue
        if parts[-1].isdigit():
            return parts[-1]
        if needs_name:
            return "1" if not parts[-1].startswith(("$", "\0")) else parts[-1]
    return "" if needs_name else value


def _same(values: Sequence[str]) -> str:
    """The number that all parts are, as in ``48-48``; else all of them."""
    return values[0] if len(set(values)) == 1 else "-".join(values)


def _read_pbs(words: Sequence[str], line: int) -> dict[str, Count]:
    """``-l select=48:ncpus=64:ngpus=8:mpiprocs=8`` and ``-l nodes=4:ppn=8:gpus=8``."""
    counts: dict[str, Count] = {}
    for option, value in _options(words, ("-l",)):
        for resource in value.split(","):
            head, *more = resource.split(":")
            name, _, number = head.partition("=")
            parts = dict(part.partition("=")[::2] for part in more)
            if name not in {"select", "nodes"}:
                continue
            counts["nodes"] = Count(option=f"{option} {name}", text=number, line=line)
            for key, keys in (("gpus_per_node", ("ngpus", "gpus")), ("tasks_per_node", ("mpiprocs", "ppn"))):
                for part in keys:
                    if part in parts:
                        counts[key] = Count(option=f"{option} {part}", text=parts[part], line=line)
    return counts


def _read_lsf(words: Sequence[str], line: int) -> dict[str, Count]:
    """``-nnodes 4``, ``-n 32``, ``-gpu "num=8"`` and ``-R "span[ptile=8]"``."""
    counts: dict[str, Count] = {}
    for option, value in _options([word.strip("\"'") for word in words], ("-nnodes", "-n", "-gpu", "-R")):
        ptile = re.search(r"ptile=(\d+)", value)
        gpus = re.search(r"num=(\d+)", value)
        if option == "-gpu" and gpus:
            counts["gpus_per_node"] = Count(option=option, text=gpus[1], line=line)
        elif option == "-R" and ptile:
            counts["tasks_per_node"] = Count(option=option, text=ptile[1], line=line)
        elif option in {"-n", "-nnodes"}:
            counts["tasks" if option == "-n" else "nodes"] = Count(option=option, text=value, line=line)
    return counts
