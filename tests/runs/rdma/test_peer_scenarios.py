"""Every shipped scenario of the scripted peer, against Weftwork's own NIC, in virtual time."""

from __future__ import annotations

import pytest

from weftwork.rdma.peer.in_memory import SelfTest
from weftwork.rdma.peer.judge import Result, judge
from weftwork.rdma.peer.reading import find_script, read_script, scenario_names
from weftwork.rdma.peer.script import PeerStep, RuleKeys
from weftwork.spec.scenario.kinds import Choice
from weftwork.spec.scenario.rows import rows_of

NAMES = scenario_names()


@pytest.mark.parametrize("name", NAMES)
def test_the_own_nic_reacts_as_specified(name: str) -> None:
    script = read_script(find_script(name))
    assert script.name == name
    test = SelfTest(script)
    assert test.run(), "the connection did not end"
    judgements = judge(script, *test.reports())
    assert [one for one in judgements if one.result is not Result.MET] == []


def test_there_are_scenarios_of_every_kind_of_mischief() -> None:
    scripts = [read_script(find_script(name)) for name in NAMES]
    assert len(scripts) >= 60
    done = {rule.do for script in scripts for rule in script.rules} | {
        step.do for script in scripts for step in script.peer
    }
    kinds = (rows_of(RuleKeys)["do"].kind, rows_of(PeerStep)["do"].kind)
    possible = {word for kind in kinds if isinstance(kind, Choice) for word in kind.options}
    assert possible - done == {"wait"}
    assert all("IBTA" in script.clause for script in scripts)


def test_a_run_is_the_same_to_the_last_packet() -> None:
    script = read_script(find_script("random-loss"))
    first, second = SelfTest(script), SelfTest(script)
    assert first.run()
    assert second.run()
    assert first.reports() == second.reports()
    assert first.now_ps == second.now_ps
