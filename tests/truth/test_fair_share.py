"""Flows under DCQCN share a link fairly: the Jain index of their goodputs after convergence.

    J(x) = (sum x)^2 / (n sum x^2), 1 where all are equal and 1/n where one has everything

Source: Jain, Chiu and Hawe, DEC-TR-301, 1984; Zhu et al., SIGCOMM 2015, doi:10.1145/2785956.2787484, section 5, for
the variant `paper`, meant for links of 40 Gb/s with marks from 5 KB on, certain above 200 KB, at most 1 % between.

The flows start 1 ms apart, the first alone at the line rate, so that they begin as unequal as can be. Additive increase
evens them out at 40 Mb/s per 55 us, so that convergence takes tens of milliseconds; goodput is measured after that.
"""

from typing import Any

import numpy as np
import pytest
from helpers.figures import Show
from helpers.tiny import job_of, packet_input_of, star
from numpy.typing import NDArray

from weftwork.engine.outcome import Outcome
from weftwork.engine.packet import run
from weftwork.spec.device import Ecn, Switch
from weftwork.spec.job import At, Loop, Operation, Peer, Send, Size
from weftwork.spec.transport import Transport

GBPS = 10**9
MS_PS = 10**9
MESSAGE_BYTES = 16 * 1024
RUN_PS = 150 * MS_PS
CONVERGED_PS = 50 * MS_PS


def jain(goodput: NDArray[np.float64]) -> float:
    return float(goodput.sum() ** 2 / (len(goodput) * np.square(goodput).sum()))


def contest(flows: int, *, rate_gbps: int, ecn: Ecn, control: str, parameters: dict[str, Any]) -> Outcome:
    count = rate_gbps * GBPS * RUN_PS // 10**12 // 8 // MESSAGE_BYTES
    to_last = Peer(rule="rank", shift=flows)
    body: tuple[Operation, ...] = (Send(peer=to_last, size=Size(total_bytes=MESSAGE_BYTES)),)
    programs: list[list[list[Operation]]] = [
        [[At(at_ps=i * MS_PS), Loop(count=count, body=body)]] for i in range(flows)
    ]
    ports = flows + 1
    fabric = star(
        ports,
        switch=Switch(ecn=ecn, forwarding_latency_ps=500_000),
        rates_bps=[rate_gbps * GBPS] * ports,
        delays_ps=[1_000_000] * ports,
    )
    return run(
        packet_input_of(
            fabric,
            job_of([*programs, []]),
            transport=Transport(mtu_bytes=1024),
            congestion_control=control,
            parameters=parameters,
            until_ps=RUN_PS,
        )
    )


def goodput_gbps(outcome: Outcome, flows: int) -> NDArray[np.float64]:
    late = outcome.messages[outcome.messages["delivered_at_ps"] > CONVERGED_PS]
    return np.bincount(late["source"], minlength=flows)[:flows] * MESSAGE_BYTES * 8_000 / (RUN_PS - CONVERGED_PS)


@pytest.mark.parametrize("flows", [2, 4, 8])
def test_flows_under_dcqcn_share_fairly(flows: int, show: Show) -> None:
    ecn = Ecn(kmin_bytes=5_000, kmax_bytes=200_000, pmax=0.01)
    outcome = contest(flows, rate_gbps=40, ecn=ecn, control="dcqcn", parameters={"variant": "paper"})
    goodput = goodput_gbps(outcome, flows)
    show(
        f"{flows} flows, 40 Gb/s: Jain {jain(goodput):.4f}, sum {goodput.sum():.2f} Gb/s, "
        f"from {goodput.min():.2f} to {goodput.max():.2f}, {outcome.counters['cnps_sent']} CNPs"
    )
    assert outcome.ports["drops"].sum() == 0
    assert outcome.counters["cnps_sent"] > 0
    assert outcome.ports["pauses_sent"].sum() == 0  # it is DCQCN that shares, not PFC
    assert jain(goodput) >= 0.95
    assert goodput.sum() >= 0.8 * 40  # fair, and not by sending nothing
