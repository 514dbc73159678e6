"""Who takes part in a crossing, and how each has to be carried."""

from __future__ import annotations

from weftwork.study.crossing.contenders import (
    Balancer,
    contender_of,
)  # fmt: skip

ECMP = Balancer(name="ecmp")


def test_losses_are_not_prevented_where_a_control_hears_by_them() -> None:
    assert {contender_of(name, ECMP, "all").carried for name in ("reno", "cubic", "bbr", "bbr3", "vivace")} == {"drops"}
