"""ns-3 sends long TCP flows through one queue and tells payload and queue; a process of its own.

Source: ns-3 model library, "TCP models in ns-3", "RED queue disc"; the package `ns3` on PyPI. Leaves out: delayed ACKs
(taken off), ARP (such links have none), the queue disc where the queue is drop tail (taken off).

Its argument is a JSON list of cases: `control` (a type of ns-3), `recovery` (the same), `senders`, `payload_bytes`,
`rate_bps` of the queue's link and `access_bps` of the others, `delay_ps` of each link, `queue_packets`, `mark_packets`
(0: the queue drops and marks nothing), `start_ps` between two senders, `from_ps` and `until_ps` of what is counted,
`sample_ps` between two looks at the queue, and `attributes` with their values as text.
It prints a JSON list: payload that each receiver has taken in that time, and packets in the queue at each look.
"""

import json
import sys
from typing import Any

PORT = 5001  # chosen: iperf's


def attribute(ns: Any, name: str, value: str) -> None:
    ns.Config.SetDefault(name, ns.StringValue(value))


def run(ns: Any, case: dict[str, Any]) -> dict[str, Any]:
    senders = case["senders"]
    router, receiver = senders, senders + 1
    attribute(ns, "ns3::TcpL4Protocol::SocketType", case["control"])
    attribute(ns, "ns3::TcpL4Protocol::RecoveryType", case["recovery"])
    attribute(ns, "ns3::TcpSocket::SegmentSize", str(case["payload_bytes"]))
    attribute(ns, "ns3::TcpSocket::DelAckCount", "1")
    for name in ("SndBufSize", "RcvBufSize"):
        attribute(ns, f"ns3::TcpSocket::{name}", str(1 << 26))  # chosen: never the limit
    for name, value in case["attributes"].items():
        attribute(ns, name, value)
    nodes = ns.NodeContainer()
    nodes.Create(senders + 2)
    ns.InternetStackHelper().Install(nodes)
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.252"))
    keep = []
    for a, b in [*((sender, router) for sender in range(senders)), (router, receiver)]:
        is_slow = b == receiver
        helper = ns.PointToPointHelper()
        helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{case['rate_bps' if is_slow else 'access_bps']}bps"))
        helper.SetChannelAttribute("Delay", ns.StringValue(f"{case['delay_ps']}ps"))
        device_packets = 100_000
        if is_slow:
            device_packets = 1 if case["mark_packets"] else case["queue_packets"]
        helper.SetQueue("ns3::DropTailQueue<Packet>", "MaxSize", ns.StringValue(f"{device_packets}p"))
        devices = helper.Install(nodes.Get(a), nodes.Get(b))
        control = ns.TrafficControlHelper()
        if is_slow and case["mark_packets"]:
            red = {
                "MinTh": case["mark_packets"], "MaxTh": case["mark_packets"], "QW": 1, "Gentle": "false",
                "UseEcn": "true", "UseHardDrop": "false", "MaxSize": f"{case['queue_packets']}p",
                "LinkBandwidth": f"{case['rate_bps']}bps", "LinkDelay": f"{case['delay_ps']}ps",
            }  # fmt: skip
            for name, value in red.items():
                attribute(ns, f"ns3::RedQueueDisc::{name}", str(value))
            control.SetRootQueueDisc("ns3::RedQueueDisc")
            discs = control.Install(devices)
        interfaces = addresses.Assign(devices)
        if not (is_slow and case["mark_packets"]):
            control.Uninstall(devices)
        addresses.NewNetwork()
        keep.append((devices, interfaces))
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    target = interfaces.GetAddress(1)
    sinks = []
    for sender in range(senders):
        where = ns.InetSocketAddress(target, PORT + sender)
        sink = ns.PacketSinkHelper("ns3::TcpSocketFactory", where.ConvertTo())
        sinks.append(sink.Install(nodes.Get(receiver)).Get(0).GetObject[ns.PacketSink]())
        source = ns.BulkSendHelper("ns3::TcpSocketFactory", where.ConvertTo())
        source.SetAttribute("MaxBytes", ns.UintegerValue(0))
        source.SetAttribute("SendSize", ns.UintegerValue(case["payload_bytes"]))
        source.Install(nodes.Get(sender)).Start(ns.PicoSeconds(sender * case["start_ps"]))
    queue = devices.Get(0).GetObject[ns.PointToPointNetDevice]().GetQueue()
    ns.Simulator.Stop(ns.PicoSeconds(case["from_ps"]))
    ns.Simulator.Run()
    before = [int(sink.GetTotalRx()) for sink in sinks]
    looks = (case["until_ps"] - case["from_ps"]) // case["sample_ps"]
    queued = []
    for _ in range(looks):
        ns.Simulator.Stop(ns.PicoSeconds(case["sample_ps"]))
        ns.Simulator.Run()
        in_disc = int(discs.Get(0).GetNPackets()) if case["mark_packets"] else 0
        queued.append(int(queue.GetNPackets()) + in_disc)
    payload = [int(sink.GetTotalRx()) - was for sink, was in zip(sinks, before, strict=True)]
    ns.Simulator.Destroy()
    ns.Ipv4AddressGenerator.Reset()
    return {"payload_bytes": payload, "queue_packets": queued}


if __name__ == "__main__":
    from ns import ns as ns3  # here, so that pytest may look into this file where ns-3 is not installed

    ns3.Time.SetResolution(ns3.Time.PS)
    print(json.dumps([run(ns3, case) for case in json.loads(sys.argv[1])]))  # noqa: T201 - the answer
