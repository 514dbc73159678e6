"""Texts of nccl-tests: what is read is what was written, or the text is refused with a line; never another exception.

Runs, tags of launchers, foreign lines, mixtures of two runs, missing lines and damaged characters are drawn.
"""

from __future__ import annotations

from dataclasses import replace

from helpers.nccl_texts import Written, tagged, text_of
from hypothesis import assume, example, given
from hypothesis import strategies as st

from weftwork.base.errors import ConfigError
from weftwork.study.validation.nccl_rows import NcclAsked, read_nccl_rows

TAGS = (
    "", "[1,0]<stdout>:", "[1,12]<stdout>: ", " 0: ", "12: ", "(pid=4711, ip=10.0.0.7) ", "[0] ", "> ", "    ",
    "(head, rank=0, pid=3808) [1,0]<stdout>:", "[pod/nccl-0-launcher/main] ", "2026-05-01T10:00:{}.123456789Z ",
    "2026-05-01T10:00:{}.12Z stdout F ", "May  1 10:00:{} node7 srun[99]: ", "node-7: ", "nccl-launcher main | ",
    "\x1b[36m(RayTrainWorker pid=7)\x1b[0m ", "[default0]:", "Fri May  1 10:00:{} 2026[1,0]<stdout>:", "gpu|0|",
)  # fmt: skip
FOREIGN = (
    "node-0:21:21 [0] NCCL INFO Bootstrap : Using eth0:10.0.0.1<0>", "", "Warning: Permanently added 'w-0' (ECDSA)",
    "NCCL version 2.29.3+cuda13.1", "rccl-tests: Version develop:33cc4df", "# a comment of somebody", "12 processes",
    "--------------------", "PMIx: 3 more", "real 0m3.1s",
)  # fmt: skip
OPTIONS = NcclAsked(node="dgx-h100")


@st.composite
def runs(draw: st.DrawFn) -> Written:
    """A run on whole servers of 8 H100."""
    sizes = sorted(draw(st.sets(st.integers(10, 34), min_size=1, max_size=6)))
    # at least three digits of bandwidth, as programs print them
    times = [draw(st.integers(3_000, 900_000)) / 100 for _ in sizes]
    return Written(
        program=draw(st.sampled_from(["all_reduce", "all_gather", "reduce_scatter", "alltoall"])),
        hosts=draw(st.integers(1, 3)),
        sizes_bytes=tuple(1 << size for size in sizes),
        times_us=tuple(times),
        columns=draw(st.sampled_from(["new", "old", "iterations", "timestamps"])),
        has_settings=draw(st.booleans()),
        is_checked=draw(st.booleans()),
    )


def told(refused: ConfigError) -> None:
    """Every mistake has a place and a text."""
    assert refused.mistakes
    assert all(mistake.path and mistake.text for mistake in refused.mistakes)


def read(lines: list[str], asked: NcclAsked = OPTIONS) -> list[tuple[str, int, int, float]] | None:
    """Rows of a text; None where it is refused, with a place and a text for each mistake."""
    try:
        found = read_nccl_rows("\n".join(lines), asked, source="f")
    except ConfigError as refused:
        told(refused)
        return None
    return [tuple(row.cells[key] for key in ("operation", "gpus", "size_bytes", "time_us")) for row in found.rows]


def rows_of(*written: Written) -> list[tuple[str, int, int, float]]:
    """What a reader has to find."""
    return [
        (run.program.replace("alltoall", "all-to-all").replace("_", "-"), run.ranks, size, time)
        for run in written
        for size, time in zip(run.sizes_bytes, run.times_us, strict=True)
    ]


@given(run=runs(), tag=st.sampled_from(TAGS), foreign=st.lists(st.tuples(st.integers(0, 60), st.sampled_from(FOREIGN))))
def test_what_is_read_is_what_was_written(run: Written, tag: str, foreign: list[tuple[int, str]]) -> None:
    lines = tagged(text_of(run), tag)
    for place, line in foreign:
        lines.insert(place, line)
    assert read(lines) == rows_of(run)


@given(first=runs(), second=runs(), tags=st.lists(st.sampled_from(TAGS), min_size=2, max_size=2))
def test_runs_that_follow_each_other_are_told_apart(first: Written, second: Written, tags: list[str]) -> None:
    lines = [*tagged(text_of(first), tags[0]), *tagged(text_of(second), tags[1])]
    assert read(lines) == rows_of(first, second)


