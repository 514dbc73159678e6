"""The estimate of memory against the most that the process of each example has."""

import pytest
from run_memory import CASES, measured

FACTOR = 1.5  # chosen: what the issue of it asked; benchmarks/run_memory.py prints 0.91 to 1.09

# Hashed paths tell ranks apart that would else be one: how many is known only when the engine has folded the job, and
# `refuse_actors` refuses then what memory does not hold. What is told before is the least; the benchmark runs them.
TOLD_APART = ("examples/plan_405b/scenario.yaml",)


@pytest.mark.parametrize(
    ("name", "settings"), [(name, settings) for name, text, settings in CASES if not text and name not in TOLD_APART]
)
def test_the_memory_of_an_example_is_told_before_it_runs(name: str, settings: tuple[str, ...]) -> None:
    told, most = measured("", name, settings)
    assert told / most < FACTOR
    assert told / most > 1 / FACTOR
