/// Hops between two ranks: inside their server, or from NIC port to NIC port over the fabric.
/// A router is what flow/router.hpp offers; here it is any type with the calls that `PathFinder` names.
#pragma once
#include <algorithm>
#include <cmath>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

#include "base/failover.hpp"
#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "flow/build.hpp"
#include "flow/graph.hpp"
#include "flow/job.hpp"
#include "flow/links.hpp"
#include "flow/losses.hpp"
#include "flow/router.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

/// How much of a flow's identity its path depends on.
enum class Blindness : std::uint8_t {
  kLeaves,       // spray: from leaf to leaf all flows take the same links
  kDestination,  // deterministic: all flows of one leaf to one port do
  kFlow          // hashed, or by layers: each flow has a path of its own
};

/// `path` appends the hops from a NIC port to another, the sending port first and the port towards the receiver last,
/// and returns its latency, or -1 without a path. `entropy` and `queue_pair` are the UDP source port and the queue pair
/// number that switches hash, `queue_pair_hash` what a queue pair draws its detour by. `rail_port(a, b)` is the port of
/// a's node with the number that b has at its node, or none. `leaf` names the node at the other end of a NIC port,
/// `entry` the link from there to it.
template <typename Router>
concept PathFinder =
    requires(const Router& router, PortId port, std::uint32_t word, std::int64_t hash, std::vector<Hop>& hops) {
      { router.path(port, port, word, word, hash, hops) } -> std::convertible_to<std::int64_t>;
      { router.blindness() } -> std::same_as<Blindness>;
      { router.rail_port(port, port) } -> std::same_as<PortId>;
      { router.leaf(port) } -> std::same_as<NodeId>;
      { router.entry(port) } -> std::same_as<PortId>;
    };

template <PathFinder Router>
class HopFinder {
 public:
  HopFinder(const Job& job, const Links& links, const Router& router, Wire wire, Outage outage,
            const Lossy* lossy = nullptr)
      : job(job), links(links), router(router), wire(wire), outage(outage), lossy(lossy) {}

  const Job& job;
  const Links& links;
  const Router& router;
  Wire wire;
  Outage outage;
  const Lossy* lossy;  // none: nothing is lost

  [[nodiscard]] bool share_host(RankId a, RankId b) const { return host(a) == host(b); }
  [[nodiscard]] NodeId host(RankId rank) const { return job.rank_host[rank]; }

  /// Add `weight` bytes from one rank of a server to another; returns the latency.
  std::int64_t inside(RankId source, RankId destination, double weight, Gather& gather) const {
    const GpuRow& sender = job.rank_gpu[source];
    const bool nvlink = share_nvlink(sender, job.rank_gpu[destination]);
    gather.add(inside_link(links, job, source, nvlink, false), weight);
    gather.add(inside_link(links, job, destination, nvlink, true), weight);
    return nvlink ? sender.nvlink_latency_ps : sender.pcie_latency_ps;
  }

  /// Add `weight` bytes of payload of the queue pair (source, destination, channel) from port to port.
  std::int64_t across(RankId source, RankId destination, std::int64_t channel, PortPair ports, double weight,
                      Gather& gather, bool is_call = true) {
    const auto [from, to] = ports;
    std::uint32_t entropy = 0, number = 0;
    std::int64_t hash = 0;
    if (router.blindness() == Blindness::kFlow) {  // docs/models/packet-engine.md, "Entropy" and "Hash"
      const std::uint64_t flow = flow_identity(source.value, destination.value, channel);
      entropy = job.own_entropy(flow);
      number = queue_pair_number(flow);
      hash = queue_pair_hash(job.seed, flow);
    }
    scratch_.clear();
    const std::int64_t latency_ps = router.path(from, to, entropy, number, hash, scratch_);
    if (latency_ps < 0) return nowhere({from, to}, gather);
    const PathLoss lost = loss_of(latency_ps);
    if (lost.data > 0.0) weight *= sent_again(lost);
    for (const Hop& hop : scratch_) gather.add(hop.link, weight * hop.weight * wire.link);
    if (links.has_host_interface(to)) gather.add(links.host_interface(to), weight * wire.host);
    if (lost.data <= 0.0) return latency_ps;
    const double end_waits = is_call ? lossy->rules.call_waits : lossy->rules.end_waits;
    return latency_ps + std::llround(lost.end_ps(lossy->rules, lost.trip_packets(), end_waits));
  }

  /// What no path joins stands still; returns its latency, none.
  std::int64_t nowhere(PortPair ports, Gather& gather) const {
    if (outage.nowhere.is_none()) throw NoPath{ports.source, ports.destination};
    gather.add(outage.nowhere, 1.0);
    return 0;
  }

  /// The ports between two ranks by one column, or by those that work instead. `door` is whose port the sender uses.
  [[nodiscard]] PortPair own_ports(RankId door, RankId destination, std::size_t column) const {
    return working(column, [&](std::size_t k) { return PortPair{job.port(door, k), job.port(destination, k)}; });
  }
  /// The same where the sender's server sends on the receiver's rail; the owner's own port where it has none there.
  [[nodiscard]] PortPair rail_ports(RankId owner, RankId destination, std::size_t column) const {
    return working(column, [&](std::size_t k) {
      const PortId own = job.port(owner, k), to = job.port(destination, k);
      const PortId rail = router.rail_port(own, to);
      return PortPair{rail.is_none() ? own : rail, to};
    });
  }

  /// Hops of the messages of a SEND row; returns their latency.
  std::int64_t connection(RankId source, RankId destination, const OpRow& op, Gather& gather) {
    if (share_host(source, destination)) return inside(source, destination, 1.0, gather);
    const auto column = static_cast<std::size_t>(op.nic);
    const PortPair ports =
        op.peer_rail != 0 ? rail_ports(source, destination, column) : own_ports(source, destination, column);
    return across(source, destination, op.channel, ports, 1.0, gather, false);
  }

 private:
  template <typename PortsOf>
  [[nodiscard]] PortPair working(std::size_t column, PortsOf&& ports_of) const {
    const PortPair ports = ports_of(column);
    if (outage.down.empty()) return ports;
    return working_ports(job.columns(), column, ports, [&](PortId port) { return outage.down[port] == 0; }, ports_of);
  }

  [[nodiscard]] PathLoss loss_of(std::int64_t latency_ps) const {
    if (lossy == nullptr) return {};
    return path_loss(scratch_, static_cast<double>(latency_ps), lossy->fabric, links, lossy->wire, lossy->loss);
  }
  /// Bytes that take their turn for each that arrives. A size is not known here: waiting for a timeout inside a message
  /// counts as bytes that the flow sends meanwhile.
  [[nodiscard]] double sent_again(const PathLoss& lost) const {
    return lost.sent(lossy->rules) +
           lost.wait_ps(lossy->rules, std::numeric_limits<double>::infinity()) / lost.packet_ps;
  }

  std::vector<Hop> scratch_;
};

}  // namespace weftwork::flow
