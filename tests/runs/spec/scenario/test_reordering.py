"""Path and port selections that bring packets out of order are refused where the receiver discards what comes early."""

from pathlib import Path
from typing import Any

import pytest

from weftwork.base.errors import ConfigError, Mistake
from weftwork.base.user_code import UserCode
from weftwork.spec.scenario.scenario import loads
from weftwork.study.prepare.prepare import check_transport

KNOWN = {"congestion_control": ("dcqcn",), "path_selection": ("ecmp", "spray"), "port_selection": ("ecmp", "spray")}
SMALL = """schema: 3
name: small
fabric: {topology: fat-tree, tiers: 3, radix: 4, link_rate: 100Gbps}
traffic: {pattern: permutation, size: 2MiB}
"""


def mistakes_of(text: str, **arguments: Any) -> list[Mistake]:
    with pytest.raises(ConfigError) as caught:
        loads(text, known=KNOWN, check_transport=check_transport, **arguments)
    return list(caught.value.mistakes)


def test_spraying_is_refused_unless_tolerated_or_forced() -> None:
    spray = {"transport.load_balancing": "switch-spray"}
    judged: dict[str, Any] = {"known": KNOWN, "check_transport": check_transport}
    (told,) = mistakes_of(SMALL, overrides=spray)
    assert "'spray' brings packets out of order, which go-back-n takes for losses; set" in told.text
    (told,) = mistakes_of(SMALL, overrides={**spray, "transport.recovery": "timeout"})
    assert "out of order, which the receiver discards; set" in told.text
    assert loads(SMALL, overrides={**spray, "transport.force": "true"}, **judged).transport.force
    tolerant = loads(SMALL, overrides={**spray, "transport.reorder_tolerant": "true"}, **judged)
    assert tolerant.transport.reorder_window_packets == 1_024
    repeating = loads(SMALL, overrides={**spray, "transport.recovery": "selective-repeat"}, **judged)
    assert repeating.transport.port_selection.name == "spray"


OWN = """from weftwork.policies.interface import Candidate, PortSelection, PortSignal


class Params: ...


class State: ...


def step(params: Params, state: State, signal: PortSignal, candidates: list[Candidate]) -> None:
    signal.choice = 0


PLUGIN = PortSelection(params=Params, state=State, step=step, source="a test", WORDS)
"""


@pytest.mark.parametrize("words", ["reorders='always'", 'needs=frozenset({"reorder-tolerance"})'])
def test_a_policy_of_the_users_own_is_judged_by_what_it_says_of_itself(words: str, tmp_path: Path) -> None:
    for name, says in (("mine", words), ("orderly", "reorders='on-move'")):
        (tmp_path / f"{name}.py").write_text(OWN.replace("WORDS", says))
    text = SMALL + "transport:\n  mtu: 9\n  port_selection: ./NAME.py\n"
    (_, told) = mistakes_of(text.replace("NAME", "mine"), directory=tmp_path)
    assert (told.path, told.line) == ("transport.port_selection", 7)
    assert told.text.startswith("'mine' brings packets out of order")
    (told,) = mistakes_of(text.replace("NAME", "orderly"), directory=tmp_path)
    assert told.path == "transport.mtu"
    (told,) = mistakes_of(text.replace("NAME", "mine"), directory=tmp_path, user_code=UserCode.TOPOLOGY)
    assert told.path == "transport.mtu"
