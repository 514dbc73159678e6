"""The page that compares TCP and RDMA: every column says what it is, and cited figures stay apart."""

from __future__ import annotations

import re
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from weftwork.report.figures.by_size import SizeLine, by_size
from weftwork.report.page_tcp import tcp_page, tcp_picture
from weftwork.report.tcp_cited import cited_facts, hardware_by_size
from weftwork.report.tcp_words import (
    ANSWER_LABELS,
    COPIES,
    answer_texts,
    cost_table,
    registration_table,
    remote_table,
    slower_counts,
    workload_table,
)
from weftwork.spec.tcp_comparison import WORKLOADS, TcpComparison, Workload

ROOT = Path(__file__).parents[3]
MARK = re.compile(r"\((measured|derived|cited)\)$")


@pytest.fixture(scope="module")
def result() -> TcpComparison:
    file = ROOT / "examples" / "rdma_and_tcp" / "measured.json"
    found: TcpComparison = TypeAdapter(TcpComparison).validate_json(file.read_bytes())
    return found


class Columns(HTMLParser):
    """The heading cells of all tables."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []
        self._is_inside = False

    def handle_starttag(self, tag: str, attrs: object) -> None:
        del attrs
        if tag == "th":
            self._is_inside = True
            self.found.append("")

    def handle_endtag(self, tag: str) -> None:
        self._is_inside &= tag != "th"

    def handle_data(self, data: str) -> None:
        if self._is_inside:
            self.found[-1] += data


def test_every_column_of_figures_says_whether_it_is_measured_derived_or_cited(result: TcpComparison) -> None:
    for workload in WORKLOADS:
        for table in (workload_table(result, workload), cost_table(result, workload)):
            assert all(MARK.search(name) for name in table.head[1:] if name != "way"), table.head
    for table in (remote_table(result), registration_table(result), COPIES):
        assert all(MARK.search(name) for name in table.head[1:]), table.head
    page = Columns()
    page.feed(tcp_page(result, "weftwork rdma compare-tcp"))
    for kind in ("measured", "derived", "cited"):
        assert any(name.endswith(f"({kind})") for name in page.found), kind
    assert "figure (cited)" in page.found


@pytest.mark.parametrize("workload", ["ping-pong", "stream"])
def test_a_cited_cell_is_the_published_figure_of_its_size_and_nothing_else(
    result: TcpComparison, workload: Workload
) -> None:
    table = workload_table(result, workload)
    assert table.head[-1] == "hardware, SEND (cited)"
    cells = {row[0]: row[-1] for row in table.rows}
    assert cells["64 B"] == {"ping-pong": "1.74 us", "stream": "4.12 Gb/s"}[workload]
    assert cells["1 MiB"] == {"ping-pong": "95.7 us", "stream": "95.4 Gb/s"}[workload]
    assert cells.get("1 B", "-") == "-"  # no such size was published


def test_hardware_has_no_figure_where_none_was_published(result: TcpComparison) -> None:
    assert not any("cited" in name for name in workload_table(result, "read of a value").head)


def test_the_answer_counts_the_comparisons_that_the_software_nic_loses(result: TcpComparison) -> None:
    sizes = {workload: len(result.sizes(workload)) for workload in WORKLOADS}
    compared = sizes["ping-pong"] + sizes["stream"] + 2 * sizes["read of a value"]
    assert slower_counts(result) == (compared, compared)
    texts = dict(zip(ANSWER_LABELS, answer_texts(result), strict=True))
    assert f"slower than TCP of the system in {compared} of {compared} comparisons" in texts["it costs"]
    assert "does not run the remote program" in texts["RDMA gives"]
    assert "answered 0 requests" in texts["measured"]
    assert "cited" in texts["hardware adds"]
    faster = tuple(
        replace(one, latency_p50_ns=1.0)
        if (one.workload, one.way, one.size_bytes) == ("ping-pong", "send", 64)
        else replace(one, goodput_bps=1e15)
        if (one.workload, one.way, one.size_bytes) == ("stream", "write", 64)
        else one
        for one in result.transfers
    )
    assert slower_counts(replace(result, transfers=faster)) == (compared - 2, compared)


def test_a_figure_that_was_read_second_hand_is_marked_unverified_on_the_page(result: TcpComparison) -> None:
    page = tcp_page(result, "weftwork rdma compare-tcp")
    doubtful = [one for one in cited_facts() if one.checked != "text"]
    assert {one.checked for one in cited_facts()} == {"text", "second-hand"}
    assert page.count("unverified") == len(doubtful) > 0
    for one in cited_facts():
        assert one.source.partition(",")[0] in page


def test_the_remote_program_does_nothing_for_a_read(result: TcpComparison) -> None:
    rows = {row[0].partition(" x ")[2] or row[0]: row for row in remote_table(result).rows}
    assert rows["READ"][1:3] == ("0", "0")
    assert rows["WRITE"][1:3] == ("0", "0")
    assert rows["TCP"][1] == "1,000"
    assert rows["TCP"][2] == rows["TCP"][5] == "-"
    assert rows["none"][6] == "0"


def test_the_page_is_one_file_that_loads_nothing_and_escapes_what_it_is_given(result: TcpComparison) -> None:
    machine = replace(result.machine, cpu="<script>alert(1)</script>")
    page = tcp_page(replace(result, machine=machine), "weftwork rdma compare-tcp -o '<b>.html'")
    assert "<script>alert" not in page
    assert "<b>.html" not in page
    assert not re.search(r"""(?:src|href)=["'](?!#)""", page)
    assert "@import" not in page
    assert "This measurement was quick" not in page
    assert "This measurement was quick" in tcp_page(replace(result, is_quick=True), "x")


def test_the_picture_has_both_themes_and_names_what_is_cited(result: TcpComparison) -> None:
    picture = tcp_picture(result)
    assert picture.startswith("<svg")
    assert "prefers-color-scheme:dark" in picture
    for name in ("TCP (measured)", "software NIC, WRITE (measured)", "hardware (cited)"):
        assert name in picture


def test_a_cited_line_is_cut_to_the_measured_sizes() -> None:
    chart = by_size(
        "t",
        [
            SizeLine(name="here", values={64: 2e6, 1024: 4e6}),
            SizeLine(name="there", values=dict.fromkeys((2, 64, 256, 1024, 1 << 20), 1e6), is_cited=True),
        ],
        "ps",
    )
    cited, _ = re.findall(r'class="s c2"[^>]* d="([^"]*)"', chart)[::-1]  # after that of the legend
    assert cited.count("L") == 2  # 64, 256 and 1,024 bytes
    assert 'class="dot c1"' in chart
    assert 'class="dot c2"' not in chart


def test_published_hardware_grows_with_size() -> None:
    points = [point for _, point in sorted(hardware_by_size().items())]
    assert len(points) == 23
    assert points[-1].latency_ns == 749_740
    assert max(point.goodput_bps for point in points) < 100e9
