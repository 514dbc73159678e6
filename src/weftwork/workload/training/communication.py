"""Communication of a plan's ranks: operations of a program, with costs.

Sizes of one micro batch of b sequences of s tokens, h hidden, t tensor ranks, c context ranks, n = b s / c tokens:
tensor: all-reduce of 2 n h bytes for each half of a layer and pass, or all-gather and reduce-scatter of them with
sequence parallelism; context: all-gather of keys and values, backward both ways, or (Ulysses) all-to-alls of queries,
keys, values and result, 2 n h / t bytes each where every head has keys of its own; experts: two all-to-alls of
2 n k h / t bytes for each pass, k experts a token; pipeline: 2 n h / t bytes between stages.
Source: Narayanan et al., arXiv:2104.04473, section 3; Korthikanti et al., arXiv:2205.05198, section 4.2; Llama 3,
arXiv:2407.21783, section 3.3.2 (all-gather of keys and values); Jacobs et al., arXiv:2309.14509 (Ulysses).
Leaves out: tokens that are spread unevenly over experts; formats of tokens on the wire other than bfloat16.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import whole_ps
from weftwork.spec.job import Collect, Grid, Placement
from weftwork.spec.training import Model, Parallelism, Software
from weftwork.workload.collectives.cost import CollectiveCost, collective_cost
from weftwork.workload.collectives.figures import CollectiveFigures
from weftwork.workload.collectives.protocols import software as protocol_latencies
from weftwork.workload.models.size import LayerKind
from weftwork.workload.parallelism.exchanged_heads import exchanged_values
from weftwork.workload.parallelism.groups import Groups, groups
from weftwork.workload.training.exchange import ExchangeShares, deduplicated

if TYPE_CHECKING:
    from numpy.typing import NDArray

__all__ = ["CHANNELS", "LABELS", "VALUE_BYTES", "Answers", "Communication", "GpuCluster", "TimedCollective", "label"]

LABELS: Final = (
    "compute", "recompute", "tensor", "context", "expert", "pipeline", "data", "optimizer", "launch", "checkpoint",
    "loading", "offload",
)  # fmt: skip
VALUE_BYTES: Final = 2  # activations and parameters cross the network as bfloat16
LOSS_REDUCTIONS: Final = 3  # of 4 bytes a token: maximum, sum of exponentials, the logit of the target
# Channels of collectives: one operation after the other on each. A stream beside the computing one has channels of its
# own, since which stream calls first may differ from rank to rank, and calls of a channel meet by their order.
CHANNELS: Final = 7
TENSOR, CONTEXT, EXPERT, GRADIENTS, PARAMETERS, EXPERT_GRADIENTS, EXPERT_PARAMETERS = range(CHANNELS)


def label(name: str) -> int:
    """Number of a label in training jobs."""
    return LABELS.index(name)


@dataclass(frozen=True, kw_only=True, slots=True)
class GpuCluster:
    """The machine, as computing and collectives see it.

    Attributes
    ----------
    domain_gpus : of an NVLink domain; 1 where GPUs have none
    figures : of collectives on its servers
    host_rate_bps : between a GPU and the memory of its host, in each direction
    """

    domain_gpus: int
    figures: CollectiveFigures
    host_rate_bps: int


@dataclass(frozen=True, kw_only=True, slots=True)
class TimedCollective:
    """One collective operation, its time alone, and its path's latency.

    Engines add the latency to each part.
    """

    collect: Collect
    alone_ps: int
    path_ps: int

    def share(self, share: float, *, overhead_share: float | None = None, is_beside: bool = False) -> Collect:
        """A part of the operation: ``share`` of its bytes and latencies.

        The share of latencies may be given separately. A part has the latency of the path too, so that its overhead is
        less by what the other parts have of that. ``is_beside``: a stream beside the computing one does it.
        """
        whole = self.collect
        of_latencies = share if overhead_share is None else overhead_share
        return replace(
            whole,
            channel=whole.channel + (CHANNELS if is_beside else 0),
            size_bytes=round(whole.size_bytes * share),
            amount_bytes=round(whole.amount_bytes * share),
            overhead_ps=max(0, whole_ps((whole.overhead_ps + self.path_ps) * of_latencies) - self.path_ps),
        )


@dataclass(frozen=True, slots=True)
class Answers:
    """Cached results.

    Attributes
    ----------
    spreads : members of groups in a domain, by axes
    costs : of collectives, by what was asked
    latencies_ps : of a message over the network (True) and over NVLink
    """

    spreads: dict[tuple[tuple[int, int], ...], tuple[int, int]] = field(default_factory=dict)
    costs: dict[tuple[str, int, int, float], CollectiveCost] = field(default_factory=dict)
    latencies_ps: dict[bool, int] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Communication:
    """Communication of a plan on a machine.

    ``answers`` may be shared by plans of one placement, machine and software.
    """

    model: Model
    plan: Parallelism
    software: Software
    cluster: GpuCluster
    placement: Placement
    answers: Answers = field(default_factory=Answers)

    @cached_property
    def groups(self) -> Groups:
        """Groups of the plan."""
        return groups(self.plan)

    @property
    def tokens(self) -> int:
        """Tokens of a micro batch on one context rank."""
        return self.plan.micro_batch * self.plan.sequence // self.plan.context

    @property
    def stream_bytes(self) -> int:
        """Bytes of a micro batch's residual stream."""
        return VALUE_BYTES * self.tokens * self.model.hidden

    @property
    def message_bytes(self) -> int:
        """Bytes from one stage to the next, per rank (SC 2021, 4.1).

        A rank sends its part, with sequence parallelism or without.
        """
        return self.stream_bytes // self.plan.tensor

    def before(self, kind: LayerKind, half: str) -> tuple[TimedCollective, ...]:
        """Calls of tensor parallelism before half a layer.

        The gradient is gathered as the activation was.
        """
        if not self._has_tensor(kind, half) or not self.plan.is_sequence_parallel:
            return ()
        return (self._tensor("all-gather"),)

    def after(self, kind: LayerKind, half: str) -> tuple[TimedCollective, ...]:
        """Calls of tensor parallelism after half a layer."""
        if not self._has_tensor(kind, half):
            return ()
        return (self._tensor("reduce-scatter" if self.plan.is_sequence_parallel else "all-reduce"),)

    def context(self, *, backward: bool) -> tuple[TimedCollective, ...]:
        """Calls that attention waits for: keys and values of all ranks, or heads of all tokens.

        In the backward pass keys and values are gathered again and their gradients added; heads are those of the
        result's gradient.
        """
        plan, model = self.plan, self.model
        if plan.context == 1:
            return ()
        if plan.exchanges_heads:
            return self._result_exchange if backward else self._head_exchange
        latent = model.latent_attention
        if latent is None:
            width = 2 * model.key_value_heads * model.head_dim
        else:
            width = model.heads * (latent.no_position_dim + latent.rope_dim + latent.value_dim)
        size = VALUE_BYTES * self.tokens * width // plan.tensor * plan.context
        operations = ("all-gather", "reduce-scatter") if backward else ("all-gather",)
        return tuple(self.call(operation, self.groups.context, CONTEXT, size, "context") for operation in operations)

    def context_back(self, *, backward: bool) -> tuple[TimedCollective, ...]:
        """Calls that give the results of attention, or its gradients, back to the ranks of their tokens."""
        if not self.plan.exchanges_heads:
            return ()
        return self._head_exchange if backward else self._result_exchange

    @cached_property
    def _head_exchange(self) -> tuple[TimedCollective, ...]:
        values = exchanged_values(self.model, self.plan)
        return tuple(map(self._of_heads, (values.query, values.key, values.value)))

    @cached_property
    def _result_exchange(self) -> tuple[TimedCollective, ...]:
        return (self._of_heads(exchanged_values(self.model, self.plan).result),)

    def _of_heads(self, values: int) -> TimedCollective:
        """The all-to-all of some values of each token between context ranks."""
        return self.call("all-to-all", self.groups.context, CONTEXT, VALUE_BYTES * self.tokens * values, "context")

    @cached_property
    def exchange(self) -> tuple[TimedCollective, ...]:
        """Calls that bring tokens to their experts.

        The way back is the same.
        """
        plan, model = self.plan, self.model
        width = model.expert_hidden or model.hidden
        size = VALUE_BYTES * self.tokens * model.experts_per_token * width // plan.tensor
        found = []
        if plan.expert > 1:
            found.append(self.call("all-to-all", self.groups.expert, EXPERT, size, "expert", spread=True))
        if plan.expert_tensor > 1:
            shared = self.groups.expert_tensor
            found.append(self.call("all-gather", shared, EXPERT, size * plan.expert_tensor, "expert"))
        return tuple(found)

    @cached_property
    def embedding(self) -> tuple[TimedCollective, ...]:
        """Calls of the embedding, whose rows are spread over tensor ranks."""
        if self.plan.tensor == 1:
            return ()
        return (self._tensor("reduce-scatter" if self.plan.is_sequence_parallel else "all-reduce"),)

    @cached_property
    def embedding_backward(self) -> tuple[TimedCollective, ...]:
        """Calls of the embedding's backward pass.

        With sequence parallelism every rank needs the gradients of all tokens.
        """
        if self.plan.tensor == 1 or not self.plan.is_sequence_parallel:
            return ()
        return (self._tensor("all-gather"),)

    @cached_property
    def head(self) -> tuple[TimedCollective, ...]:
        """Calls of the loss over a vocabulary spread over tensor ranks."""
        if self.plan.tensor == 1:
            return ()
        loss = self.call("all-reduce", self.groups.tensor, TENSOR, 4 * self.tokens, "tensor")
        gather = (self._tensor("all-gather"),) if self.plan.is_sequence_parallel else ()
        return (*gather, *[loss] * LOSS_REDUCTIONS)

    @cached_property
    def head_backward(self) -> tuple[TimedCollective, ...]:
        """Calls for the gradient of the head's input."""
        if self.plan.tensor == 1:
            return ()
        return (self._tensor("reduce-scatter" if self.plan.is_sequence_parallel else "all-reduce"),)

    @cached_property
    def arrival(self) -> tuple[TimedCollective, ...]:
        """Calls that reassemble an activation from another stage (SC 2021, 4.1).

        Its parts are put together inside the server.
        """
        if self.plan.tensor == 1 or self.plan.is_sequence_parallel:
            return ()
        return (self.call("all-gather", self.groups.tensor, TENSOR, self.stream_bytes, "pipeline"),)

    def gradients(self, parameters: float, experts: float) -> tuple[TimedCollective, ...]:
        """Calls that add the gradients of parameters, experts apart.

        Gradients are added whole, or as the shard of each rank.
        """
        operation = "all-reduce" if self.plan.zero == 0 else "reduce-scatter"
        bytes_each = self.plan.gradient_bytes
        return self._data(operation, parameters * bytes_each, experts * bytes_each, GRADIENTS, EXPERT_GRADIENTS)

    def parameters(self, parameters: float, experts: float) -> tuple[TimedCollective, ...]:
        """Calls that gather parameters from the ranks that keep them."""
        sizes = parameters * VALUE_BYTES, experts * VALUE_BYTES
        return self._data("all-gather", *sizes, PARAMETERS, EXPERT_PARAMETERS)

    def call(
        self, operation: str, group: Grid, channel: int, size_bytes: float, kind: str, *, spread: bool = False
    ) -> TimedCollective:
        """A collective of a group, with its cost.

        Parameters
        ----------
        operation : as nccl-tests names it
        group : who takes part
        channel : on which one follows the other
        size_bytes : as nccl-tests counts it
        kind : label of the time that it takes
        spread : whether it brings tokens to several experts each, of which a rank and a domain need one copy
        """
        key = (operation, group, channel, size_bytes, kind, spread)
        if key not in self.calls:
            self.calls[key] = self._timed(operation, group, channel, size_bytes, kind, spread=spread)
        return self.calls[key]

    @cached_property
    def calls(self) -> dict[tuple[str, Grid, int, float, str, bool], TimedCollective]:
        """Calls that were asked for, by the arguments of `call`."""
        return {}

    def writes_as(self, other: Communication) -> bool:
        """Whether the programs that follow from ``other`` follow from this too.

        They do where all that those programs asked of ``other`` has the same answers here. The time alone of calls for
        data is no part of a program: they hide behind whole passes, which engines time.

        Parameters
        ----------
        other : of the same software, from which programs were written
        """
        mine, its = self.placement, other.placement
        is_same_machine = (
            (self.model, self.plan, self.software) == (other.model, other.plan, other.software)
            and (self.cluster.domain_gpus, self.cluster.host_rate_bps)
            == (other.cluster.domain_gpus, other.cluster.host_rate_bps)
            and np.array_equal(mine.host, its.host)
            and np.array_equal(mine.nics, its.nics)
            and _is_same(mine.gpu, its.gpu)
        )
        return (
            is_same_machine
            and all(self._writes_call_as(asked, timed) for asked, timed in other.calls.items())
            and all(self.message_latency_ps(far=far) == ps for far, ps in other.answers.latencies_ps.items())
        )

    def _writes_call_as(self, asked: tuple[str, Grid, int, float, str, bool], other: TimedCollective) -> bool:
        operation, group, channel, size_bytes, kind, spread = asked
        timed = self.call(operation, group, channel, size_bytes, kind, spread=spread)
        return timed == (replace(other, alone_ps=timed.alone_ps) if kind == "data" else other)

    def _timed(
        self, operation: str, group: Grid, channel: int, size_bytes: float, kind: str, *, spread: bool
    ) -> TimedCollective:
        per_domain, fewest = self._spread(group)
        asked = (operation, group.size, per_domain, size_bytes)
        cost = self.answers.costs.get(asked)
        if cost is None:
            cost = self.answers.costs[asked] = collective_cost(
                operation,
                members=group.size,
                per_domain=per_domain,
                domain_gpus=self.cluster.domain_gpus,
                size_bytes=size_bytes,
                figures=self.cluster.figures,
                software=self.software,
            )
        domains = -(-group.size // per_domain)
        shares = self._exchange_shares(group.size, per_domain, fewest) if spread else ExchangeShares()
        most = max(shares.local, shares.network) if domains > 1 else shares.local  # `Collect` takes shares up to 1
        local_share = self.software.exchange_efficiency if spread else 1.0
        collect = Collect(
            operation=operation,
            size_bytes=round(size_bytes),
            group=group,
            channel=channel,
            pattern=cost.pattern,
            amount_bytes=round(cost.amount_bytes * most),
            overhead_ps=cost.overhead_ps,
            local_efficiency=cost.local_efficiency * local_share * most / shares.local,
            network_efficiency=cost.network_efficiency,
            network_share=shares.network / most if domains > 1 else 1.0,
            label=label(kind),
        )
        self._paths_ps[group.axes] = cost.path_ps
        alone_ps = self._alone_ps(collect, per_domain, domains) + cost.path_ps
        return TimedCollective(collect=collect, alone_ps=alone_ps, path_ps=cost.path_ps)

    def _exchange_shares(self, members: int, per_domain: int, smallest_domain: int) -> ExchangeShares:
        if not self.software.has_deduplicated_experts or members == 1:
            return ExchangeShares()
        return deduplicated(
            members=members,
            per_domain=per_domain,
            smallest_domain=smallest_domain,
            chosen=self.model.experts_per_token,
        )

    def part_ps(self, collect: Collect) -> int:
        """Time of a part of a call with its links to itself."""
        per_domain, _ = self._spread(collect.group)
        domains = -(-collect.group.size // per_domain)
        return self._alone_ps(collect, per_domain, domains) + self._paths_ps[collect.group.axes]

    def message_ps(self, rank: int, other: int, *, size_bytes: int | None = None) -> int:
        """Time of a single message between two ranks, by default between stages."""
        size = self.message_bytes if size_bytes is None else size_bytes
        far = self.is_far(rank, other)
        return self.message_latency_ps(far=far) + whole_ps(size * 8 / self.message_rate_bps(far=far) * 1e12)

    def message_rate_bps(self, *, far: bool) -> float:
        """Rate of a single message between two ranks; ``far`` as of `message_latency_ps`."""
        figures = self.cluster.figures
        return figures.network_rate_bps * figures.payload_share if far else figures.nvlink_rate_bps

    def message_latency_ps(self, *, far: bool) -> int:
        """Software latency of a message between two ranks.

        It is a launch and a step of NCCL's Simple, with the NIC's.

        Parameters
        ----------
        far : whether it goes over the network, and not over NVLink
        """
        known = self.answers.latencies_ps
        if far not in known:
            simple, figures = protocol_latencies("simple", "ring"), self.cluster.figures
            nic_ps = figures.nic_latency_ps + figures.nic_flush_ps
            step_ps = simple.step_latency_ps + nic_ps if far else simple.local_step_latency_ps
            known[far] = whole_ps(self.software.latency_scale * (simple.base_latency_ps + step_ps))
        return known[far]

    def is_far(self, rank: int, other: int) -> bool:
        """Whether two ranks are in different NVLink domains."""
        return bool(self._domain[rank] != self._domain[other])

    @cached_property
    def _domain(self) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
        """NVLink domain of each rank."""
        host = self.placement.host.astype(np.int64)
        gpu = np.zeros(len(host), np.int64) if self.placement.gpu is None else self.placement.gpu.astype(np.int64)
        size = max(self.cluster.domain_gpus, 1)
        return host * (int(gpu.max(initial=0)) // size + 1) + gpu // size

    def _spread(self, group: Grid) -> tuple[int, int]:
        """Members of a group per NVLink domain: the most and the fewest.

        The fewest are those of a group that spans several domains. Groups may differ, as where a domain is no multiple
        of a group; the one that is spread most stands for all.
        """
        if group.axes not in self.answers.spreads:
            rank = np.arange(len(self._domain))
            first = rank - sum(rank // stride % size * stride for stride, size in group.axes)
            domains = int(self._domain.max(initial=0)) + 1
            place, count = np.unique(first * domains + self._domain, return_counts=True)
            most = np.zeros(len(rank), np.int64)
            np.maximum.at(most, place // domains, count)
            self.answers.spreads[group.axes] = int(most[np.unique(first)].min()), int(count.min())
        return self.answers.spreads[group.axes]

    @cached_property
    def _paths_ps(self) -> dict[tuple[tuple[int, int], ...], int]:
        """Latency of a call's path, by the axes of its groups."""
        return {}

    def _alone_ps(self, collect: Collect, per_domain: int, domains: int) -> int:
        """Time of a collective with its links to itself, without path latency."""
        figures = self.cluster.figures
        local_bps = figures.nvlink_rate_bps * collect.local_efficiency
        network_bps = figures.network_rate_bps * figures.payload_share * collect.network_efficiency
        size = collect.amount_bytes * 8
        if collect.pattern == "all-to-all":
            members = collect.group.size
            near, far = (per_domain - 1) / members, (members - per_domain) / members * collect.network_share
            taken_s = max(size * near / local_bps, size * far / network_bps)
        else:
            taken_s = size / local_bps if domains == 1 else max(size / local_bps, size / (per_domain * network_bps))
        return collect.overhead_ps + whole_ps(taken_s * 1e12)

    def _has_tensor(self, kind: LayerKind, half: str) -> bool:
        if self.plan.tensor == 1:
            return False
        return half == "mixer" or kind.mlp == "dense" or self.model.shared_ffn > 0

    def _tensor(self, operation: str) -> TimedCollective:
        return self.call(operation, self.groups.tensor, TENSOR, self.stream_bytes, "tensor")

    def _data(
        self, operation: str, size_bytes: float, expert_bytes: float, channel: int, expert_channel: int
    ) -> tuple[TimedCollective, ...]:
        pairs = (
            (self.groups.gradients, size_bytes, channel),
            (self.groups.expert_gradients, expert_bytes, expert_channel),
        )
        return tuple(
            self.call(operation, group, of_channel, size, "data")
            for group, size, of_channel in pairs
            if group.size > 1 and size > 0
        )


def _is_same(one: NDArray[np.int32] | None, other: NDArray[np.int32] | None) -> bool:
    if one is None or other is None:
        return one is other
    return np.array_equal(one, other)
