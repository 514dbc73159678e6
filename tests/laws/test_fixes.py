"""Whatever is wrong with a random scenario, what its mistakes propose leads to a run or to another mistake.

Each fix is applied alone: its mistake goes, and the value that it proposes is not refused at its own key. Then all are
applied together, until nothing is proposed: that comes in a few rounds, and no scenario comes twice.
Leaves out: whether the proposal is a good one; the kinds with what they should propose are in
`tests/runs/study/prepare/test_fixes.py`.
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from helpers.cases import Saw, case_count
from helpers.mended import Sets, failures
from helpers.tame_draws import nearly_right

from weftwork.base.errors import ConfigError
from weftwork.study.prepare.prepare import prepare

# Numbers that once failed: an odd radix with large servers, a collective on a fabric of one GPU,
# a slice that the cubes of a pod or its twist refuse.
KEPT = (491, 822, 2005, 3140, 4204, 4234)


def test_a_fix_leads_on(tmp_path: Path, saw: Saw) -> None:
    path = tmp_path / "nearly_right.yaml"
    kinds: Counter[str] = Counter()

    def refused(sets: Sets) -> ConfigError | None:
        try:
            prepare(path, sets or None)
        except ConfigError as error:
            kinds.update(type(mistake.fix).__name__ for mistake in error.mistakes if mistake.fix is not None)
            return error
        return None

    count = case_count(plain=60, deep=600)
    for number in (*KEPT, *range(count)):
        text = nearly_right(number)
        path.write_text(text, encoding="utf-8")
        wrong = failures(text, refused)
        assert not wrong, f"number {number}\n{text}\n" + "\n".join(map(str, wrong))
    saw(count + len(KEPT), ", ".join(f"{kind}: {times}" for kind, times in kinds.most_common()))
    assert kinds["str"] >= count // 4  # else the law holds of nothing
