"""Parts of the time of a run that are suspects: time that goes to something other than useful work.

A part is what the run recorded. It names the key of the scenario that would change it, and for communication the
busiest place that carried it. A row of `PARTS` is one kind of time.
Leaves out: causes that can be left out and simulated again (`weftwork.study.answer.suspicion`).
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain
from operator import mul
from typing import TYPE_CHECKING, Final

import numpy as np

from weftwork.base.clock import SECOND_PS
from weftwork.base.grammar import plural
from weftwork.spec.answer import Culprit, CulpritIds
from weftwork.study.results.ideal import ideal_times_ps, nic_ports
from weftwork.study.results.intra_server import PACKETS, carriers
from weftwork.study.results.link_use import link_use
from weftwork.study.results.measure import mean_computed_ps
from weftwork.topology.port_names import port_names

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from weftwork.spec.result import Quantity
    from weftwork.study.prepare.prepared import Prepared
    from weftwork.study.prepare.training import TrainingJob
    from weftwork.study.run.execute import Execution

__all__ = ["LEAST_PART", "PARTS", "TimePart", "parts_of"]

FEW_BATCHES: Final = 8  # chosen: for each stage; with so many 1F1B is idle for an eighth of its passes
_SURELY_WHOLE: Final = 2.0**62  # what an int64 holds, whatever rounding does to the bound
LEAST_PART: Final = 0.03  # chosen: of the time; a smaller part is nobody's reason to change a plan


@dataclass(frozen=True, kw_only=True, slots=True)
class TimePart:
    """A kind of time of training that a plan can change.

    Attributes
    ----------
    number : of the summary, its share of an iteration
    name : in an answer
    key : of a training job, the one that changes it most; None where no key does
    text : why the time passes
    is_communication : whether the network or NVLink carries it, so that the place is named
    """

    number: str
    name: str
    key: Callable[[TrainingJob], str | None]
    text: Callable[[TrainingJob], str]
    is_communication: bool = False


def _communication(kind: str, what: Callable[[TrainingJob], str]) -> TimePart:
    return TimePart(
        number=f"exposed_{kind}_share",
        name=f"{kind} parallel communication",
        key=lambda _: kind,
        text=lambda job: f"is not hidden by computing: {what(job)}",
        is_communication=True,
    )


def _bubble_text(job: TrainingJob) -> str:
    plan = job.plan
    few = ", too few for so many stages," if plan.micro_batches < FEW_BATCHES * plan.pipeline else ""
    batches = plural(plan.micro_batches, "micro batch", "micro batches")
    return f"is idle time: {batches}{few} fill and drain {plural(plan.pipeline, 'stage')}"


PARTS: Final[tuple[TimePart, ...]] = (
    _communication("tensor", lambda job: f"each layer is split over {plural(job.plan.tensor, 'GPU')}"),
    _communication("context", lambda job: f"a sequence is split over {plural(job.plan.context, 'GPU')}"),
    _communication("expert", lambda job: f"tokens go to experts on {plural(job.plan.expert, 'GPU')} and back"),
    _communication("pipeline", lambda job: f"activations go between {plural(job.plan.pipeline, 'stage')}"),
    _communication(
        "data", lambda job: f"{plural(job.plan.data, 'copy', 'copies')} add gradients (ZeRO {job.plan.zero})"
    ),
    TimePart(
        number="spent_offload_share",
        name="offloaded activations",
        key=lambda _: "offloaded_layers",
        text=lambda job: (
            f"of {plural(job.plan.offloaded_layers, 'layer')} go to the host and return, longer than computing hides"
        ),
    ),
    TimePart(
        number="bubble_share",
        name="the bubble",
        key=lambda job: "virtual_stages" if (job.plan.virtual_stages, job.plan.schedule) == (1, "1f1b") else "pipeline",
        text=_bubble_text,
    ),
    TimePart(
        number="spent_recompute_share",
        name="recomputation",
        key=lambda _: "recompute",
        text=lambda job: f"repeats forward passes to save memory (recompute: {job.plan.recompute})",
    ),
    TimePart(
        number="spent_optimizer_share",
        name="the optimizer",
        key=lambda job: "zero" if job.plan.zero == 0 and job.plan.data > 1 else "global_batch",
        text=lambda job: f"updates the weights after {plural(job.plan.micro_batches, 'micro batch', 'micro batches')}",
    ),
    TimePart(
        number="spent_launch_share",
        name="waiting for the CPU",
        key=lambda _: "micro_batch",
        text=lambda _: "passes while kernels are launched, since each of them is short",
    ),
    TimePart(
        number="spent_skew_share",
        name="waiting for other ranks",
        key=lambda _: None,
        text=lambda _: "passes before ranks that have more to do are done",
    ),
    TimePart(
        number="spent_checkpoint_share",
        name="writing checkpoints",
        key=lambda _: "checkpoint",
        text=lambda _: "stops training",
    ),
    TimePart(
        number="spent_loading_share",
        name="loading data",
        key=lambda _: "loading",
        text=lambda _: "is slower than computing",
    ),
)


def parts_of(
    prepared: Prepared,
    execution: Execution,
    taken: Sequence[int],
    *,
    summary: Mapping[str, Quantity],
    tables: Mapping[str, pa.Table],
) -> Iterator[Culprit]:
    """List the parts of a run's time that take at least `LEAST_PART`.

    Parameters
    ----------
    prepared : what was run
    execution, taken, summary, tables : of it
    """
    every = chain(_of_training(prepared, execution, taken, summary, tables), _of_traffic(prepared, execution, taken))
    return (part for part in every if (part.cost_share or 0.0) >= LEAST_PART)


def _of_training(
    prepared: Prepared,
    execution: Execution,
    taken: Sequence[int],
    summary: Mapping[str, Quantity],
    tables: Mapping[str, pa.Table],
) -> Iterator[Culprit]:
    for place, job in enumerate(prepared.jobs):
        lead = f"{job.name}." if place else ""
        whose = job.name if len(prepared.jobs) > 1 else "the run"
        section = prepared.scenario.job_path(place)
        if summary[f"{lead}exposed_data_share"].value is None:
            yield from _by_packets(prepared, execution, place, taken[place], whose, section)
            continue
        for part in PARTS:
            number = summary.get(f"{lead}{part.number}")
            share, key = float((number and number.value) or 0.0), part.key(job)
            if share < LEAST_PART:
                continue
            where, port = "", None
            if part.is_communication:
                where, port = _place(prepared, execution, tables, job.name, part.number.split("_")[1])
            yield _recorded(
                name=part.name,
                key=None if key is None else f"{section}.{key}",
                text=f"{part.text(job)}{where}",
                port=port,
                share=share,
                of_ps=taken[place],
                of=whose,
            )


def _place(
    prepared: Prepared, execution: Execution, tables: Mapping[str, pa.Table], job: str, kind: str
) -> tuple[str, int | None]:
    """Where communication of a kind went, in words, and the port of the busiest link; None for it inside servers."""
    rows = tables["activities"]
    is_meant = _is_word(rows["job"], job) & _is_word(rows["kind"], kind)
    flows, start_ps, end_ps, instances = (
        rows[name].to_numpy()[is_meant] for name in ("flows", "start_ps", "end_ps", "instances")
    )
    is_of_network = flows != 0
    of_network, inside = (
        _exact_sum((end_ps - start_ps)[own], instances[own]) for own in (is_of_network, ~is_of_network)
    )
    if not of_network + inside:
        return "", None
    if inside > of_network:
        return ", inside servers", None
    port, name = _busiest_port(prepared, execution)
    return f", on the fabric, where {name} was busiest", port


def _is_word(column: pa.ChunkedArray, word: str) -> NDArray[np.bool_]:
    """Whether each row of a column is a word."""
    import pyarrow as pa
    from pyarrow._compute import call_function  # of `pyarrow.compute`, which takes 25 ms to write all its functions

    return np.asarray(call_function("equal", [column, pa.scalar(word)]).to_numpy(), np.bool_)


def _exact_sum(amounts: NDArray[np.int64], times: NDArray[np.int64]) -> int:
    """Sum of amounts, each so many times, which is exact however large it is."""
    most = float(amounts.max(initial=0)) * float(times.max(initial=0)) * len(times)
    if most < _SURELY_WHOLE:
        return int((amounts * times).sum())
    return sum(map(mul, amounts.tolist(), times.tolist()))


def _busiest_port(prepared: Prepared, execution: Execution) -> tuple[int, str]:
    """Number and name of the port that was in use for longest."""
    port = int(link_use(prepared, execution).argmax())
    (name,) = port_names(prepared.fabric, np.array([port]))
    return port, name


def _by_packets(
    prepared: Prepared, execution: Execution, place: int, taken_ps: int, whose: str, section: str
) -> Iterator[Culprit]:
    """Time in which an average rank does not compute; packets do not say what it waits for."""
    job, (port, name) = prepared.jobs[place], _busiest_port(prepared, execution)
    what = "communication" if job.plan.pipeline == 1 else "communication and the bubble"
    yield _recorded(
        name=what,
        key=section,
        text=(
            f"{'leaves' if job.plan.pipeline == 1 else 'leave'} the average GPU idle, while {name} was busiest"
            " (engine.fidelity: flow tells kinds apart)"
        ),
        share=1 - mean_computed_ps(prepared, place) / max(1, taken_ps),
        port=port,
        of_ps=taken_ps,
        of=whose,
    )


def _of_traffic(prepared: Prepared, execution: Execution, taken: Sequence[int]) -> Iterator[Culprit]:
    """Arrivals of messages, and the latency of an empty path, which no port's use shows."""
    messages = execution.outcome.messages
    if prepared.scenario.workload_kind.has_steps or not len(messages):
        return
    posted = messages["posted_at_ps"]
    last = int(np.argmax(messages["delivered_at_ps"]))
    arrivals_ps = int(posted[last] - posted.min())
    yield _recorded(
        name="arrivals",
        key="traffic",
        text="of messages are spread over the run, so that the last one could not end before",
        share=arrivals_ps / max(1, taken[0]),
        of_ps=taken[0],
        of="the run",
    )
    own = messages[last : last + 1]
    if carriers(prepared.engine_input, own["source"], own["destination"])[0] != PACKETS:
        return
    ends = nic_ports(prepared.engine_input, own)
    latency_ps = int(ideal_times_ps(prepared.engine_input, *ends, np.zeros(1, np.int64))[0])
    yield _recorded(
        name="latency",
        key="fabric",
        text="of the last message's path, for one packet without payload on an empty fabric",
        share=latency_ps / max(1, taken[0]),
        of_ps=taken[0],
        of="the run",
    )


def _recorded(
    *, name: str, key: str | None, text: str, share: float, of_ps: int, of: str, port: int | None = None
) -> Culprit:
    return Culprit(
        kind="part",
        name=name,
        key=key,
        text=text,
        cost_s=share * of_ps / SECOND_PS,
        cost_share=share,
        how="recorded",
        of=of,
        ids=None if port is None else CulpritIds(ports=(port,)),
    )
