"""A job on each server of the catalogue gives an answer, which says where nobody has measured anything like it."""

from __future__ import annotations

import pytest
from helpers.gallery import Gallery

import weftwork
from weftwork.base.errors import ConfigError
from weftwork.base.fix import Settings
from weftwork.hardware.catalogue import SERVERS, gpu_caveats, node, server_gpu
from weftwork.study.prepare.prepare import prepare
from weftwork.topology.build import fabric_of

# of the devices without a measured run
NEW = [name for name in SERVERS if name.startswith(("mi3", "hls", "tpu", "trn", "hgx-h20", "pcie"))]
TORUS = {"tpu-v6e": "{topology: torus, shape: [4, 4], node: tpu-v6e}"}  # two dimensions
POD = {"topology": "tpu-pod", "slice": [2, 2, 4], "routing": "dimension-order"}
TRAINING = "training: {model: gpt-1.7b, gpus: 16, tensor: 4, micro_batch: 1, global_batch: 8}\n"


def fabric(name: str) -> str:
    if name in TORUS:
        return TORUS[name]
    if name.startswith("tpu"):
        return f"{{topology: tpu-pod, slice: [2, 2, 4], node: {name}}}"
    hosts = max(2, 16 // node(name).server.gpus)
    return f"{{topology: leaf-spine, leaves: 1, spines: 1, hosts_per_leaf: {hosts}, node: {name}}}"


@pytest.mark.parametrize("name", NEW)
def test_a_job_on_a_device_that_nobody_measured_has_an_answer_and_says_so(gallery: Gallery, name: str) -> None:
    chip = server_gpu(name)
    run: weftwork.Run = gallery.run(f"schema: 3\nfabric: {fabric(name)}\n{TRAINING}", what_if="none")
    assert 0 < run.value("iteration_ps") < 10**12
    assert 0 < run.value("mfu") < 1
    assert chip is not None
    interval = run.answer.took.interval
    assert interval is not None
    assert (interval.low, interval.high) == (None, None)
    assert interval.basis == (
        f"no measurement like this: the scorecard has no published time of dense models on {chip}"
    )
    assert {caveat.subject for caveat in run.caveats} >= set(gpu_caveats(chip))


@pytest.mark.parametrize("name", ["tpu-v5p", "tpu-v7"])
def test_a_pod_has_the_links_of_its_chips_and_not_those_of_the_generation_before(name: str) -> None:
    made = prepare({"fabric": {**POD, "node": name}, "traffic": {"pattern": "permutation"}})
    called = fabric_of(topology="tpu-pod", slice=(2, 2, 4), node=name)
    for one in (made.fabric, called):
        assert sorted({int(rate) for rate in one.links["rate_bps"]}) == [800 * 10**9, 4_800 * 10**9]
    plain = fabric_of(topology="tpu-pod", slice=(2, 2, 4))
    assert sorted({int(rate) for rate in plain.links["rate_bps"]}) == [400 * 10**9, 2_400 * 10**9]


def test_a_pod_of_two_dimensions_is_a_torus() -> None:
    made = fabric_of(topology="torus", shape=(4, 4), node="tpu-v6e")
    assert sorted({int(rate) for rate in made.links["rate_bps"]}) == [800 * 10**9, 3_200 * 10**9]


def test_rates_that_the_user_sets_stay() -> None:
    keys = {**POD, "node": "tpu-v7", "fabric_rate": "100Gbps"}
    made = prepare({"fabric": {**keys, "link_rate": "600Gbps"}, "traffic": {"pattern": "permutation"}})
    assert sorted({int(rate) for rate in made.fabric.links["rate_bps"]}) == [100 * 10**9, 600 * 10**9]


def refused(chip: str, **more: object) -> tuple[str, str, object]:
    fabric = {"topology": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 2, "node": "dgx-h100"}
    training = {"model": "gpt-1.7b", "tensor": 8, "global_batch": 8, "gpu": chip}
    with pytest.raises(ConfigError) as caught:
        prepare({"fabric": {**fabric, **more}, "training": training})
    (mistake,) = caught.value.mistakes
    return mistake.path, mistake.text, mistake.fix


def test_a_gpu_that_the_servers_cannot_hold_is_refused() -> None:
    path, text, fix = refused("mi300x")
    assert path == "training.gpu"
    assert text == (
        "found 'mi300x', wanted 'h100', the GPU of node 'dgx-h100'; mi300x-ubb holds 'mi300x', and plain holds any GPU"
    )
    assert fix == Settings((("fabric.node", "mi300x-ubb"),))
    assert refused("mi300x", node={"model": "dgx-h100", "slice": "1MiB"})[2] == Settings(
        (("fabric.node.model", "mi300x-ubb"),)
    )
    assert refused("tpu-v5p")[2] == "h100"  # a chip of a pod is no server of eight


def test_a_gpu_of_one_job_of_several_is_refused_too() -> None:
    fabric = {"topology": "leaf-spine", "leaves": 1, "spines": 1, "hosts_per_leaf": 2, "node": "dgx-a100"}
    job = {"model": "gpt-1.7b", "tensor": 8, "global_batch": 8, "gpus": 8}
    with pytest.raises(ConfigError, match=r"jobs\.1\.gpu  found 'h100', wanted 'a100'"):
        prepare({"fabric": fabric, "jobs": [{"name": "one", **job}, {"name": "two", "gpu": "h100", **job}]})


def test_a_gpu_on_a_fabric_of_python_is_refused_when_it_is_prepared() -> None:
    made = fabric_of(topology="leaf-spine", leaves=1, spines=1, hosts_per_leaf=2, node="dgx-h100")
    training = {"model": "gpt-1.7b", "tensor": 8, "global_batch": 8, "gpu": "mi300x"}
    with pytest.raises(ConfigError, match=r"training\.gpu  found 'mi300x', wanted 'h100'"):
        prepare({"fabric": {"topology": "leaf-spine", "hosts": 16, "radix": 64}, "training": training}, fabric=made)
