"""The permutation of 128 hosts in ns-3: fat tree of three tiers, UDP, nix-vector routing, 2 MB flows at 100 Gb/s.

Source: ns-3.44, modules point-to-point, internet, nix-vector-routing and applications. The pairs are those of
Weftwork's row `as-ns3`, and so are rates, delays and payloads. What differs: UDP sends no acknowledgement (in Weftwork
the last packet of a flow has one); a frame has 30 B of headers (IP, UDP, PPP) and no gap, instead of 62 B and 20 B;
ns-3 takes one shortest path of its breadth-first search instead of a hash; its queues are per port and hold every
packet; nothing is marked or counted. The search for a path, at the first packet of a flow, counts as set-up.
Leaves out: everything that Weftwork does beyond UDP.
"""

from __future__ import annotations

import time
from typing import Any, Final

from line_protocol import serve
from rows import MTU_BYTES, ROWS

from weftwork.spec.fabric import HOST
from weftwork.workload.traffic.patterns.permutation import permutation_peers

__all__ = ["simulate"]

ROW: Final = ROWS["as-ns3"]
FLOW_BYTES: Final = 2_000_000
PORT: Final = 9  # RFC 863, the discard service
QUEUE: Final = "1000000p"  # chosen: longer than all packets of the run


def simulate() -> dict[str, Any]:
    """Build the fabric in ns-3, run it, and count."""
    from ns import ns

    fabric = ROW.fabric()
    begin_s = time.thread_time()
    nodes = ns.NodeContainer()
    nodes.Create(len(fabric.node_names))
    stack = ns.InternetStackHelper()
    stack.SetRoutingHelper(ns.Ipv4NixVectorHelper())
    stack.Install(nodes)
    link_helper = ns.PointToPointHelper()
    link_helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.QueueSizeValue(ns.QueueSize(QUEUE)))
    link_helper.SetDeviceAttribute("DataRate", ns.DataRateValue(ns.DataRate(ROW.rate_bps)))
    link_helper.SetDeviceAttribute("Mtu", ns.UintegerValue(9_000))
    # Switches and NICs of ns-3 take no time: the far end's latency is in the delay of the link.
    delay = ns.TimeValue(ns.PicoSeconds(ROW.host_delay_ps + ROW.receive_latency_ps))
    link_helper.SetChannelAttribute("Delay", delay)
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.252"))
    queues = ns.TrafficControlHelper()
    address_of: dict[int, Any] = {}
    keep = []
    for a, b in zip(fabric.links["a"].tolist(), fabric.links["b"].tolist(), strict=True):
        devices = link_helper.Install(nodes.Get(a), nodes.Get(b))
        interfaces = addresses.Assign(devices)
        addresses.NewNetwork()
        queues.Uninstall(devices)  # the queue disc that comes with an address would be a second queue
        for end, node in enumerate((a, b)):
            if fabric.node_kind[node] == HOST:
                address_of[node] = interfaces.GetAddress(end)
        keep.append(interfaces)
    hosts = fabric.hosts.tolist()
    packets = -(-FLOW_BYTES // MTU_BYTES)
    interval = ns.TimeValue(ns.PicoSeconds((MTU_BYTES + 30) * 8 * 10**12 // ROW.rate_bps))
    sinks = ns.ApplicationContainer()
    peers = permutation_peers(len(hosts), 1)
    for source, peer in enumerate(peers):
        sinks.Add(ns.UdpServerHelper(PORT).Install(nodes.Get(hosts[peer])))
        client = ns.UdpClientHelper(address_of[hosts[peer]].ConvertTo(), PORT)
        client.SetAttribute("MaxPackets", ns.UintegerValue(packets))
        client.SetAttribute("Interval", interval)
        client.SetAttribute("PacketSize", ns.UintegerValue(MTU_BYTES))
        client.Install(nodes.Get(hosts[source]))
    ns.Simulator.Stop(ns.PicoSeconds(1))  # the first packet of each flow, which searches its path
    ns.Simulator.Run()
    set_up_s = time.thread_time() - begin_s
    ns.Simulator.Run()
    run_s = time.thread_time() - begin_s - set_up_s
    received = sum(sinks.Get(index).GetReceived() for index in range(sinks.GetN()))
    ns.Simulator.Destroy()
    ns.Ipv4AddressGenerator.Reset()
    wanted = packets * len(hosts)
    if received != wanted:
        raise SystemExit(f"ns-3 delivered {received:,} packets, wanted {wanted:,}")
    return {
        "run_s": run_s,
        "set_up_s": set_up_s,
        "packet_hops": packets * sum(_links(source, peer) for source, peer in enumerate(peers)),
        "data_packets": wanted,
        "pauses": 0,
        "drops": 0,
        "marks": 0,
    }


def _links(source: int, peer: int) -> int:
    """Links of a shortest path: 2 under one leaf, 4 in one pod, else 6."""
    per_leaf = ROW.radix // 2
    if source // per_leaf == peer // per_leaf:
        return 2
    return 4 if source // per_leaf**2 == peer // per_leaf**2 else 6


if __name__ == "__main__":
    serve({"text": "as-ns3 in ns-3: UDP, nix-vector routing"}, simulate)
