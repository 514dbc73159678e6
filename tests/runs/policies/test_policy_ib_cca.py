"""InfiniBand congestion control against its table, worked out by hand, and N senders at one port."""

import pytest
from helpers.both import both
from helpers.tiny import Message, packet_input_of, sends, star
from helpers.watched import RATE_BPS, watch

from weftwork.base.clock import MS_PS, US_PS
from weftwork.policies.load import load
from weftwork.spec.device import Ecn, Switch


@pytest.mark.parametrize(("variant", "index_of_one"), [("mellanox", 8), ("whole-steps", 1)])
@pytest.mark.parametrize("senders", [4, 8])
def test_n_senders_stand_near_index_n_minus_1_and_share_the_link(senders: int, variant: str, index_of_one: int) -> None:
    """The index is that of IRD = N - 1; the first 20 ms are those in which it comes down from the limit."""
    seen = watch("ib-cca", senders, 40 * MS_PS, variant=variant, state=("ccti",), every_ps=100 * US_PS)
    settled_ps = 20 * MS_PS
    ccti = float(seen.values("ccti", since_ps=settled_ps).mean())
    assert ccti == pytest.approx((senders - 1) * index_of_one, rel=0.12)
    assert seen.jain(settled_ps) > 0.97
    assert sum(seen.goodputs_bps(settled_ps)) > 0.93 * RATE_BPS  # headers take 2 %


def test_without_marks_nothing_is_held_back() -> None:
    quiet = Ecn(kmin_bytes=60_000_000, kmax_bytes=60_000_000)
    seen = watch("ib-cca", 4, 2 * MS_PS, ecn=quiet, state=("ccti",))
    assert float(seen.values("ccti").max()) == 0.0


@pytest.mark.parametrize("variant", ["mellanox", "whole-steps"])
def test_both_engines_agree_on_an_incast(variant: str) -> None:
    device = Switch(ecn=Ecn(kmin_bytes=20_000, kmax_bytes=80_000))
    messages = [Message(source=source, destination=4, size_bytes=400_000) for source in range(4)]
    control = load("congestion_control", "ib-cca", variant=variant)
    outcome = both(packet_input_of(star(5, switch=device), sends(5, messages), congestion_control=control))
    assert outcome.counters["cnps_sent"] >= 4  # each sender hears of it
    assert (outcome.messages["delivered_at_ps"] > 0).all()
