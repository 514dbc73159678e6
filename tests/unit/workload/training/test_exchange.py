"""How many copies of a token are sent, against every choice of experts one by one.

Each of k choices falls on one of n ranks, all alike. Of NCCL's all-to-all each choice is a copy. DeepEP and HybridEP
send one copy to each rank of the own domain that is chosen, and one to each other domain that has a chosen rank: to the
rank there with the sender's place, which passes it on to the other chosen ones.
"""

from __future__ import annotations

from itertools import product

import pytest

from weftwork.workload.training.exchange import ExchangeShares, deduplicated


def counted(ranks: int, domain: int, chosen: int, place: int = 0) -> ExchangeShares:
    """Expected copies of one sender's token over NVLink and over NICs, over those of an all-to-all."""
    plain = {"local": 0, "network": 0}
    once = {"local": 0, "network": 0}
    for choice in product(range(ranks), repeat=chosen):
        for rank in choice:
            if rank // domain != place // domain:
                plain["network"] += 1
            elif rank != place:
                plain["local"] += 1
        wanted = set(choice)
        for start in range(0, ranks, domain):
            inside = {rank for rank in wanted if rank // domain == start // domain}
            landing = start + place % domain
            is_far = start // domain != place // domain
            once["network"] += bool(inside) and is_far
            once["local"] += len(inside - {landing})
    network = once["network"] / plain["network"] if plain["network"] else 1.0
    local = once["local"] / plain["local"] if plain["local"] else 1.0
    return ExchangeShares(local=local, network=network)


@pytest.mark.parametrize(
    ("ranks", "domain", "chosen"),
    [(4, 4, 1), (4, 4, 3), (8, 8, 3), (4, 2, 2), (6, 2, 3), (6, 3, 4), (8, 4, 3), (6, 2, 4), (4, 1, 3), (6, 3, 2)],
)
def test_shares_are_those_of_all_choices(ranks: int, domain: int, chosen: int) -> None:
    found = deduplicated(members=ranks, per_domain=domain, smallest_domain=domain, chosen=chosen)
    wanted = counted(ranks, domain, chosen)
    if domain > 1:
        assert found.local == pytest.approx(wanted.local)
    assert found.network == pytest.approx(wanted.network)
    for place in (1, ranks - 1):  # every sender is like the first one
        assert counted(ranks, domain, chosen, place) == wanted


@pytest.mark.parametrize(("ranks", "domain"), [(8, 8), (16, 8), (64, 8), (64, 72)])
def test_more_choices_save_more_of_the_network_and_one_saves_nothing(ranks: int, domain: int) -> None:
    inside = min(ranks, domain)
    found = [
        deduplicated(members=ranks, per_domain=inside, smallest_domain=inside, chosen=chosen) for chosen in range(1, 17)
    ]
    assert found[0].network == pytest.approx(1)
    networks = [one.network for one in found]
    assert networks == sorted(networks, reverse=True)
    if ranks > inside:
        assert networks[-1] < networks[0]


def test_a_model_without_choices_copies_as_one_of_one() -> None:
    """`Model.experts_per_token` is 0 where there are no experts."""
    one = deduplicated(members=8, per_domain=8, smallest_domain=8, chosen=1)
    assert deduplicated(members=8, per_domain=8, smallest_domain=8, chosen=0) == one
    assert one.local == pytest.approx(1)
