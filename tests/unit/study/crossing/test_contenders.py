"""Who takes part in a crossing, and how each has to be carried."""

from __future__ import annotations

import pytest

from weftwork.base.errors import ConfigError
from weftwork.policies.load import load, policy_names
from weftwork.spec.crossing import Setting
from weftwork.spec.scenario.choices import SCHEMES
from weftwork.study.crossing.contenders import (
    CONTROLS_WITH_ALL,
    Balancer,
    balancers_of,
    contender_of,
    first_round,
    transport_keys,
)  # fmt: skip
from weftwork.study.crossing.settings import HOSTS, WORKLOADS, overrides_of, scenario_file, settings_of
from weftwork.study.prepare.prepare import read_scenario

CONTROLS = policy_names("congestion_control")


BALANCERS = balancers_of(policy_names("path_selection"), policy_names("port_selection"), tuple(SCHEMES))


ECMP = Balancer(name="ecmp")


PLAIN = settings_of(("mixed",))[0]


def test_every_policy_of_the_catalogue_is_a_balancer_once() -> None:
    names = [one.name for one in BALANCERS]
    assert len(names) == len(set(names))
    assert {one.path_selection for one in BALANCERS} == set(policy_names("path_selection"))
    assert {one.port_selection for one in BALANCERS} == set(policy_names("port_selection"))


@pytest.mark.parametrize("control", CONTROLS)
def test_every_control_is_read_with_what_it_needs(control: str) -> None:
    contender = contender_of(control, ECMP, "controls")
    scenario = read_scenario(scenario_file(PLAIN), transport_keys(contender, control))
    transport = scenario.transport
    needs = load("congestion_control", control).plugin.needs
    assert (transport.flow_control == "pfc") == (contender.carried == "PFC")
    assert bool(transport.trimming) == ("trimming" in needs)


@pytest.mark.parametrize("control", CONTROLS_WITH_ALL)
@pytest.mark.parametrize("balancer", BALANCERS, ids=lambda one: one.name)
def test_every_balancer_is_read_with_three_controls(control: str, balancer: Balancer) -> None:
    contender = contender_of(control, balancer, "balancers")
    scenario = read_scenario(scenario_file(PLAIN), transport_keys(contender, control))
    assert scenario.transport.path_selection.name == balancer.path_selection
    assert scenario.transport.port_selection.name == balancer.port_selection
    assert (scenario.fabric.engineering is not None) == bool(balancer.scheme)


@pytest.mark.parametrize("setting", settings_of(), ids=lambda one: one.name)
def test_every_setting_is_a_scenario_of_64_nic_ports(setting: Setting) -> None:
    scenario = read_scenario(scenario_file(setting), overrides_of(setting))
    assert scenario.fabric.gpus == HOSTS  # a NIC port for each
    assert len(scenario.faults) == setting.is_failed


def test_the_first_round_begins_with_the_base_and_has_each_pair_once() -> None:
    pairs = [(control, one.name) for control, one, _ in first_round(CONTROLS, BALANCERS, is_all=False)]
    assert pairs[0] == ("dcqcn", "ecmp")
    assert len(pairs) == len(set(pairs))
    assert {(control, name) for control in CONTROLS for name in ("ecmp", "spray")} <= set(pairs)
    assert {(control, one.name) for control in CONTROLS_WITH_ALL for one in BALANCERS} <= set(pairs)
    everything = [(control, one.name) for control, one, _ in first_round(CONTROLS, BALANCERS, is_all=True)]
    assert sorted(everything) == sorted((control, one.name) for control in CONTROLS for one in BALANCERS)


def test_an_unknown_workload_is_refused_with_the_nearest() -> None:
    with pytest.raises(ConfigError) as caught:
        settings_of(("mixd", "all-reduce", "trianing"))
    assert [one.fix for one in caught.value.mistakes] == ["mixed", "training"]
    assert [one.workload for one in settings_of(("training",))] == ["training", "training"]
    assert len(settings_of()) == 2 * len(WORKLOADS)
