"""Facts that a text of nccl-tests states, against the question and the server: agreement, or a mistake there."""

from __future__ import annotations

from dataclasses import replace

import pytest
from helpers.nccl_texts import H100, Written, tagged, text_of

from weftwork.base.errors import ConfigError
from weftwork.study.validation.foreign_texts import ACCEPTED, foreign_mistake
from weftwork.study.validation.nccl_rows import NcclAsked, NcclRows, read_nccl_rows
from weftwork.study.validation.nccl_streams import has_nccl_tests

TEN_GPUS = Written(hosts=2, host_gpus=5)
TRAYS = Written(hosts=18, host_gpus=4, gpu="NVIDIA GB200", has_name=False)


def read(lines: list[str], **asked: object) -> NcclRows:
    return read_nccl_rows("\n".join(lines), NcclAsked(**{"node": "dgx-h100", **asked}), source="f")  # type: ignore[arg-type]


def mistakes(lines: list[str], **asked: object) -> list[tuple[int | None, str, str, str | None]]:
    with pytest.raises(ConfigError) as wrong:
        read(lines, **asked)
    return [(one.line, one.path, one.text, one.fix) for one in wrong.value.mistakes]


def test_two_hosts_with_one_gpu_each_are_no_server_with_two_gpus() -> None:
    ((line, path, text, _),) = mistakes(text_of(Written(hosts=2, host_gpus=1)))
    assert (line, path) == (6, "rank")
    assert "2 hosts with 1 GPU each (node-0, node-1); 'dgx-h100' has 8 GPUs" in text


@pytest.mark.parametrize(
    ("run", "asked", "line", "path", "words"),
    [
        (Written(), {"node": "dgx-a100"}, 6, "--node", "GPUs a100, but the text lists NVIDIA H100 80GB HBM3; servers"),
        (Written(gpu="NVIDIA A100-PCIE-40GB"), {}, 6, "--node", "no server of the catalogue has it"),
        (Written(gpu="NVIDIA H100 PCIe"), {}, 6, "--node", "servers with it are pcie-h100"),
        (Written(gpu="NVIDIA A40"), {"node": None}, None, "--node", "lists NVIDIA A40, which no server"),
        (Written(), {"node": None}, None, "--node", "with NVIDIA H100 80GB HBM3: dgx-h100, p5, azure-nd-h100-v5"),
        (Written(), {"node": "dgx-h10"}, None, "--node", "found 'dgx-h10', wanted dgx-a100"),
        (Written(), {"gpus": 16}, 13, "--gpus", "found 16, but the text lists 8 ranks up to rank 7"),
        (Written(), {"operation": "all-gather"}, 2, "--operation", "the text is of all_reduce_perf"),
        (Written(), {"operation": "all-to-al"}, None, "--operation", "wanted all-reduce, all-gather"),
        (Written(has_name=False), {"operation": "all-gather"}, 19, "--operation", "fit all_reduce_perf (all-reduce)"),
        (Written(has_name=False), {}, None, "--operation", "its columns fit all_reduce_perf"),
        (Written(has_ranks=False), {}, None, "--gpus", "no line for each rank"),
        (TEN_GPUS, {}, 6, "rank", "2 hosts with 5 GPUs each"),
        (Written(host_gpus=9), {}, 6, "rank", "9 ranks on one host, but a server 'dgx-h100' has 8 GPUs"),
        (Written(host_gpus=1), {}, 6, "rank", "lists one rank, which sends nothing"),
        (Written(hosts=25, host_gpus=4, gpu="NVIDIA GB200"), {"node": "gb200-nvl72"}, 6, "rank", "wanted at most 72"),
    ],
)
def test_a_contradiction_is_refused_at_its_line(
    run: Written, asked: dict[str, object], line: int | None, path: str, words: str
) -> None:
    found = [each for each in mistakes(text_of(run), **asked) if each[1] == path]
    assert len(found) == 1
    assert found[0][0] == line
    assert words in found[0][2]


