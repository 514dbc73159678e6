"""``weftwork validate``: rules that make cases of rows, the shape of the scorecard, the command, and its page."""

from __future__ import annotations

from pathlib import Path

import pytest

from weftwork.study.validation import validate
from weftwork.study.validation.scorecard_page import line

PAGE = Path(__file__).resolve().parents[5] / "docs" / "models" / "scorecard.md"


P5 = [f"nccl-p5-{name}" for name in ("all-reduce", "all-gather", "all-to-all", "small")]


@pytest.mark.parametrize("key", ["sc21", "bridge-dense-nvfp4", "nccl-one-server", *P5])
def test_the_page_of_the_documents_has_the_line_of_a_set(key: str) -> None:
    """Some sets are worked out again; `weftwork validate --full --page docs/models/scorecard.md` writes it anew."""
    text = PAGE.read_text(encoding="utf-8")
    for score in validate.validate([key], is_full=True):
        assert f"| {' | '.join(line(score))} |" in text, score.key
