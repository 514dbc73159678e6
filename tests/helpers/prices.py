"""What tests cost, in seconds of CPU time of one process, as measured and written down in tests/prices.json.

`python tests/steps/prices.py --write REPORT.xml...` writes the file from JUnit reports of pytest.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

PRICES = Path(__file__).parents[1] / "prices.json"


@functools.cache
def work_of_files() -> dict[str, float]:
    """Seconds by file of tests; a file that was never measured is missing."""
    if not PRICES.is_file():
        return {}
    return {file: float(work_s) for file, work_s in json.loads(PRICES.read_text(encoding="utf-8"))["files"].items()}
