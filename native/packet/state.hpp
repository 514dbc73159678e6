/// The state of one run: records (`..._records.hpp`) in arrays by the id of what they are about.
/// Naming rule of all records: instants are `..._at_ps` (or `..._until_ps`), durations `..._ps`, so that a state can be
/// shifted in time.
#pragma once
#include <bit>
#include <cstdint>
#include <limits>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/pins.hpp"
#include "packet/agenda.hpp"
#include "packet/calendar.hpp"
#include "packet/containers.hpp"
#include "packet/failures.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/job_records.hpp"
#include "packet/packet.hpp"
#include "packet/path_load.hpp"
#include "packet/port_records.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/rate_table.hpp"
#include "packet/recordings.hpp"
#include "packet/routes.hpp"
#include "packet/server_records.hpp"

namespace weftwork {

struct State {
  const Input& in;
  std::int32_t class_count;
  unsigned class_shift;
  Ps lookahead_ps;
  PacketPool pool;
  Calendar calendar;

  // Ports.
  IdVector<PortId, Port> ports;
  IdVector<PortId, PortCounters> port_counters;
  IdVector<PortId, Ps> due_at_ps;  // next instant at which the port can start something; never: nothing waits
  IdVector<PortId, std::int64_t> rate_bps;
  RateTable rates;                          // empty without telemetry
  IdVector<PortId, PortLoad> loads;         // of switches' ports; empty where no policy asks for loads of paths
  IdVector<PortId, bool> down_at_failover;  // empty before the first one
  IdVector<PortId, double> loss;            // probability that a packet that leaves the port is lost
  IdVector<PortId, Fifo<ControlFrame>> frames_waiting;      // to be sent
  IdVector<PortId, Fifo<ControlFrame>> frames_inbound;      // on the wire towards this port
  IdVector<PortId, NicId> nic_of_port;                      // none at switches
  IdVector<PortId, std::vector<Ps>> inexact_serialisation;  // filled on demand; only where ps_per_byte is 0
  // One traffic class at one port.
  IdVector<QueueId, Queue> queues;
  IdVector<QueueId, QueueControl> queue_controls;
  IdVector<QueueId, Packet*> inbound;  // next packet on the wire towards this port
  IdVector<QueueId, Ingress> ingresses;
  IdVector<QueueId, CreditLane> credit_lanes;  // empty without credits between links
  // Nodes.
  IdVector<SwitchId, SwitchNode> switches;
  IdVector<NodeId, SwitchId> switch_of_node;  // none for hosts
  IdVector<NodeId, std::size_t> mask_base;    // first word of a node in the masks; one more at the end
  std::vector<std::uint64_t> inbound_mask;    // ports with something on the wire towards them
  std::vector<std::uint64_t> frame_mask;      // of those, ports towards which a flow-control frame travels
  std::vector<std::uint64_t> outbound_mask;   // ports with something waiting
  IdVector<NodeId, Agenda> agendas;
  IdVector<NodeId, Ps> woken_from_at_ps, woken_until_ps;  // the window for which a node has last scheduled itself
  IdVector<NicId, NicPort> nics;
  // Job and queue pairs.
  StableVector<QueuePairId, QueuePair> queue_pairs;
  StableVector<MessageId, Message> messages;
  std::unordered_map<std::uint64_t, QueuePairId> queue_pair_of_flow;
  IdVector<LaneId, Lane> lanes;
  std::unordered_map<std::uint64_t, LaneId> lane_of_flow;
  IdVector<RankId, ServerRank> server_ranks;  // empty without messages inside a server
  std::unordered_map<std::uint64_t, Mailbox> mailboxes;
  IdVector<StreamId, StreamState> streams;
  IdVector<RankId, StreamId> first_stream;  // one more at the end
  std::vector<std::int64_t> tokens;         // by rank, then token
  std::vector<MilestoneRecord> milestones;
  std::int64_t delivered_bytes = 0;      // payload that has arrived once, for progress
  std::int64_t agenda_entries = 0;       // handled in this window by this node
  std::int64_t open_work = 0;            // streams that have not ended and messages that are not acknowledged
  std::int64_t paused_ingresses = 0;     // of all switches
  std::int64_t hops_at_last_watch = -1;  // `count.packet_hops`, when a deadlock was looked for last
  std::vector<DeadlockRow> deadlock;     // the cycle that ended the run; empty: none

