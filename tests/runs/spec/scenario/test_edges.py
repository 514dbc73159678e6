"""The last value that a key allows and the first that it does not; a bound that has a reason has it beside it."""

from __future__ import annotations

import pytest

from weftwork.base.errors import ConfigError
from weftwork.base.fix import SetKey, changes_of
from weftwork.hardware.catalogue import nodes
from weftwork.spec.scenario.scenario import Scenario, loads

TRAFFIC = "schema: 3\nfabric: {radix: 4, link_delay: 300ns}\ntraffic: {pattern: permutation, size: 1MiB}\n"
# one server of 8 GPUs, the first and the last of which two jobs want
JOBS = (
    "schema: 3\nfabric: {topology: rail-optimized, gpus: 16, node: dgx-h100, rails: 8}\njobs:\n"
    "  - {name: a, model: llama-3-8b, tensor: 4, gpus: 8, global_batch: 8}\n"
    "  - {name: b, model: llama-3-8b, tensor: 4, gpus: 4, first_gpu: FIRST, global_batch: 8}\n"
)
ONE_JOB = (
    "schema: 3\nfabric: {topology: rail-optimized, gpus: 16, node: dgx-h100, rails: 8}\n"
    "training: {model: llama-3-8b, tensor: 4, global_batch: 8}\n"
)
EDGES = [
    # IBTA vol. 1: the retry count of a queue pair has three bits
    ("transport.retry_limit", "7", "8"),
    # IEEE 802.1Q: a priority has three bits
    ("transport.data_priority", "7", "8"),
    # IBTA vol. 1, table 45: no code stands for more credits
    ("transport.end_to_end_credits", "32768", "32769"),
    # IBTA vol. 1: path MTUs
    ("transport.mtu", "256", "255"),
    ("transport.mtu", "4096", "4097"),
    ("transport.timeout", "1us", "999999ps"),
    ("transport.interframe", "1000B", "1001B"),
    ("transport.ack_every", "1", "0"),
    ("transport.queue_pairs", "256", "257"),
]


def read(text: str, **overrides: str) -> Scenario:
    return loads(text, nodes=nodes(), overrides=overrides)


def mistakes(text: str) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        read(text)
    return [mistake.path for mistake in caught.value.mistakes]


@pytest.mark.parametrize(("key", "last", "beyond"), EDGES)
def test_a_bound_is_allowed_and_what_lies_beyond_is_not(key: str, last: str, beyond: str) -> None:
    read(TRAFFIC, **{key: last})
    with pytest.raises(ConfigError) as caught:
        read(TRAFFIC, **{key: beyond})
    assert [mistake.path for mistake in caught.value.mistakes] == [f"--set {key}"]


@pytest.mark.parametrize(("lasts", "is_allowed"), [("4999999ps", True), ("5us", False)])
def test_a_link_that_flaps_is_up_for_a_while_in_between(lasts: str, is_allowed: bool) -> None:  # noqa: FBT001 - a row says it
    text = f"{TRAFFIC}faults: [{{at: 1us, link: host0-leaf0, event: down, for: {lasts}, every: 5us, times: 2}}]\n"
    if is_allowed:
        assert read(text).faults[0].for_ps == 4_999_999
    else:
        assert mistakes(text) == ["faults.0.for"]


@pytest.mark.parametrize(("at", "is_allowed"), [("999999ps", True), ("1us", False)])
def test_a_fault_comes_before_the_end_of_the_run(at: str, is_allowed: bool) -> None:  # noqa: FBT001 - a row says it
    text = f"{TRAFFIC}engine: {{until: 1us}}\nfaults: [{{at: {at}, link: host0-leaf0, event: down}}]\n"
    if is_allowed:
        assert read(text).faults[0].at_ps == 999_999
    else:
        assert mistakes(text) == ["faults.0.at"]


@pytest.mark.parametrize(
    ("fidelity", "loss", "is_allowed"), [("packet", 1, True), ("flow", 0.999, True), ("flow", 1, False)]
)
def test_flows_cross_no_link_that_loses_all_packets(fidelity: str, loss: float, is_allowed: bool) -> None:  # noqa: FBT001 - a row says it
    """The fault is counted among those of the scenario, however often another one repeats, and the fix leads on."""
    flap = "{at: 1us, link: host1-leaf0, event: down, for: 1us, every: 5us, times: 2}"
    engine = f"{TRAFFIC}engine: {{fidelity: {fidelity}}}\n"
    text = f"{engine}faults: [{flap}, {{at: 1us, link: host0-leaf0, event: lossy, loss: {loss}}}]\n"
    if is_allowed:
        assert read(text).faults[1].loss == loss
        return
    with pytest.raises(ConfigError) as caught:
        read(text)
    (mistake,) = caught.value.mistakes
    assert (mistake.path, mistake.line) == ("faults.1.loss", 5)
    assert mistake.fix is not None
    sets = {change.path: change.value for change in changes_of(mistake.fix, mistake.path) if isinstance(change, SetKey)}
    assert read(text, **sets).faults[1].event == "down"


def test_links_of_hosts_have_the_delay_of_the_others_unless_they_have_their_own() -> None:
    assert read(TRAFFIC).fabric.host_link_delay_ps == 300_000
    own = read(TRAFFIC, **{"fabric.host_link_delay": "20ns"}).fabric
    assert (own.host_link_delay_ps, own.link_delay_ps) == (20_000, 300_000)


def test_two_jobs_share_no_gpu() -> None:
    assert [job.first_gpu for job in read(JOBS.replace("FIRST", "8")).jobs] == [0, 8]
    assert mistakes(JOBS.replace("FIRST", "7")) == ["jobs.1.first_gpu"]
    assert [job.first_gpu for job in read(JOBS.replace("FIRST", "12")).jobs] == [0, 12]
    assert mistakes(JOBS.replace("FIRST", "13")) == ["jobs.1.gpus"]


def test_a_straggler_is_a_gpu_of_the_fabric() -> None:
    assert read(f"{ONE_JOB}stragglers: [{{gpu: 15, factor: 1.5}}]\n").stragglers[0].gpu == 15
    assert mistakes(f"{ONE_JOB}stragglers: [{{gpu: 16, factor: 1.5}}]\n") == ["stragglers.0.gpu"]
