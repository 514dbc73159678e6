"""Outputs of other programs that people take for rows: recognised by name, and refused with the forms that are read.

Source: OSU Micro-Benchmarks, perftest and the Intel MPI Benchmarks as they print; NVIDIA/nccl-tests, src/util.cu, for
JSON; microsoft/mscclpp, python/mscclpp_benchmark.
Leaves out: reading them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from weftwork.base.errors import Mistake
from weftwork.study.validation.nccl_programs import named_programs

__all__ = ["ACCEPTED", "foreign_mistake"]

ACCEPTED: Final = (
    "the text that nccl-tests prints, or a table as 'weftwork validate --template curves' or '--template iterations'"
    " prints it"
)


@dataclass(frozen=True, kw_only=True, slots=True)
class Foreign:
    """An output: the program that prints it, what it is, and a line that gives it away."""

    program: str
    text: str
    mark: re.Pattern[str]


_FOREIGN: Final = (
    Foreign(
        program="OSU Micro-Benchmarks", text="which measure operations of MPI and not of NCCL",
        mark=re.compile(r"#\s*OSU \S+.* Test"),
    ),
    Foreign(
        program="Intel MPI Benchmarks", text="which measure operations of MPI and not of NCCL",
        mark=re.compile(r"#bytes\s+#repetitions\s+t"),
    ),
    Foreign(
        program="perftest (ib_write_bw and its relatives)", text="which measures one link and no collective",
        mark=re.compile(r"#bytes\s+#iterations\s"),
    ),
    Foreign(
        program="nccl-tests' option -J", text="its report as JSON and not its text",
        mark=re.compile(r'^\s*\{.*"(?:nccl_version|average_bus_bandwidth|out_of_place)"', re.DOTALL),
    ),
    Foreign(
        program="MSCCL++'s benchmark in Python", text="a table of another form than its tests print",
        mark=re.compile(r"\|\s*Size\s*\|\s*Time \(us\)\s*\|\s*AlgBW"),
    ),
    Foreign(
        program="NCCL with NCCL_DEBUG", text="a log without a table of times",
        mark=re.compile(r"\bNCCL (?:INFO|WARN)\b"),
    ),
)  # fmt: skip


def foreign_mistake(text: str) -> Mistake | None:
    """What a text is that is no table; None where nobody knows it.

    Parameters
    ----------
    text : of the file
    """
    for known in _FOREIGN:
        match = known.mark.search(text)
        if match is not None:
            line = text.count("\n", 0, match.start()) + 1
            found = f"found the output of {known.program}, {known.text}; wanted {ACCEPTED}"
            return Mistake(path="file", text=found, line=line)
    for number, line_text in enumerate(text.splitlines(), start=1):
        if "," not in line_text and (names := named_programs(line_text)):
            name = names[0] if isinstance(names[0], str) else names[0].name
            found = f"found a line with {name}_perf, and nothing that it prints; wanted {ACCEPTED}"
            return Mistake(path="file", text=found, line=number)
    return None
