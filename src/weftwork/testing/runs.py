"""Run a job on a small fabric to its end, for the kits.

The findings are messages that did not arrive, and ranks that sent to themselves.
"""

from __future__ import annotations

from collections.abc import Iterator

from weftwork.base.errors import ConfigError
from weftwork.engine.lower import lower
from weftwork.engine.reference import simulation as reference
from weftwork.engine.settings import EngineSettings
from weftwork.policies.load import load
from weftwork.spec.fabric import Fabric
from weftwork.spec.job import Job
from weftwork.spec.transport import Transport

__all__ = ["finished"]


def finished(fabric: Fabric, job: Job, transport: Transport) -> Iterator[str]:
    """Run a job on the reference engine and yield mistakes of its end.

    Parameters
    ----------
    fabric : of some ten hosts
    job, transport : that are checked
    """
    try:
        engine_input = lower(
            fabric=fabric,
            job=job,
            transport=transport,
            congestion_control=load("congestion_control", "none"),
            settings=EngineSettings(port_selection=load("port_selection", "ecmp")),
        )
    except ConfigError as wrong:
        yield f"it cannot run: {wrong}"
        return
    outcome = reference.run(engine_input)
    messages = outcome.messages
    if not len(messages):
        yield "nobody sends anything"
    if not outcome.complete or (messages["delivered_at_ps"] < 0).any():
        yield "some of its messages never arrive"
    if (messages["source"] == messages["destination"]).any():
        yield "a rank sends to itself"
