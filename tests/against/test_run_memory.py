"""The estimate of memory against the most that the process of each example has."""

import pytest
from run_memory import CASES, measured

FACTOR = 1.5  # chosen: what the issue of it asked; benchmarks/run_memory.py prints 0.91 to 1.09

pytestmark = pytest.mark.deep


@pytest.mark.parametrize(("name", "settings"), [(name, settings) for name, text, settings in CASES if not text])
def test_the_memory_of_an_example_is_told_before_it_runs(name: str, settings: tuple[str, ...]) -> None:
    told, most = measured("", name, settings)
    assert 1 / FACTOR < told / most < FACTOR
