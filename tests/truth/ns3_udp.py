"""ns-3 sends UDP flows to one host over point-to-point links and tells when the last byte came; a process of its own.

Source: ns-3 model library, "Point-to-Point NetDevice", "Applications" (UdpClient, UdpServer), "Internet models"; the
package `ns3` on PyPI. Leaves out: queues that drop, traffic control (taken off), ARP (such links have none).

Its argument is a JSON list of cases: `senders`, `packets` (of each), `frame_bytes` (with the PPP header), and `links`
in order from the senders, each with `rate_bps` and `delay_ps`. With one link, the only sender is wired to the receiver;
with more, every sender has a first link, to one router, and the others make a chain to the receiver.
It prints a JSON list: packets received and the instant of the last event, which is the arrival of the last packet,
since nothing else goes on in such a run.
"""

import json
import sys
from typing import Any

HEADERS_BYTES = 2 + 20 + 8  # PPP without flags and checksum, as ns-3 has it; IPv4; UDP
PORT = 4791


def run(ns: Any, case: dict[str, Any]) -> dict[str, int]:
    senders, links = case["senders"], case["links"]
    nodes = ns.NodeContainer()
    nodes.Create(senders + len(links))  # senders, routers, the receiver
    ns.InternetStackHelper().Install(nodes)
    wires = [(sender, senders, links[0]) for sender in range(senders)]
    wires += [(senders + hop, senders + hop + 1, link) for hop, link in enumerate(links[1:])]
    addresses = ns.Ipv4AddressHelper()
    addresses.SetBase(ns.Ipv4Address("10.0.0.0"), ns.Ipv4Mask("255.255.255.252"))
    for a, b, link in wires:
        helper = ns.PointToPointHelper()
        helper.SetDeviceAttribute("DataRate", ns.StringValue(f"{link['rate_bps']}bps"))
        helper.SetDeviceAttribute("Mtu", ns.UintegerValue(60_000))
        helper.SetChannelAttribute("Delay", ns.StringValue(f"{link['delay_ps']}ps"))
        helper.SetQueue("ns3::DropTailQueue", "MaxSize", ns.StringValue("100000000p"))
        devices = helper.Install(nodes.Get(a), nodes.Get(b))
        interfaces = addresses.Assign(devices)
        ns.TrafficControlHelper().Uninstall(devices)
        addresses.NewNetwork()
    ns.Ipv4GlobalRoutingHelper.PopulateRoutingTables()
    server = ns.UdpServerHelper(PORT).Install(nodes.Get(senders + len(links) - 1))
    client = ns.UdpClientHelper(interfaces.GetAddress(1).ConvertTo(), PORT)
    client.SetAttribute("MaxPackets", ns.UintegerValue(case["packets"]))
    client.SetAttribute("Interval", ns.TimeValue(ns.Time(0)))  # all at once into the queue of the first link
    client.SetAttribute("PacketSize", ns.UintegerValue(case["frame_bytes"] - HEADERS_BYTES))
    for sender in range(senders):
        client.Install(nodes.Get(sender))
    ns.Simulator.Run()
    received = server.Get(0).GetObject[ns.UdpServer]().GetReceived()
    found = {"received": received, "last_event_ps": ns.Simulator.Now().GetPicoSeconds()}
    ns.Simulator.Destroy()
    return found


if __name__ == "__main__":
    from ns import ns as ns3  # here, so that pytest may look into this file where ns-3 is not installed

    ns3.Time.SetResolution(ns3.Time.PS)
    print(json.dumps([run(ns3, case) for case in json.loads(sys.argv[1])]))  # noqa: T201 - the answer
