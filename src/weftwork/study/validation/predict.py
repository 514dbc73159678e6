"""How long one iteration takes: a model, a plan, a cluster and its software, by the flow engine.

The fabric has no bottleneck but the NICs: leaves and spines with as much bandwidth up as down, packets sprayed. What a
real fabric adds is a scenario's business; published iterations rarely say what theirs was.
Leaves out: everything random; jobs beside this one.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.errors import ConfigError, EngineError, Mistake
from weftwork.engine.flow import run as flow
from weftwork.engine.flow.lower import lower_flow
from weftwork.engine.flow.outcome import SPENT, FlowOutcome
from weftwork.hardware.catalogue import SERVERS, gpu, node
from weftwork.policies.load import load
from weftwork.spec.fabric import Fabric
from weftwork.spec.scenario.devices import NodeModel
from weftwork.spec.training import Model, Parallelism, Software
from weftwork.spec.transport import Transport
from weftwork.topology.build import fabric_of
from weftwork.workload.collectives.cost import collective_figures
from weftwork.workload.placement import packed
from weftwork.workload.training.communication import LABELS
from weftwork.workload.training.communication import Cluster as Machine
from weftwork.workload.training.programs import training_job

__all__ = ["Cluster", "Prediction", "predict"]

_LEAST_HOSTS: Final = 2  # of a fabric; a job of one server leaves the other one idle
_ITERATION_MARK: Final = "iteration"


@dataclass(frozen=True, kw_only=True, slots=True)
class Cluster:
    """What a job runs on.

    Attributes
    ----------
    node : server in the hardware catalogue
    gpus : of the job, which has the cluster to itself
    domain_gpus : GPUs of a server that are used, with as many of its NIC ports in proportion; 0: all
    """

    node: str
    gpus: int
    domain_gpus: int = 0

    def model(self) -> NodeModel:
        """The server, as far as it is used."""
        found = node(self.node)
        used, all_gpus = self.domain_gpus, found.server.gpus
        if not used or used == all_gpus:
            return found
        fields = {"gpus": used, "nic_ports": found.server.nic_ports * used // all_gpus, "nvlink_domain_gpus": used}
        return found.model_copy(update={"server": found.server.model_copy(update=fields)})


@dataclass(frozen=True, kw_only=True, slots=True)
class Prediction:
    """One iteration.

    Attributes
    ----------
    iteration_s : from its begin to the end of the last stage
    parts_s : by kind, what the time of a GPU goes to in the mean over all; ``bubble`` is waiting for other stages
    """

    iteration_s: float
    parts_s: tuple[tuple[str, float], ...]


def predict(model: Model, plan: Parallelism, cluster: Cluster, software: Software) -> Prediction:
    """Build the job, run it, and say how long an iteration takes.

    Parameters
    ----------
    model, plan, software : what trains how
    cluster : on what; as many GPUs as the plan has ranks

    Raises
    ------
    ConfigError : a plan that cannot be, or of another number of GPUs
    EngineError : the run did not end
    """
    if plan.ranks != cluster.gpus:
        text = f"found {plan.ranks:,} ranks, wanted the {cluster.gpus:,} GPUs of the cluster"
        raise ConfigError("prediction", [Mistake(path="training.gpus", text=text)])
    server = cluster.model()
    fabric = _fabric(cluster)
    gpu_name = str(SERVERS[cluster.node].value("gpu"))
    figures = collective_figures(server.server, nic_port_rate_bps=server.nic_port_rate_bps, gpu=gpu_name)
    job, _ = training_job(
        model,
        plan,
        gpu=gpu(gpu_name),
        software=software,
        cluster=Machine(domain_gpus=server.server.nvlink_domain_gpus or 1, figures=figures),
        placement=packed(fabric, plan.ranks),
    )
    lowered = lower_flow(
        fabric=fabric,
        job=job,
        transport=Transport(),
        port_selection=load("port-selection", "spray"),
        path_selection=load("path-selection", "ecmp"),
        source="prediction",
    )
    outcome = flow.run(lowered)
    if not outcome.packets.complete:
        raise EngineError(f"the run of {model.name} on {plan.ranks:,} GPUs did not end")
    ends = outcome.marks["at_ps"][outcome.marks["name"] == job.mark_names.index(_ITERATION_MARK)]
    end_s = float(ends.max()) / SECOND_PS
    return Prediction(iteration_s=end_s, parts_s=_parts(outcome))


@cache
def _fabric(cluster: Cluster) -> Fabric:
    server = cluster.model()
    hosts = max(_LEAST_HOSTS, -(-cluster.gpus // server.server.gpus))
    return fabric_of(
        topology="leaf-spine",
        leaves=1,
        spines=1,
        hosts_per_leaf=hosts,
        node=server.server,
        link_rate_bps=server.nic_port_rate_bps,
        nic="plain",
    )


def _parts(outcome: FlowOutcome) -> tuple[tuple[str, float], ...]:
    """Mean over all ranks of the time that went to each kind."""
    segments, actors = outcome.segments, outcome.actors
    weight = actors["ranks"][segments["actor"]] / actors["ranks"].sum()
    length_s = (segments["end_ps"] - segments["start_ps"]) * weight / SECOND_PS
    is_bubble = (segments["label"] == LABELS.index("pipeline")) & (segments["code"] == SPENT.index("waiting"))
    kinds = np.where(is_bubble, len(LABELS), segments["label"])
    names = (*LABELS, "bubble")
    sums = {name: float(length_s[kinds == index].sum()) for index, name in enumerate(names)}
    return tuple((name, value) for name, value in sums.items() if value > 0)
