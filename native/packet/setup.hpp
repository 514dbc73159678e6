/// What a run is given, and what follows from it before it begins.
/// Invariant: nothing here changes while the run goes on.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <limits>

#include "base/ids.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/packet.hpp"

namespace weftwork {

struct Setup {
  const Input& in;
  std::int32_t class_count;
  unsigned class_shift;
  bool extended = false;
  bool wide = false;
  bool keeps_entropies = false;  // of the packets that are sent: a TIMEOUT tells that of the oldest one
  bool entropy_per_packet = false;
  bool loses = false;               // some link has a random loss or corruption, or will have
  bool moves = false;               // queue pairs may change their ports
  bool steers = false;              // routes have layers, or port selection chooses not only among shortest paths
  bool link_credits = false;        // links give credit, and nobody pauses
  bool has_host_processor = false;  // the hosts' processors have work with data packets
  std::uint32_t lossless = 0;       // classes, as bits
  std::uint32_t path_sample = 0;    // every so many data packets are followed on their path; 0: none
  double window_cap_bytes = std::numeric_limits<double>::infinity();  // no window is more than that

  explicit Setup(const Input& input)
      : in(input),
        class_count(static_cast<std::int32_t>(input.class_priority.size())),
        class_shift(static_cast<unsigned>(std::countr_zero(std::bit_ceil(input.class_priority.size())))) {}

  /// The traffic classes, ascending.
  [[nodiscard]] IdRange<TrafficClass> classes() const { return {TrafficClass(0), TrafficClass(class_count)}; }
  /// One class at one port; rows are padded to a power of two.
  [[nodiscard]] QueueId at(PortId port, TrafficClass klass) const {
    return QueueId((port.value << class_shift) + klass.value);
  }
  /// The same among the ports of one node.
  [[nodiscard]] LocalQueueId at(LocalPort local, TrafficClass klass) const {
    return LocalQueueId((local.value << class_shift) + klass.value);
  }
  /// The local port by which a packet came into its switch.
  [[nodiscard]] LocalPort ingress_port(const Packet& packet) const { return LocalPort(packet.ingress >> class_shift); }
  /// The port that `at` was asked for.
  [[nodiscard]] PortId port_of(QueueId place) const { return PortId(place.value >> class_shift); }
  [[nodiscard]] TrafficClass class_of(QueueId place) const {
    return TrafficClass(place - at(port_of(place), TrafficClass(0)));
  }
  /// The host of a rank.
  [[nodiscard]] NodeId host_of(RankId rank) const { return in.port_node[in.rank_port(rank)]; }
  [[nodiscard]] PortId first_port(NodeId node) const { return PortId(in.port_base[node]); }
  [[nodiscard]] PortId end_port(NodeId node) const { return PortId(in.port_base[node + 1]); }
  [[nodiscard]] IdRange<PortId> ports_of(NodeId node) const { return {first_port(node), end_port(node)}; }
  [[nodiscard]] LocalPort local_port(PortId port) const { return local_port(port, in.port_node[port]); }
  /// A port of a node among the node's.
  [[nodiscard]] LocalPort local_port(PortId port, NodeId node) const { return LocalPort(port - first_port(node)); }
  [[nodiscard]] PortId peer_of(PortId port) const { return in.port_peer[port]; }
};

}  // namespace weftwork
