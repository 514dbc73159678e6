"""Write tests/prices.json: what each file of the test command and each case of a deep step costs, from JUnit reports.

A report comes from `pytest --junitxml=FILE`; its CPU seconds are those of tests/helpers/cpu_time.py. Prices are of one
machine and only their ratios and sums matter. A case keeps its turn; a new case takes the turn with the least work.
Usage: python tests/steps/prices.py [--tests REPORT] [--properties REPORT] [--truth REPORT] [--examples REPORT]
    [--pages LOG of python docs/outputs.py --check]
"""

from __future__ import annotations

import argparse
import datetime as dt
import os
import platform
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from collections import defaultdict
from dataclasses import replace
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

from planner.budgets import budgets
from planner.prices import read_prices, write_prices

ROOT = Path(__file__).parents[2]


def prices_of(report: Path) -> dict[str, float]:
    """CPU seconds by name of a test, as pytest names it.

    Raises
    ------
    SystemExit : the report has no CPU seconds
    """
    prices: dict[str, float] = {}
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - written by our own pytest
        seconds = [each.get("value") for each in case.iter("property") if each.get("name") == "cpu_s"]
        if seconds:
            prices[_node(case.get("classname", ""), case.get("name", ""))] = float(seconds[-1] or 0)
    if not prices:
        sys.exit(f"{report}: no test has the property cpu_s; make it with `pytest --junitxml={report}`")
    return prices


def prices_of_pages(report: Path) -> dict[str, float]:
    """CPU seconds by page, from what `python docs/outputs.py --check` printed."""
    lines = re.findall(r"^(docs/\S+\.md) +([0-9.]+) s$", report.read_text(encoding="utf-8"), re.MULTILINE)
    return {f"{page}::outputs": float(seconds) for page, seconds in lines if float(seconds) > 0}


def _node(classname: str, name: str) -> str:
    """The name of a test from the two names of JUnit: dots instead of slashes, the classes behind the file."""
    parts = classname.split(".")
    for count in range(len(parts), 0, -1):
        file = "/".join(parts[:count]) + ".py"
        if (ROOT / file).is_file():
            return "::".join([file, *parts[count:], name])
    return f"{classname}::{name}"


def main() -> int:
    """Write the file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    steps = [step.name for step in budgets() if step.work_s and step.name != "outputs"]
    for name in ("tests", "pages", *steps):
        parser.add_argument(f"--{name}", type=Path, metavar="REPORT")
    arguments = vars(parser.parse_args())
    head = subprocess.run(
        ["git", "-C", ROOT, "rev-parse", "--short=12", "HEAD"], capture_output=True, text=True, check=True
    )
    prices = replace(
        read_prices(),
        measured={
            "commit": head.stdout.strip(),
            "date": dt.datetime.now(tz=dt.UTC).date().isoformat(),
            "machine": f"{os.cpu_count()} cores, {platform.machine()}, Python {platform.python_version()}",
        },
    )
    if arguments["pages"]:
        prices = prices.with_cases("outputs", prices_of_pages(arguments["pages"]))
    if arguments["tests"]:
        files: dict[str, float] = defaultdict(float)
        for name, price_s in prices_of(arguments["tests"]).items():
            files[name.partition("::")[0]] += price_s
        prices = replace(prices, files=dict(files))
    for step in steps:
        if arguments[step]:
            prices = prices.with_cases(step, prices_of(arguments[step]))
    write_prices(prices)
    for step, cases in prices.cases.items():
        print(f"{step}: {len(cases):,} cases, {sum(case.price_s for case in cases):,.0f} s of CPU time")
    print(f"tests: {len(prices.files):,} files, {sum(prices.files.values()):,.0f} s of CPU time")
    return 0


if __name__ == "__main__":
    sys.exit(main())
