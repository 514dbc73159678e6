"""``weftwork rdma compare-tcp``: a quick measurement, a file of an earlier one, and files that are none."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.cli import main
from weftwork.report.tcp_words import ANSWER_LABELS
from weftwork.spec.tcp_comparison import WORKLOADS

MEASURED = Path(__file__).parents[3] / "examples" / "rdma_and_tcp" / "measured.json"


def said(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    with pytest.raises(SystemExit) as left:
        main(["rdma", "compare-tcp", *words])
    out, err = capsys.readouterr()
    return left.value.code if isinstance(left.value.code, int) else 0, out, err


def test_the_answer_comes_first_and_every_table_follows(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = said(capsys, "--from", str(MEASURED))
    lines = [line.rstrip() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert [line.partition("  ")[0] for line in lines[:4]] == list(ANSWER_LABELS)
    for title in (*WORKLOADS, "work at the remote end", "registration"):
        assert title in lines
    assert lines[-1] == "CPU time, system calls and copies of each message: -o page.html, or --json"


def test_reading_and_measuring_at_once_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = said(capsys, "--from", str(MEASURED), "--quick")
    assert code == 2
    assert "found both --from and --quick, wanted one" in err
