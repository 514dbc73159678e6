"""The ideal time of a sprayed message: a bound that a run comes close to and does not beat."""

from __future__ import annotations

import pytest

from weftwork.study.results.ideal import pipeline_ps, spread_ps

FAST, SLOW = (400_000_000_000, 20, 1_000), (100_000_000_000, 20, 5_000)


@pytest.mark.parametrize("sizes", [(4174,), (4190, 4174, 900)])
@pytest.mark.parametrize("middle", [0, 1, 50])
def test_on_one_path_no_bound_is_above_the_pipeline(sizes: tuple[int, ...], middle: int) -> None:
    count = middle if len(sizes) > 1 else 0
    for hops in ((FAST,), (FAST, SLOW), (SLOW, FAST), (FAST, SLOW, FAST, (0, 0, 700))):
        exact = pipeline_ps(sizes, count, hops)
        bound = spread_ps(sizes, count, tuple((hop,) for hop in hops))
        assert 0 <= exact - bound <= len(hops) * 2 * 8 * 4210 * 10  # two packets of 10 ps a bit for each hop


def test_links_side_by_side_add_up_until_the_host_is_the_slowest() -> None:
    sizes, middle = (4190, 4174, 900), 100
    times = [spread_ps(sizes, middle, ((FAST,), (SLOW,) * links, (FAST,))) for links in (1, 2, 4, 8)]
    assert times[0] / times[1] == pytest.approx(2, rel=0.05)
    assert times[1] / times[2] == pytest.approx(2, rel=0.05)
    assert times[2] == times[3]
