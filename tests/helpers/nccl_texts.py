"""Texts as nccl-tests prints them, of known runs, with the tags of launchers.

`Written` is what a text says; `text_of` prints it in one of the forms of the program's versions.
Source: NVIDIA/nccl-tests, src/util.cu. Leaves out: what a launcher does with lines that are too long.
"""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["FACTORS", "H100", "Written", "tagged", "text_of"]

H100 = "NVIDIA H100 80GB HBM3"
FACTORS = {"all_reduce": 2.0, "all_gather": 1.0, "reduce_scatter": 1.0, "alltoall": 1.0}  # times (n - 1) / n
_REDUCTION = {"all_reduce": "sum", "all_gather": "none", "reduce_scatter": "sum", "alltoall": "none"}


@dataclass(frozen=True, kw_only=True, slots=True)
class Written:
    """One run.

    Attributes
    ----------
    program : without ``_perf``
    hosts, host_gpus, gpu : where it ran
    sizes_bytes, times_us : its rows
    has_name, has_ranks, has_settings : which lines are there
    columns : ``new``, ``old`` (no root, errors in place of counts), ``iterations`` or ``timestamps``
    first_host : number of the first host
    is_checked : whether wrong values are counted
    """

    program: str = "all_reduce"
    hosts: int = 1
    host_gpus: int = 8
    gpu: str = H100
    sizes_bytes: tuple[int, ...] = (1 << 20, 1 << 24, 1 << 28)
    times_us: tuple[float, ...] = (46.08, 150.25, 1400.5)
    has_name: bool = True
    has_ranks: bool = True
    has_settings: bool = True
    columns: str = "new"
    first_host: int = 0
    is_checked: bool = True

    @property
    def ranks(self) -> int:
        """Of all hosts."""
        return self.hosts * self.host_gpus


def text_of(run: Written) -> list[str]:
    """The lines of a run."""
    sizes = run.sizes_bytes
    lines = ["# nccl-tests version 2.17.6 nccl-headers=22807 nccl-library=22807"] if run.columns == "new" else []
    if run.has_name:
        lines.append(f"# Collective test starting: {run.program}_perf")
    if run.has_settings:
        lines.append(
            f"# nThread 1 nGpus 1 minBytes {sizes[0]} maxBytes {sizes[-1]} step: 4(factor) warmup iters: 5 iters: 20"
            " agg iters: 1 validation: 1 graph: 0"
        )
    lines += ["#", "# Using devices"]
    if run.has_ranks:
        lines += [
            f"#  Rank {rank:2} Group  0 Pid {1000 + rank:6} on     node-{run.first_host + rank // run.host_gpus} device"
            f" {rank % run.host_gpus:2} [0000:{rank % run.host_gpus:02x}:00] {run.gpu}"
            for rank in range(run.ranks)
        ]
    lines += ["#", *_head(run.columns)]
    lines += [_row(run, size, time_us) for size, time_us in zip(sizes, run.times_us, strict=True)]
    return [*lines, "# Out of bounds values : 0 OK", "#"]


def tagged(lines: list[str], tag: str) -> list[str]:
    """The same lines with a tag; ``{}`` in it is the number of the line, two digits."""
    return [tag.replace("{}", f"{number % 60:02}") + line for number, line in enumerate(lines)]


def _head(columns: str) -> list[str]:
    first = f"# {'size':>10}  {'count':>12}  {'type':>8}  {'redop':>6}"
    first += "" if columns == "old" else f"  {'root':>6}"
    wrong = " error" if columns == "old" else "#wrong"
    each = f"  {'time':>7}  {'algbw':>6}  {'busbw':>6}  {wrong:>6}"
    if columns == "iterations":
        each += "".join(f"  {name:>7}" for name in ("i_min", "i_max", "i_p99", "i_cv%"))
    last = f" {'timestamp':>19}" if columns == "timestamps" else ""
    return [
        f"#{' ' * len(first)}  out-of-place                       in-place          ",
        first + each + each + last,
        f"# {'(B)':>10}  {'(elements)':>12}                     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]


def _row(run: Written, size_bytes: int, time_us: float) -> str:
    is_split = run.program != "all_reduce"
    elements = size_bytes // 4 // (run.ranks if is_split else 1)
    first = f"{size_bytes:12}  {elements:12}  {'float':>8}  {_REDUCTION[run.program]:>6}"
    first += "" if run.columns == "old" else f"  {-1:6}"
    algorithm = size_bytes / time_us / 1e3
    bus = algorithm * FACTORS[run.program] * (run.ranks - 1) / run.ranks
    wrong = "5e-07" if run.columns == "old" else "0" if run.is_checked else "N/A"
    each = f"  {time_us:7.7g}  {algorithm:6.2f}  {bus:6.2f}  {wrong:>6}"
    other = f"  {time_us * 1.25:7.7g}  {algorithm / 1.25:6.2f}  {bus / 1.25:6.2f}  {wrong:>6}"
    if run.columns == "iterations":
        more = f"  {time_us * 0.9:7.4g}  {time_us * 1.1:7.4g}  {time_us * 1.05:7.4g}  {1.25:7}"
        each, other = each + more, other + more
    return first + each + other + ("  2026-05-01 10:00:00" if run.columns == "timestamps" else "")
