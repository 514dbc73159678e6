"""Which cases of the deep steps are run at this commit, and which not: `.ci/run` calls this once, at its start.

What the change touches comes first, by the imports of the files of tests and the difference from the base; then a turn
that moves with the commit, so that any ten successive commits cover every case (tests/planner/plan.py).
A step about the core or the way in is left out where the change touches nothing of it and the commit is not its turn.
Usage: python tests/steps/plan.py [--base COMMIT] [--out FILE] [--list STEP]
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner.budgets import budgets
from planner.history import change_of, tracked_files
from planner.import_graph import ImportGraph
from planner.machine import slowness
from planner.plan import Plan, planned
from planner.prices import read_prices

if TYPE_CHECKING:
    from collections.abc import Iterable

ROOT = Path(__file__).parents[2]
SLOW = 1.25  # chosen: less is the noise of a busy machine


def main() -> int:
    """Print the plan, and write it where it is asked for."""
    arguments = _arguments()
    if arguments.pages:
        print(*pages_of(json.loads(arguments.pages.read_text(encoding="utf-8"))), sep="\n")
        return 0
    change = change_of(ROOT, arguments.base)
    files = tracked_files(ROOT)
    distances = None if change.changed is None else ImportGraph(ROOT, files).distances(change.changed)
    prices = read_prices()
    slow = slowness()
    if slow > SLOW:
        print(f"a fixed loop takes {slow:.1f} times as long as on the machine where budgets were measured:")
        print("budgets allow for it, and deep steps run fewer cases beyond the turn of the commit")
    work_s = {step.name: step.work_s / slow for step in budgets() if step.work_s}
    plans: dict[str, Plan] = {
        step: planned(
            prices.cases.get(step, ()),
            budget_s=work_s[step],
            place=change.place,
            distances=distances,
            examples=examples_of(change.changed or ()),
        )
        for step in work_s
    }
    if change.remark:
        print(change.remark)
    if change.changed is not None:
        print(f"{len(change.changed):,} files differ from the base; commit {change.place:,} of its history")
    for step, plan in plans.items():
        if not plan.chosen:
            print(f"{step}: no case has a price, so each runs at the turn of its name, or where its file is touched")
            continue
        print(
            f"{step}: {len(plan.chosen):,} of {len(plan.chosen) + len(plan.left_out):,} cases,"
            f" {plan.price_s:.0f} of {work_s[step]:.0f} s of work; the change touches {plan.touched:,},"
            f" of which {plan.touched_left_out:,} are left out"
        )
        if arguments.list == step:
            print(*(f"  runs     {name}" for name in plan.chosen), sep="\n")
            print(*(f"  left out {name}" for name in plan.left_out), sep="\n")
    left_out = [step.name for step in budgets() if not step.is_run(change)]
    for step in left_out:
        print(f"{step}: left out; no file of its list differs from the base, and this commit is not its turn")
    if arguments.out:
        document: dict[str, Any] = {
            "place": change.place,
            "slowness": slow,
            "left_out": left_out,
            "touched_files": sorted(distances or ()),
            "steps": {step: {"chosen": plan.chosen, "left_out": plan.left_out} for step, plan in plans.items()},
        }
        arguments.out.write_text(json.dumps(document), encoding="utf-8")
    return 0


def examples_of(changed: Iterable[str]) -> frozenset[str]:
    """Folders of examples in which files changed."""
    parts = (name.split("/") for name in changed)
    return frozenset(each[1] for each in parts if each[0] == "examples" and len(each) > 2)


def pages_of(document: dict[str, Any]) -> list[str]:
    """The pages whose commands are run: those of the plan, and those that have no price yet."""
    step = document["steps"]["outputs"]
    chosen = [name.partition("::")[0] for name in step["chosen"]]
    known = {*chosen, *(name.partition("::")[0] for name in step["left_out"])}
    pages = (path.relative_to(ROOT).as_posix() for path in sorted((ROOT / "docs").rglob("*.md")))
    strangers = [page for page in pages if page not in known]
    with_commands = [page for page in strangers if "<!-- run" in (ROOT / page).read_text(encoding="utf-8")]
    return [page for page in [*chosen, *with_commands] if (ROOT / page).is_file()]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--base", help="the commit to compare with, instead of that of .ci/base")
    parser.add_argument("--out", type=Path, help="a file for the plan, which pytest --plan reads")
    parser.add_argument("--pages", type=Path, metavar="FILE", help="print the pages of docs that a plan chooses")
    parser.add_argument("--list", metavar="STEP", help="print the names of the cases of a step")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
