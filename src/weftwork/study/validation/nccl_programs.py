"""The programs of nccl-tests and its relatives: what each measures, and what its columns say of that.

Bus bandwidth over algorithm bandwidth, and bytes over elements, tell programs apart that do not print their name.
Source: NVIDIA/nccl-tests, doc/PERFORMANCE.md (bus bandwidth) and src/*.cu (element counts); microsoft/mscclpp, test.
Leaves out: programs that measure no single operation of all GPUs, such as those of gin.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weftwork.hardware.catalogue import GPUS, SERVERS, node

__all__ = ["PROGRAMS", "NcclProgram", "accepted_programs", "gpu_of_device", "named_programs", "nodes_with"]


@dataclass(frozen=True, kw_only=True, slots=True)
class NcclProgram:
    """One program.

    Attributes
    ----------
    name : without ``_perf``
    measures : in words
    operation : of Weftwork's curves; empty: none
    simulated : operation of ``weftwork collective`` where there are no curves; empty: none
    passes : bus bandwidth over algorithm bandwidth is ``passes`` (n - 1) / n of n ranks; 0: it is 1
    is_split : whether the printed elements are those of one rank
    reduces : whether it has a reduction, such as ``sum``
    has_root : whether one rank is the root
    """

    name: str
    measures: str
    operation: str = ""
    simulated: str = ""
    passes: int = 0
    is_split: bool = False
    reduces: bool = False
    has_root: bool = False

    def bus_factor(self, ranks: int) -> float:
        """Bus bandwidth over algorithm bandwidth."""
        return self.passes * (ranks - 1) / ranks if self.passes else 1.0


PROGRAMS: Final[dict[str, NcclProgram]] = {
    made.name: made
    for made in (
        NcclProgram(
            name="all_reduce", operation="all-reduce", passes=2, reduces=True,
            measures="an all-reduce: every rank gets the sum of all ranks",
        ),
        NcclProgram(
            name="all_gather", operation="all-gather", passes=1, is_split=True,
            measures="an all-gather: every rank gets the parts of all ranks",
        ),
        NcclProgram(
            name="reduce_scatter", operation="reduce-scatter", passes=1, is_split=True, reduces=True,
            measures="a reduce-scatter: every rank gets its part of the sum",
        ),
        NcclProgram(
            name="alltoall", operation="all-to-all", passes=1, is_split=True,
            measures="an all-to-all: every rank sends a part to every other",
        ),
        NcclProgram(name="alltoallv", measures="an all-to-all with a size for each pair of ranks"),
        NcclProgram(
            name="broadcast", simulated="broadcast", measures="a broadcast from one rank to all", has_root=True,
        ),
        NcclProgram(
            name="reduce", simulated="reduce", measures="a reduction of all ranks to one", reduces=True, has_root=True,
        ),
        NcclProgram(
            name="gather", measures="a gather of all ranks to one", passes=1, is_split=True, has_root=True,
        ),
        NcclProgram(
            name="scatter", measures="a scatter from one rank to all", passes=1, is_split=True, has_root=True,
        ),
        NcclProgram(
            name="sendrecv", simulated="send-receive",
            measures="a ring of sends: each rank sends to the next one and receives from the one before",
        ),
        NcclProgram(
            name="hypercube", measures="an all-gather by pairs on a hypercube of sends", passes=1, is_split=True,
        ),
    )
}  # fmt: skip
_BY_PLAIN: Final = {name.replace("_", ""): made for name, made in PROGRAMS.items()}
_NAME: Final = re.compile(r"\b([a-z]+(?:_[a-z]+)*?)(?:_test)?_perf(?:_mpi)?\b")
_OTHER_BOARDS: Final = {"PCIE", "NVL", "MIG"}  # words of a device whose links are not those of the catalogue's GPU
_DIE: Final = "DIE"  # of a GPU of several, which a device does not say
MOST_HOST_GPUS: Final = 16  # chosen: an HGX-2 has 16; an NVLink domain of more spans hosts


def named_programs(text: str) -> list[NcclProgram | str]:
    """Programs that a text names, each once; a name that nobody knows stays text.

    Examples
    --------
    >>> [getattr(made, "name", made) for made in named_programs("mpirun ./build/all_reduce_perf_mpi -b 8")]
    ['all_reduce']
    >>> [getattr(made, "name", made) for made in named_programs("allgather_test_perf, my_own_perf")]
    ['all_gather', 'my_own']
    """
    found: list[NcclProgram | str] = [_BY_PLAIN.get(name.replace("_", ""), name) for name in _NAME.findall(text)]
    return list(dict.fromkeys(found))


def accepted_programs() -> str:
    """The programs whose operation Weftwork has, in words."""
    names = [f"{made.name}_perf ({made.operation})" for made in PROGRAMS.values() if made.operation]
    return f"{', '.join(names[:-1])} or {names[-1]}"


def gpu_of_device(device: str) -> str | None:
    """GPU of the catalogue by the name that CUDA or HIP gives it; None where there is none.

    Examples
    --------
    >>> [gpu_of_device(name) for name in ("NVIDIA H100 80GB HBM3", "NVIDIA A100-SXM4-40GB", "NVIDIA H100 PCIe")]
    ['h100', 'a100', 'h100-pcie']
    >>> gpu_of_device("NVIDIA A100-PCIE-40GB") is None
    True
    """
    words = set(re.findall(r"[A-Z0-9]+", device.upper()))
    parts = {name: {*name.upper().split("-")} - {_DIE} for name in GPUS}
    fitting = [name for name in GPUS if words & _OTHER_BOARDS <= parts[name] <= words]
    return max(fitting, key=lambda name: len(parts[name]), default=None)


def nodes_with(gpu: str | None, host_gpus: int) -> list[str]:
    """Servers of the catalogue with a GPU, those first whose hosts have so many.

    Parameters
    ----------
    gpu : of the catalogue; None: nobody knows it, and no server has it
    host_gpus : of each host that a text lists; 0: it lists none
    """
    names = [name for name, row in SERVERS.items() if "gpu" in row.figures and row.value("gpu") == gpu]
    return sorted(names, key=lambda name: node(name).server.gpus < host_gpus)
