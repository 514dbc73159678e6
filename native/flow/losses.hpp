/// What losses cost a flow on average: bytes that are sent again, and time in which nothing is sent.
/// Source: docs/models/flow-losses.md; go-back-N is Bertsekas and Gallager, Data Networks, section 2.4.2.
/// Leaves out: the draw of each loss, and congestion controls that slow down after one.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"
#include "flow/fabric_view.hpp"
#include "flow/links.hpp"
#include "flow/wire_sizes.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/transport.hpp"

namespace weftwork::flow {

/// Losses of one path, and what their cost is counted in.
struct PathLoss {
  double data = 0, reply = 0;  // probabilities of a data packet, and of its answer
  double round_ps = 0;         // round trip that meets nobody
  double packet_ps = 1;        // of a full packet on the slowest link

  [[nodiscard]] double trip_packets() const { return round_ps / packet_ps; }
  /// Packets sent for each packet that arrives.
  [[nodiscard]] double sent(const LossRules& rules) const {
    if (data <= 0) return 1.0;
    const double lost = rules.repeats * data / (1.0 - data);
    return 1.0 + lost * (rules.goes_back != 0 ? std::floor(trip_packets()) + 2.0 : 1.0);
  }
  /// Waiting for timeouts, for each packet of a message of so many.
  [[nodiscard]] double wait_ps(const LossRules& rules, double packets) const {
    if (rules.waits_always != 0) {
      const double kept = std::min({packets / 2.0, rules.kept_packets, rules.timeout_ps / packet_ps});
      return rules.waits * data / (1.0 - data) * (rules.timeout_ps + round_ps) / (1.0 + data * kept);
    }
    return rules.waits_at_gaps != 0 ? rules.waits * data * (data + reply) * rules.timeout_ps : 0.0;
  }
  /// Waiting behind the last packet of a message of so many packets.
  [[nodiscard]] double end_ps(const LossRules& rules, double packets, double end_waits) const {
    const double trip = trip_packets(), late = std::min(packets, trip);
    // what is lost in the last round trip of a message is repaired after its end; go-back-N counts this in `sent`
    const double repair = rules.goes_back != 0 || rules.waits_always != 0 || trip <= 0
                              ? 0.0
                              : rules.repeats * data / (1.0 - data) * late * round_ps * (1.0 - late / (2.0 * trip));
    return repair + (rules.waits_always != 0 ? 0.0 : end_waits * data * rules.timeout_ps);
  }
};

/// Losses of a path by the hops that lead there, whose weights are shares of its packets.
inline PathLoss path_loss(const std::vector<Hop>& hops, double latency_ps, const FabricView& fabric, const Links& links,
                          const WireSizes& wire, const IdVector<PortId, double>& loss) {
  PathLoss found;
  const auto frame = static_cast<double>(wire.mtu_bytes + wire.overhead_bytes + wire.gap_bytes);
  const auto ack = static_cast<double>(wire.ack_bytes + wire.gap_bytes);
  double arrives = 1.0, answers = 1.0;
  found.round_ps = 2.0 * latency_ps;
  for (const Hop& hop : hops) {
    const PortId port(hop.link.value);
    arrives *= 1.0 - hop.weight * loss[port];
    answers *= 1.0 - hop.weight * loss[fabric.peer(port)];
    const double packet_ps = frame / links.capacity[hop.link];
    found.packet_ps = std::max(found.packet_ps, packet_ps);
    found.round_ps += hop.weight * (packet_ps + ack / links.capacity[hop.link]);
  }
  found.data = 1.0 - arrives;
  found.reply = 1.0 - answers;
  return found;
}

}  // namespace weftwork::flow
