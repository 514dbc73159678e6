"""Laws of answers: what is said of a run holds of its tables, which are read here again.

`docs/models/answer.md`, sections Evidence and Endings, has the rules. Leaves out: whether a suspect is the right one.
"""

from __future__ import annotations

import pytest

from weftwork.report.three_lines import three_lines
from weftwork.report.waiting import waiting_lines
from weftwork.spec.answer import FULL_SHARE, TROUBLED_SHARE
from weftwork.spec.endings import ENDINGS, FAILED_ENDINGS
from weftwork.store.runs import Run

__all__ = ["answer_holds"]


def answer_holds(run: Run) -> None:
    """Assert that the answer of a run of one seed holds of its tables."""
    _ending_holds(run)
    answer = run.answer
    culprit = answer.culprit
    assert culprit.how != "bound", "a bound is no finding"
    assert (answer.took.seconds is None) == (answer.evidence is None)
    if culprit.kind == "none" and answer.evidence is not None:
        _is_healthy(run)
        assert f"at least {100 * FULL_SHARE:g} %" in three_lines(run)[2]  # the limits stand beside the verdict
        assert f"at most {100 * TROUBLED_SHARE:g} %" in three_lines(run)[2]
        assert not [one for one in answer.others if one.how == "bound" and (one.cost_share or 0) >= 0.01]
    if culprit.kind == "load":
        assert _busiest_share(run) >= FULL_SHARE * 0.99
        assert max(_troubles(run)) > TROUBLED_SHARE
    if answer.evidence is not None and run.flows.num_rows:
        lost, resent, paused = _troubles(run)
        assert answer.evidence.lost_share == pytest.approx(lost)
        assert answer.evidence.resent_share == pytest.approx(resent)
        assert answer.evidence.paused_share == pytest.approx(paused)


def _ending_holds(run: Run) -> None:
    """The evidence that `weftwork.spec.endings` names for each ending."""
    assert run.status in ENDINGS
    errors = int(run.summary.get("queue_pair_errors", {}).get("value") or 0)
    undelivered = sum(flow["delivered_ps"] is None for flow in run.flows.to_pylist())
    culprit = run.answer.culprit
    assert (run.answer.took.seconds is None) or run.status == "complete"
    if run.status == "complete":
        assert undelivered == 0
    if run.status == "deadlocked":
        assert run.deadlock.num_rows > 0
        assert culprit.key == "transport.flow_control"
    else:
        assert run.deadlock.num_rows == 0
    if run.status == "gave-up":
        assert errors > 0
    if run.status == "stuck":
        assert errors == 0
    if run.status == "stopped":
        assert errors == 0
        assert "until: " in run.scenario
    if culprit.key == "engine.until":
        assert run.status == "stopped"
    if culprit.key in {"transport.retry_limit", "transport.timeout"} and run.answer.took.seconds is None:
        assert errors > 0
    said = " ".join(waiting_lines(run))
    assert "wait for each other" not in said or run.status in FAILED_ENDINGS
    assert "gave up" not in said or errors > 0


def _is_healthy(run: Run) -> None:
    evidence = run.answer.evidence
    assert evidence is not None
    assert max(_troubles(run)) <= TROUBLED_SHARE
    assert evidence.resources[0].useful_share >= FULL_SHARE
    if run.flows.num_rows and "->" in evidence.resources[0].name:
        assert _busiest_share(run) >= FULL_SHARE * 0.99


def _troubles(run: Run) -> tuple[float, float, float]:
    """Shares lost, sent again and paused, from the summary and the table of links."""
    sent = max(1, run.value("data_sent") or 0)
    took_ps = (run.answer.took.seconds or 0) * 1e12
    paused_ps = max((link["paused_ps"] for link in run.links.to_pylist()), default=0)
    lost, resent = ((run.value(name) or 0) / sent for name in ("drops", "retransmissions"))
    return min(1.0, lost), min(1.0, resent), min(1.0, paused_ps / took_ps) if took_ps else 0.0


def _busiest_share(run: Run) -> float:
    """The largest share of the time for which a port carried useful bytes, or bytes at all if nothing was repeated."""
    took_ps = (run.answer.took.seconds or 0) * 1e12
    repeats = int(run.summary.get("collective_repetitions", {}).get("value") or 1)
    rate_bps = {link["name"].split("->")[0]: link["rate_bps"] for link in run.links.to_pylist()}
    rate_bps |= {link["name"].split("->")[1]: link["rate_bps"] for link in run.links.to_pylist()}
    load: dict[tuple[str, str], int] = {}
    for flow in run.flows.to_pylist():
        if flow["carrier"] == "packets":
            for end in ("source", "destination"):
                load[end, flow[end]] = load.get((end, flow[end]), 0) + flow["wire_bytes"]
    at_hosts = max((8e12 * size / rate_bps[host] / took_ps / repeats for (_, host), size in load.items()), default=0.0)
    return max(at_hosts, max((link["utilisation"] for link in run.links.to_pylist()), default=0.0))
