"""One of the two NIC ports of one GPU is lost: what HPN measured on 256 GPUs, and what Weftwork says.

    python benchmarks/published_port_lost.py [--markdown]

Their side: training on 256 GPUs of HPN, in which each GPU has 2 x 200 Gb/s on two leaves of two planes, goes on 6.25 %
slower when one port is lost; with a single leaf the job halts. Our side: `published_port_lost.yaml`, by flows, with
and without a fault at 0 s. Nothing is fitted.
Source: Qian et al., SIGCOMM 2024, doi:10.1145/3651890.3672265.
Leaves out: their model, plan and batch, which the figure as we have it does not name; so several rows stand beside it.
"""

from __future__ import annotations

import argparse
import datetime as dt
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import weftwork

__all__ = ["CASES", "PUBLISHED", "Case", "Found", "main", "measure"]

SCENARIO: Final = Path(__file__).with_suffix(".yaml")
PUBLISHED: Final = -0.0625  # of the throughput
FAULTS: Final = "[{at: 0s, nic: host0/nic0, event: down}]"


@dataclass(frozen=True, kw_only=True, slots=True)
class Case:
    """A model, how it is split, and how many sequences an iteration has.

    Parameters
    ----------
    model : of the catalogue
    tensor, pipeline : degrees; the rest of the 256 GPUs are copies
    global_batch : sequences
    """

    model: str
    tensor: int = 1
    pipeline: int = 1
    global_batch: int = 1_024

    @property
    def plan(self) -> str:
        """For people."""
        data = 256 // (self.tensor * self.pipeline)
        return f"TP {self.tensor}, PP {self.pipeline}, DP {data}"


@dataclass(frozen=True, kw_only=True, slots=True)
class Found:
    """What an iteration takes, in seconds, and what a lost port does to the throughput, as a share."""

    whole_s: float
    lost_s: float

    @property
    def change(self) -> float:
        """Of the throughput."""
        return self.whole_s / self.lost_s - 1


# 1,024 sequences of 4,096 tokens are the 4 M tokens of Llama 2 (Touvron et al., arXiv:2307.09288, table 1); chosen: a
# quarter of it, as a job of few GPUs may take.
CASES: Final = (
    Case(model="llama-2-7b"),
    Case(model="llama-2-7b", global_batch=256),
    Case(model="llama-2-13b", tensor=2),
    Case(model="llama-2-13b", tensor=2, global_batch=256),
    Case(model="llama-2-70b", tensor=8, pipeline=4),
    Case(model="llama-2-70b", tensor=8, pipeline=4, global_batch=256),
)


def measure(case: Case, folder: Path) -> Found:
    """Run an iteration with and without the port; writes two run folders."""
    names = ("model", "tensor", "pipeline", "global_batch")
    plan = {f"training.{name}": str(getattr(case, name)) for name in names}
    times_s = []
    for name, overrides in (("whole", plan), ("lost", plan | {"faults": FAULTS})):
        found = weftwork.run(SCENARIO, out=folder / name, overrides=overrides).value("iteration_ps")
        if found is None:
            raise SystemExit(f"{case.model}: no iteration was finished")
        times_s.append(found / 1e12)
    return Found(whole_s=times_s[0], lost_s=times_s[1])


def main() -> None:
    """Run the cases and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--markdown", action="store_true", help="print a table for docs/models/published.md")
    is_markdown = parser.parse_args().markdown
    head = ["model", "plan", "batch", "iteration", "one port lost", "throughput", "to HPN's -6.25 %"]
    rows = []
    for case in CASES:
        with tempfile.TemporaryDirectory() as folder:
            found = measure(case, Path(folder))
        off = 100 * (found.change - PUBLISHED)
        rows.append(
            [case.model, case.plan, f"{case.global_batch:,}", f"{found.whole_s:.3f} s", f"{found.lost_s:.3f} s",
             f"{100 * found.change:+.2f} %", f"{off:+.2f} points"]
        )  # fmt: skip
    print(f"{dt.datetime.now(dt.UTC).date().isoformat()}\n")
    if is_markdown:
        print("\n".join("| " + " | ".join(row) + " |" for row in [head, ["---"] * 2 + ["---:"] * 5, *rows]))
        return
    wide = [max(len(row[column]) for row in [head, *rows]) for column in range(len(head))]
    for row in [head, *rows]:
        print("  ".join(cell.ljust(size) for cell, size in zip(row, wide, strict=True)).rstrip())


if __name__ == "__main__":
    main()