@given(first=runs(), second=runs(), order=st.randoms(use_true_random=False))
def test_runs_of_two_tags_are_told_apart_however_they_are_mixed(first: Written, second: Written, order: object) -> None:
    left, right = tagged(text_of(first), "[1,0]<stdout>:"), tagged(text_of(second), "[2,0]<stdout>:")
    found = read(mixed(left, right, order))
    wanted = rows_of(first, second)
    assert found is not None
    assert sorted(found) == sorted(wanted)


@given(first=runs(), second=runs(), tag=st.sampled_from(TAGS), order=st.randoms(use_true_random=False))
def test_mixed_runs_of_one_tag_are_refused_or_read_as_written(
    first: Written, second: Written, tag: str, order: object
) -> None:
    assume("{}" not in tag)
    left, right = text_of(first), text_of(replace(second, first_host=7))
    found = read(tagged(mixed(left, right, order), tag))
    if found is not None:
        assert found in (rows_of(first, second), rows_of(second, first))


def mixed(left: list[str], right: list[str], order: object) -> list[str]:
    """Lines of both, each in its own order."""
    places = [0] * len(left) + [1] * len(right)
    order.shuffle(places)  # type: ignore[attr-defined]
    sources = (iter(left), iter(right))
    return [next(sources[place]) for place in places]


@given(run=runs(), tag=st.sampled_from(TAGS), gone=st.sets(st.integers(0, 80), max_size=6))
def test_with_lines_missing_no_other_row_is_read(run: Written, tag: str, gone: set[int]) -> None:
    lines = [line for number, line in enumerate(tagged(text_of(run), tag)) if number not in gone]
    for asked in (OPTIONS, NcclAsked(node="dgx-h100", gpus=run.ranks, operation=rows_of(run)[0][0])):
        found = read(lines, asked)
        if found is not None:
            assert set(found) <= set(rows_of(run))
            assert len(found) >= len(run.sizes_bytes) - len(gone)


@given(
    run=runs(),
    tag=st.sampled_from(TAGS),
    place=st.floats(0, 1, exclude_max=True),
    length=st.integers(0, 30),
    instead=st.text(max_size=12),
)
@example(run=Written(), tag="", place=0.0, length=0, instead="#  Rank ")
def test_a_damaged_text_is_rows_or_a_mistake(run: Written, tag: str, place: float, length: int, instead: str) -> None:
    text = "\n".join(tagged(text_of(run), tag))
    start = int(place * len(text))
    read((text[:start] + instead + text[start + length :]).splitlines())


@given(text=st.text(alphabet="# 01size countypemRank0[]()<>:\n", max_size=300))
def test_any_text_is_rows_or_a_mistake(text: str) -> None:
    read(text.splitlines())


@given(run=runs(), wrong=st.sampled_from(["--gpus", "--operation", "--node", "name"]), data=st.data())
def test_whoever_contradicts_the_text_is_refused(run: Written, wrong: str, data: st.DataObject) -> None:
    right = rows_of(run)[0][0]
    asked = {
        "--gpus": NcclAsked(node="dgx-h100", gpus=data.draw(st.integers(2, 99).filter(lambda n: n != run.ranks))),
        "--operation": NcclAsked(
            node="dgx-h100",
            operation=data.draw(
                st.sampled_from(["all-reduce", "all-gather", "reduce-scatter", "all-to-all"]).filter(
                    lambda name: name != right
                )
            ),
        ),
        "--node": NcclAsked(node=data.draw(st.sampled_from(["dgx-a100", "dgx-b200", "gb200-nvl72", "hgx-h800"]))),
        "name": OPTIONS,
    }[wrong]
    written = replace(run, program="all_reduce" if right != "all-reduce" else "all_gather") if wrong == "name" else run
    lines = text_of(written)
    if wrong == "name":
        assume(max(size / time for size, time in zip(run.sizes_bytes, run.times_us, strict=True)) > 1e3)
        lines = [line.replace(f"starting: {written.program}", f"starting: {run.program}") for line in lines]
    assert read(lines, asked) is None