  Pins pins;
  RouteTableId route_table{0};  // that packets follow
  Routes routes;
  IdVector<CandidateId, Candidate> candidates;  // of every group, one after the other, as port selection sees them
  IdVector<GroupId, Ways> ways;                 // of every group, those candidates that are up
  IdVector<CandidateId, PortId> way_ports;      // ports of the candidates
  std::vector<Candidate> joined_candidates;     // of one packet, where they are no group of the table
  IdVector<DeviceId, HashFunction> hash_functions;
  std::vector<std::unique_ptr<std::uint64_t[]>> records;  // of policies
  std::int64_t step_calls = 0;                            // of all policies, so far
  Signal signal{};
  PortSignal port_signal{};
  std::vector<std::uint64_t> keys, scratch;  // arrivals of a window
  std::vector<std::uint32_t> histogram;
  std::vector<SeriesRow> series;
  std::vector<EventRow> events;
  std::int64_t events_left_out = 0;
  std::vector<CapturedPort> captured;                 // empty where nobody asks
  IdVector<QueuePairId, std::vector<PathUse>> paths;  // only of those that have sent a packet of the sample
  Counters count;
  std::size_t next_instant = 0;
  Ps next_sample_at_ps = kNeverPs;
  Ps sample_every_ps = 0;
  bool extended = false;
  bool wide = false;
  bool keeps_entropies = false;  // of the packets that are sent: a TIMEOUT tells that of the oldest one
  bool signal_has_hops = false;  // the arrays of `signal` are not zero
  bool entropy_per_packet = false;
  bool loses = false;               // some link has a random loss or corruption, or will have
  std::uint32_t lossless = 0;       // classes, as bits
  std::uint32_t path_sample = 0;    // every so many data packets are followed on their path; 0: none
  bool moves = false;               // queue pairs may change their ports
  bool steers = false;              // routes have layers, or port selection chooses not only among shortest paths
  bool link_credits = false;        // links give credit, and nobody pauses
  bool has_host_processor = false;  // the hosts' processors have work with data packets
  double window_cap_bytes = std::numeric_limits<double>::infinity();  // no window is more than that

  State(const Input& input, Ps lookahead, std::size_t stride)
      : in(input),
        class_count(static_cast<std::int32_t>(input.class_priority.size())),
        class_shift(static_cast<unsigned>(std::countr_zero(std::bit_ceil(input.class_priority.size())))),
        lookahead_ps(lookahead),
        pool(stride),
        calendar(input.node_kind.size(), lookahead),
        pins(input.pins),
        routes(input.routes[RouteTableId(0)], input.node_kind.size()) {}

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
  [[nodiscard]] std::uint64_t flow_of(const Message& message) const {
    return message.lane.is_none() ? queue_pairs[message.queue_pair].flow : lanes[message.lane].flow;
  }
  /// How often `token` was raised at a rank and not taken.
  [[nodiscard]] std::int64_t& token(RankId rank, std::int64_t token) {
    return tokens[rank.index() * static_cast<std::size_t>(in.tokens) + static_cast<std::size_t>(token)];
  }
  /// Record an event if there is room; `in.series.event_limit` is 0 where nobody asks.
  void note(Ps at_ps, EventKind kind, std::int64_t place, std::int64_t detail) {
    if (in.series.event_limit == 0) [[likely]]
      return;
    if (std::cmp_less(events.size(), in.series.event_limit))
      events.push_back({at_ps, static_cast<std::int64_t>(kind), place, detail});
    else
      events_left_out += 1;
  }
  /// Bytes of all classes that wait at an egress port.
  [[nodiscard]] std::int64_t queued_bytes(PortId port) const {
    std::int64_t bytes = 0;
    for (const TrafficClass klass : classes()) bytes += queues[at(port, klass)].bytes;
    return bytes;
  }
  [[nodiscard]] PortId first_port(NodeId node) const { return PortId(in.port_base[node]); }
  [[nodiscard]] PortId end_port(NodeId node) const { return PortId(in.port_base[node + 1]); }
  [[nodiscard]] IdRange<PortId> ports_of(NodeId node) const { return {first_port(node), end_port(node)}; }
  [[nodiscard]] LocalPort local_port(PortId port) const { return LocalPort(port - first_port(in.port_node[port])); }
  [[nodiscard]] PortId peer_of(PortId port) const { return in.port_peer[port]; }