@pytest.mark.parametrize(
    ("program", "says"),
    [
        ("sendrecv", "a ring of sends"), ("broadcast", "a broadcast"), ("reduce", "a reduction of all ranks to one"),
        ("gather", "a gather"), ("scatter", "a scatter"), ("hypercube", "an all-gather by pairs"),
        ("alltoallv", "an all-to-all with a size for each pair"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("operation", [None, "all-reduce"])
def test_a_program_without_an_operation_here_says_what_it_measures(
    program: str, says: str, operation: str | None
) -> None:
    lines = [line.replace("all_reduce_perf", f"{program}_perf") for line in text_of(Written())]
    ((line, path, text, fix),) = mistakes(lines, operation=operation)
    assert (line, path, fix) == (2, "program", None)
    assert f"{program}_perf measures {says}" in text
    assert "wanted all_reduce_perf (all-reduce), all_gather_perf" in text


def test_a_program_that_nobody_knows_is_no_all_reduce() -> None:
    lines = [line.replace("all_reduce_perf", "my_own_perf") for line in text_of(Written())]
    ((line, path, text, _),) = mistakes(lines)
    assert (line, path) == (2, "program")
    assert "'my_own'" in text


def test_a_name_that_the_columns_deny_is_refused() -> None:
    lines = [line.replace("all_reduce_perf", "all_gather_perf") for line in text_of(Written())]
    ((line, path, text, _),) = mistakes(lines)
    assert (line, path) == (20, "program")
    assert "its columns fit all_reduce_perf" in text


def test_the_operation_is_suggested_by_the_columns() -> None:
    ((_, _, _, fix),) = mistakes(text_of(Written(has_name=False)))
    assert fix == "all-reduce"
    ((_, _, text, fix),) = mistakes(text_of(Written(has_name=False, program="reduce_scatter")))
    assert fix == "reduce-scatter"
    ((_, _, text, fix),) = mistakes(text_of(Written(has_name=False, program="all_gather")))
    assert fix is None  # the columns of an all-to-all are the same
    assert "all_gather_perf (all-gather), alltoall_perf (all-to-all)" in text


def test_a_command_names_the_program_of_the_run_behind_it() -> None:
    runs = [
        ["mpirun -np 8 ./build/all_gather_perf -b 1M", *text_of(Written(has_name=False, program="all_gather"))],
        ["srun ./alltoall_perf", *text_of(Written(has_name=False, program="alltoall"))],
    ]
    found = read([*runs[0], *runs[1]])
    assert [row.cells["operation"] for row in found.rows] == ["all-gather"] * 3 + ["all-to-all"] * 3


def test_trays_of_one_domain_are_read_and_what_is_assumed_is_said() -> None:
    found = read(text_of(TRAYS), node="gb200-nvl72", operation="all-reduce")
    assert {row.cells["gpus"] for row in found.rows} == {72}
    assert "assumed: these 18 hosts are 1 NVLink domain of gb200-nvl72; the text does not say it" in found.notes
    racks = replace(TRAYS, hosts=36)
    assert len(read(text_of(racks), node="gb200-nvl72", operation="all-reduce").rows) == 3


def test_half_of_a_row_is_told_by_its_place() -> None:
    """MSCCL++ prints the half in place first; a lone half stands below its own head."""
    head = [
        "# Initializing MSCCL++",
        "#                                    in-place                       out-of-place          ",
        "#       size         count     time   algbw   busbw  #wrong     time   algbw   busbw  #wrong",
        "#        (B)    (elements)     (us)  (GB/s)  (GB/s)            (us)  (GB/s)  (GB/s)",
    ]
    lone = "  1073741824      33554432                                    7186.2  149.42  130.74      0"
    first = "  1073741824      33554432   8000.0  134.22  117.44      0"
    asked = {"operation": "all-gather", "gpus": 8}
    assert read([*head, lone], **asked).rows[0].cells["time_us"] == 7186.2
    found = read([*head, first], **asked)
    assert found.rows[0].cells["time_us"] == 8000.0
    assert any("in place" in note for note in found.notes)
    assert any("MSCCL++" in note for note in found.notes)
    assert read([*head, first + lone[len(first) :]], **asked).rows[0].cells["time_us"] == 7186.2
    ((_, path, text, _),) = mistakes([*head, lone], gpus=8)
    assert path == "--operation"
    assert "all_reduce_perf (all-reduce), all_gather" not in text.split(";")[1]
    ((line, path, _, _),) = mistakes([head[0], *head[2:], lone], **asked)
    assert (line, path) == (2, "head")  # which half is which is not said


@pytest.mark.parametrize(
    ("old", "new", "line", "words"),
    [
        ("      0  ", "      3  ", 18, "3 wrong values at 1,048,576 B"),
        ("46.08", "0", 18, "a time above 0 us"),
        ("46.08", "nan", 18, "a time above 0 us"),
        ("46.08", "460.8", 18, "contradicts itself"),
        ("(us)", "(ms)", 17, "the unit ms"),
        ("time", "cputime", 16, "cputime"),
        ("values : 0 OK", "values : 7 FAILED", 21, "7 values out of bounds"),
        ("Group  0 Pid   1003", "Group  1 Pid   1003", 6, "2 groups of ranks"),
        ("device  3", "device  2", 9, "device 2 of node-0 is listed by line 8 too"),
        ("nThread 1 nGpus 1", "nThread 1 nGpus 3", 13, "make 3 in each process"),
        ("Rank  3", "Rank  x3", None, ""),
        ("Rank  3 Group", "Rank  3 Group x", 9, "a rank with its Pid"),
    ],
)
def test_a_line_that_cannot_be_is_refused(old: str, new: str, line: int | None, words: str) -> None:
    lines = text_of(Written())
    place = next(number for number, text in enumerate(lines) if old in text)
    lines[place] = lines[place].replace(old, new, 1)
    found = mistakes(lines)
    if line is not None:
        assert (line, True) in [(each[0], words in each[2]) for each in found]


def test_ranks_that_are_not_listed_are_asked_for() -> None:
    lines = [line for line in text_of(Written(hosts=2)) if not any(f"Rank {rank:2} " in line for rank in range(1, 7))]
    ((line, path, text, _),) = mistakes(lines)
    assert (line, path) == (15, "--gpus")
    assert "lists rank 15, but not 1 to 6" in text
    found = read(lines, gpus=16)
    assert found.rows[0].cells["gpus"] == 16
    assert any("leaves out 6" in note for note in found.notes)
    assert "found 12" in mistakes(lines, gpus=12)[0][2]


def test_processes_that_are_each_a_run_of_their_own_are_no_run() -> None:
    """nccl-tests built without MPI prints a table for each process, all of rank 0."""
    lines = [line for rank in range(3) for line in tagged(text_of(Written(host_gpus=1)), f"[1,{rank}]<stdout>:")]
    found = mistakes(lines)
    assert [each[1] for each in found] == ["rank"] * 3
    assert all("lists one rank" in each[2] for each in found)


def test_a_row_whose_halves_have_a_tag_each_is_whole() -> None:
    lines = tagged(text_of(Written()), "[1,0]<stdout>:")
    place = next(number for number, line in enumerate(lines) if "46.08" in line)
    lines[place] = lines[place].replace("  46.08", "[1,0]<stdout>:  46.08")
    assert read(lines).rows[0].cells["time_us"] == 46.08


@pytest.mark.parametrize("cut", ["# Collective test starting", "#  Rank  3", "#       size"])
def test_two_runs_in_each_other_are_refused(cut: str) -> None:
    """The second run begins at several places inside the first."""
    first, second = text_of(Written()), text_of(Written(first_host=5, program="all_gather"))
    place = next(number for number, line in enumerate(first) if line.startswith(cut))
    found = mistakes([*first[: place + 1], *second[:10], *first[place + 1 :], *second[10:]])
    assert any("mixed" in each[2] or "another run" in each[2] for each in found)
    assert all(each[0] is not None for each in found)


def test_rows_of_two_runs_one_after_the_other_are_refused() -> None:
    """Both heads are one, as where equal lines are told once."""
    lines = text_of(Written())
    row = next(number for number, line in enumerate(lines) if "46.08" in line)
    doubled = [line for text in lines[row : row + 3] for line in (text, text)]
    ((line, path, text, _),) = mistakes([*lines[:row], *doubled, *lines[row + 3 :]])
    assert (line, path) == (row + 2, "row")
    assert "rising sizes" in text


def test_a_sweep_that_is_repeated_is_one_run() -> None:
    lines = text_of(Written())
    row = next(number for number, line in enumerate(lines) if "46.08" in line)
    assert len(read([*lines[: row + 3], *lines[row : row + 3], *lines[row + 3 :]]).rows) == 6
    one = [*lines[: row + 1], lines[row], *lines[row + 3 :]]
    assert len(read(one).rows) == 2


def test_what_the_text_says_of_its_rows_is_compared_with_them() -> None:
    lines = [
        line.replace("minBytes 1048576 maxBytes 268435456", "minBytes 8 maxBytes 64") for line in text_of(Written())
    ]
    lines.append("# Avg bus bandwidth    : 999.5 ")
    notes = read(lines[:-2] + lines[-1:]).notes
    assert any("was asked for 8 to 64 B" in note for note in notes)
    assert any("999.5 GB/s as the text states it" in note for note in notes)
    assert read(text_of(Written())).notes == (
        f"read from line 1 on: all_reduce_perf, 1 host with 8 GPUs (node-0) ({H100}), 3 rows",
    )


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        ("\n# OSU MPI-CUDA Allreduce Latency Test v7.3\n# Size  Avg Latency(us)\n1  12.71", 2, "OSU Micro-Benchmarks"),
        ("#bytes #repetitions  t_min[usec]", 1, "Intel MPI Benchmarks"),
        ("-----\n #bytes     #iterations    BW peak[MB/sec]\n 65536  5000  23450.11", 2, "ib_write_bw"),
        ('{"version":2,"args":["./build/all_reduce_perf"],"nccl_version":22807}', 1, "option -J"),
        ("| Size | Time (us) | AlgBW (GB/s) |\n| 1 MiB | 12.1 | 86.7 |", 1, "benchmark in Python"),
        ("node-0:21:21 [0] NCCL INFO Bootstrap : Using eth0", 1, "NCCL_DEBUG"),
        ("mpirun ./build/all_reduce_perf: command not found", 1, "all_reduce_perf, and nothing that it prints"),
    ],
)
def test_outputs_of_other_programs_are_named_and_get_the_forms_that_are_read(text: str, line: int, words: str) -> None:
    found = foreign_mistake(text)
    assert found is not None
    assert found.line == line
    assert words in found.text
    assert found.text.endswith(f"wanted {ACCEPTED}")
    assert not has_nccl_tests(text)


def test_a_table_with_an_unknown_head_is_nobody_elses_output() -> None:
    assert foreign_mistake("operation,size,time\nall-reduce,8,3.0") is None


@pytest.mark.parametrize("form", ["{number:6}\t{line}", "  12.{number:03} {line}", "L{number}: {line}"])
def test_lines_that_are_counted_are_one_stream(form: str) -> None:
    lines = [form.format(number=number, line=line) for number, line in enumerate(text_of(Written()), start=1)]
    assert [row.cells["time_us"] for row in read(lines).rows] == list(Written().times_us)