  static void set_bit(std::vector<std::uint64_t>& mask, std::size_t base, LocalPort local) {
    mask[base + local.index() / 64] |= std::uint64_t{1} << (local.index() % 64);
  }
  /// A packet that leaves `out` arrives at `at_ps`: let the far end know, once for all that arrives in the same window.
  void announce(Port& out, Ps at_ps) {
    if (at_ps < out.announced_until_ps) [[likely]]
      return;
    set_bit(inbound_mask, mask_base[out.peer_node], out.peer_local);
    out.announced_until_ps = calendar.schedule(out.peer_node, at_ps);
  }
  /// A node has something to do of its own at `at_ps`.
  void wake_node(NodeId node, Ps at_ps) {
    if (at_ps >= kNeverPs || (at_ps >= woken_from_at_ps[node] && at_ps < woken_until_ps[node])) return;
    woken_until_ps[node] = calendar.schedule(node, at_ps);
    woken_from_at_ps[node] = woken_until_ps[node] - lookahead_ps;
  }
  /// The same for a flow-control frame.
  void announce_frame(const Port& out, Ps at_ps) {
    const std::size_t base = mask_base[out.peer_node];
    set_bit(inbound_mask, base, out.peer_local);
    set_bit(frame_mask, base, out.peer_local);
    calendar.schedule(out.peer_node, at_ps);
  }
  void set_outbound(PortId port, NodeId node, bool waits) {
    const LocalPort local(port - first_port(node));
    std::uint64_t& word = outbound_mask[mask_base[node] + local.index() / 64];
    const std::uint64_t mask = std::uint64_t{1} << (local.index() % 64);
    word = waits ? word | mask : word & ~mask;
  }

  /// Time on the line of a frame and what follows it.
  [[gnu::always_inline]] Ps serialisation(const Port& port, std::int64_t frame_bytes) {
    const std::int64_t bytes = frame_bytes + in.transport.interframe_bytes;
    if (port.ps_per_byte != 0) [[likely]]
      return bytes * port.ps_per_byte;
    return inexact(ports.id_of(port), bytes);
  }
  [[gnu::noinline]] Ps inexact(PortId port, std::int64_t bytes) {
    std::vector<Ps>& known = inexact_serialisation[port];
    const auto index = static_cast<std::size_t>(bytes);
    if (known.size() <= index) known.resize(index + 1, kOff);
    if (known[index] == kOff) known[index] = serialisation_ps(bytes, rate_bps[port]);
    return known[index];
  }
};

// Ids that are easily taken for one another: a wrong one does not compile.
static_assert(detail::IndexedBy<decltype(State::queues), QueueId>);
static_assert(!detail::IndexedBy<decltype(State::queues), PortId> &&
              !detail::IndexedBy<decltype(State::queues), LocalQueueId>);
static_assert(!detail::IndexedBy<decltype(State::ports), LocalPort> &&
              !detail::IndexedBy<decltype(State::ports), NicId>);
static_assert(!detail::IndexedBy<decltype(State::switches), NodeId>);
static_assert(!detail::IndexedBy<decltype(State::messages), std::size_t> &&
              !detail::IndexedBy<decltype(State::messages), QueuePairId>);
static_assert(!detail::IndexedBy<decltype(NicPort::slots), ReceiverSlotId>);
static_assert(!detail::IndexedBy<decltype(Input::port_node), NodeId>);

}  // namespace weftwork
