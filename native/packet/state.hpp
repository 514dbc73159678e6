/// The state of one run: plain structs in arrays by port, by (port, class), by node and by queue pair.
/// Naming rule: instants are `..._at_ps` (or `..._until_ps`), durations `..._ps`, so that a state can be shifted in
/// time.
#pragma once
#include <array>
#include <bit>
#include <cstdint>
#include <memory>
#include <stdexcept>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/programs.hpp"
#include "packet/agenda.hpp"
#include "packet/calendar.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/packet.hpp"
#include "packet/routes.hpp"
#include "packet/selective.hpp"

namespace weftwork {

/// Elements by id that never move, so that a reference survives growth.
template <typename I, typename T>
class StableVector {
 public:
  T& operator[](I id) { return blocks_[id.index() >> kShift][id.index() & kMask]; }
  const T& operator[](I id) const { return blocks_[id.index() >> kShift][id.index() & kMask]; }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] IdRange<I> ids() const { return {I(0), next_id()}; }
  /// The id that the next element gets.
  [[nodiscard]] I next_id() const { return I(size_); }
  T& emplace() {
    if ((size_ & kMask) == 0 && (size_ >> kShift) == blocks_.size())
      blocks_.push_back(std::make_unique<T[]>(kMask + 1));
    const I id = next_id();
    size_ += 1;
    return (*this)[id];
  }

 private:
  static constexpr std::size_t kShift = 8;
  static constexpr std::size_t kMask = (1U << kShift) - 1;
  std::vector<std::unique_ptr<T[]>> blocks_;
  std::size_t size_ = 0;
};

/// One class of packets at an egress port: what every enqueue and departure touches.
/// The reader at the far end keeps its own position (`State::inbound`).
struct Queue {
  Packet* tail = nullptr;       // where the next packet is written
  Packet* departure = nullptr;  // first packet that has not departed
  std::int32_t bytes = 0;       // of frames between the two
  std::int32_t max_bytes = 0;
};

/// The rest of a queue, touched where a class is paused or shares a port by weight.
struct QueueControl {
  Ps paused_until_ps = 0;
  std::int64_t deficit = 0;
};

/// What one (ingress port, class) holds of its switch's buffer; at a NIC only `paused` and `refresh_at_ps` are used.
struct Ingress {
  std::int32_t used = 0;
  std::int32_t headroom_used = 0;
  std::int32_t max_bytes = 0;  // of both together
  bool paused = false;
  Ps refresh_at_ps = kOff;
};

/// An egress port: what a transmission touches, in one cache line.
struct alignas(64) Port {
  Ps free_at_ps = 0;
  Ps delay_ps = 0;
  std::int64_t ps_per_byte = 0;  // 0: the rate does not divide evenly, see `State::serialisation`
  Ps marked_until_ps = 0;        // the far end knows of arrivals before that instant
  std::int64_t frames = 0;
  std::int64_t bytes = 0;
  NodeId peer_node;
  LocalPort peer_local;       // the far end at its node
  std::uint16_t pending = 0;  // classes with a packet
  std::uint16_t paused = 0;   // classes with paused_until_ps set; may be stale
  std::uint16_t current = 0;  // deficit round robin: class being served
  bool up = true;
  bool frame_waits = false;  // a flow-control frame has not departed
};
static_assert(sizeof(Port) == 64);

struct PortCounters {
  std::int64_t drops = 0, marks = 0, pauses_sent = 0, resumes_sent = 0, paused_ps = 0;
};

struct ControlFrame {
  Ps at_ps;  // arrival
  TrafficClass klass;
  std::int32_t quanta;
};

/// First in, first out, without a fixed size.
template <typename T>
struct Fifo {
  std::vector<T> items;
  std::size_t head = 0;

  [[nodiscard]] bool empty() const { return head == items.size(); }
  [[nodiscard]] std::size_t size() const { return items.size() - head; }
  T& front() { return items[head]; }
  void push(const T& item) { items.push_back(item); }
  void pop() {
    if (++head == items.size()) {
      clear();
    } else if (head >= 64 && 2 * head >= items.size()) {
      items.erase(items.begin(), items.begin() + static_cast<std::ptrdiff_t>(head));
      head = 0;
    }
  }
  void clear() {
    items.clear();
    head = 0;
  }
};

/// A hash function of some switches, and how its digest follows from the one that packets carry.
struct HashFunction {
  HashAlgorithm algorithm = HashAlgorithm::kCrc32;
  std::uint32_t seed = 0;
  std::uint32_t offset = 0;
  std::uint32_t fields = 0;
  std::uint32_t seed_effect = 0;  // XORed into the digest; a CRC is affine in its initial value
  bool carried = false;           // the packet's `hash` is this function's digest
};

struct SwitchNode {
  std::int64_t shared_used = 0;
  std::int64_t shared_bytes = 0;
  Ps next_due_at_ps = kNeverPs;  // no port can start anything earlier
  std::int32_t paused_ingresses = 0;
  DeviceId device;
  std::uint32_t weighted = 0;              // classes that share a port by weight
  std::vector<QueueId> paused;             // ingresses, ascending
  std::vector<std::uint64_t> port_policy;  // state record of port selection
};

struct QueuePair;

inline constexpr QueuePairId kMovedAway;  // in a slot whose queue pair has another port now

/// A NIC port: who may send next, and what waits for the host.
struct NicPort {
  struct Paced {
    Ps at_ps;
    SlotId slot;
  };
  struct Arrived {
    Ps complete_at_ps;
    Ps arrived_at_ps;
    std::array<std::uint8_t, kTelemetryStride> packet;
  };
  IdVector<SlotId, QueuePairId> slots;  // or kMovedAway
  IdBitmap<SlotId> ready;               // may send as far as pacing is concerned
  std::vector<Paced> paced;             // heap by (instant, slot)
  SlotId turn{0};                       // that is asked first
  std::uint32_t ready_count = 0;
  IdVector<ReceiverSlotId, QueuePairId> receivers;  // or kMovedAway
  Fifo<Arrived> host_interface;
  Ps pcie_free_at_ps = 0;
  std::int64_t pcie_rate_bps = 0;   // 0: takes no time
  bool has_host_interface = false;  // data packets pass one
  std::int64_t receive_used_bytes = 0;
  bool pauses = false;                // has asked the fabric to pause
  std::vector<std::uint64_t> shared;  // record that the receiver's steps share
};

struct Message {
  std::int64_t size_bytes = 0;
  Ps posted_at_ps = 0, delivered_at_ps = -1, acked_at_ps = -1;
  std::int64_t first = 0, end = 0;  // packet numbers
  QueuePairId queue_pair;           // none inside a server
  LaneId lane;                      // none between servers
  MessageId next;                   // of the same queue pair or lane
  StreamId stream;
  std::int32_t ordinal = 0;
  TrafficClass klass{0};
};

enum class Standing : std::uint8_t { kBlocked, kReady, kPaced };

/// What sending a packet and its ACK touch fills two cache lines.
struct alignas(64) Sender {
  std::int64_t una = 0, nxt = 0, high = 0, end = 0;
  std::int64_t una_bytes = 0, nxt_bytes = 0, end_bytes = 0;  // payload before una, nxt and end
  Ps next_send_at_ps = 0;
  Ps deadline_at_ps = kOff, deadline_entry_at_ps = kOff;
  std::int64_t credit_limit = 0;
  MessageId una_message, nxt_message, last_message;
  SlotId slot;
  std::int64_t retries = 0;
  std::uint32_t probes = 0;
  std::uint16_t attempt = 0;
  std::uint16_t entropy = 0;  // that the next packet carries
  std::uint32_t hash = 0;     // digest for that entropy
  Standing standing = Standing::kBlocked;
  bool failed = false;
  bool started = false;
  Ps base_rtt_ps = 0;
  Ps timer_entry_at_ps[kTimers] = {kOff, kOff, kOff, kOff};
};

/// Flags of packets that arrived early: a ring by packet number, one place for each packet of the window.
class EarlyPackets {
 public:
  [[nodiscard]] bool empty() const { return flags_.empty(); }
  void resize(std::int64_t window_packets) { flags_.resize(static_cast<std::size_t>(window_packets)); }
  auto operator[](std::int64_t seq) { return flags_[static_cast<std::size_t>(seq) % flags_.size()]; }

 private:
  std::vector<bool> flags_;
};

struct alignas(64) Receiver {
  std::int64_t expected = 0;
  std::int64_t delivered = 0, claimed = 0;  // messages
  MessageId message;                        // first that is not delivered
  ReceiverSlotId slot;                      // none before the first packet
  std::uint16_t control_packets = 0;
  std::uint8_t last_credit_code = 0xFF;
  bool nak_sent = false;
  bool marked = false;
  std::int64_t kept_count = 0;
  EarlyPackets kept;       // only with a reordering receiver
  EarlyPackets kept_asks;  // of those kept: whether it asked for an ACK
  Ps timer_entry_at_ps[kTimers] = {kOff, kOff, kOff, kOff};
};

/// The NIC ports at both ends of a queue pair.
struct PortPair {
  PortId source, destination;
};

struct QueuePair {
  std::uint64_t flow = 0;  // identity
  PortId source_port, destination_port;
  RankId source_rank, destination_rank;
  std::int32_t channel = 0;
  std::uint16_t own_entropy = 0;
  std::uint32_t reverse_hash = 0;
  std::int32_t messages = 0;
  std::uint8_t* congestion = nullptr;  // records of the policies
  std::uint8_t* receiver_record = nullptr;
  std::uint8_t* path = nullptr;
  Sender sender;
  Receiver receiver;
  std::unique_ptr<Selective> selective;  // under selective repeat, from the first loss on
  ColumnId column;                       // of its first SEND
  bool peer_rail = false;
};

/// Messages of one (source, destination, channel) inside a server.
struct Lane {
  std::uint64_t flow = 0;
  RankId destination_rank;
  LaneSlotId slot;
  MessageId head, last;  // the first that has a chunk left, and the last one
  std::int32_t messages = 0;
  std::int64_t started_bytes = 0;  // of `head`
};

/// One end of a rank's NVLink or PCIe inside its server.
struct ServerLink {
  IdVector<LaneSlotId, LaneId> lanes;  // in the order in which they were opened
  IdBitmap<LaneSlotId> ready;          // have a chunk
  LaneSlotId turn{0};                  // that is asked first
  bool busy = false;
  Ps ingress_free_at_ps = 0;
};

struct ServerRank {
  struct Arrival {
    Ps at_ps;
    std::int64_t order;  // in which last chunks for this rank started
    MessageId message;
  };
  ServerLink nvlink, pcie;
  std::vector<Arrival> arrivals;  // heap
  std::int64_t started = 0;       // last chunks

  [[nodiscard]] ServerLink& link(Link link) { return link == Link::kNvlink ? nvlink : pcie; }
};

/// Receives of one (source, destination, channel), known to the destination before its first message too.
struct Mailbox {
  std::int64_t delivered = 0;
  std::int64_t claimed = 0;
  IdVector<ClaimId, StreamId> waiting;
  QueuePairId queue_pair;  // none before its first message
};

struct StreamState : StreamProgress {
  RankId rank;
};

struct MarkRecord {
  std::int64_t rank, name;
  Ps at_ps;
};

struct SeriesRow {
  Ps at_ps;
  std::int64_t kind, index;
  double value;
};

/// What a queue pair has sent by one egress port, as far as it was counted.
struct PathUse {
  std::int64_t port, packets, queue_bytes;
};

/// Something that a person would look for in time; recorded only where asked for, up to a limit.
enum class EventKind : std::int64_t { kPause, kResume, kMark, kDrop, kTimeout, kGoBack };

struct EventRow {
  Ps at_ps;
  std::int64_t kind;
  std::int64_t place;   // port; kTimeout, kGoBack: queue pair
  std::int64_t detail;  // kPause, kResume: class; kDrop: reason, in the order of Counters
};

struct Counters {
  std::int64_t packet_hops = 0, data_sent = 0, retransmissions = 0, acks_sent = 0, naks_sent = 0, cnps_sent = 0,
               credits_sent = 0, probes_sent = 0, timeouts = 0, queue_pair_errors = 0, out_of_order_discards = 0,
               duplicates = 0, drop_no_route = 0, drop_link_down = 0, drop_link_loss = 0, drop_corrupted = 0,
               drop_buffer_full = 0, drop_egress_threshold = 0, drop_headroom_full = 0, drop_receive_buffer = 0,
               end_ps = 0;
};

/// A policy's step has failed or has written what it may not; the run stops.
struct PolicyStop : std::runtime_error {
  explicit PolicyStop(PolicyFailure what_failed) : std::runtime_error("policy"), failure(std::move(what_failed)) {}
  PolicyFailure failure;
};

/// A limit of the engine that the input exceeds; the text goes to the user.
struct LimitError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

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
  IdVector<PortId, bool> down_at_failover;                  // empty before the first one
  IdVector<PortId, double> loss;                            // probability that a packet that leaves the port is lost
  IdVector<PortId, Fifo<ControlFrame>> frames_waiting;      // to be sent
  IdVector<PortId, Fifo<ControlFrame>> frames_inbound;      // on the wire towards this port
  IdVector<PortId, NicId> nic_of_port;                      // none at switches
  IdVector<PortId, std::vector<Ps>> inexact_serialisation;  // filled on demand; only where ps_per_byte is 0
  // One traffic class at one port.
  IdVector<QueueId, Queue> queues;
  IdVector<QueueId, QueueControl> queue_controls;
  IdVector<QueueId, Packet*> inbound;  // next packet on the wire towards this port
  IdVector<QueueId, Ingress> ingresses;
  // Nodes.
  IdVector<SwitchId, SwitchNode> switches;
  IdVector<NodeId, SwitchId> switch_of_node;  // none for hosts
  IdVector<NodeId, std::size_t> mask_base;    // first word of a node in the masks; one more at the end
  std::vector<std::uint64_t> inbound_mask;    // ports with something on the wire towards them
  std::vector<std::uint64_t> frame_mask;      // of those, ports towards which a flow-control frame travels
  std::vector<std::uint64_t> outbound_mask;   // ports with something waiting
  IdVector<NodeId, Agenda> agendas;
  IdVector<NodeId, Ps> woken_from_at_ps, woken_until_ps;  // the window for which a node has last marked itself
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
  std::vector<MarkRecord> marks;
  std::int64_t delivered_bytes = 0;  // payload that has arrived once, for progress
  std::int64_t agenda_entries = 0;   // handled in this window by this domain
  std::int64_t open_work = 0;        // streams that have not ended and messages that are not acknowledged

  RouteTableId route_table{0};  // that packets follow
  Routes routes;
  IdVector<CandidateId, Candidate> candidates;  // of every group, one after the other, as port selection sees them
  IdVector<DeviceId, HashFunction> hash_functions;
  std::vector<std::unique_ptr<std::uint64_t[]>> records;  // of policies
  std::vector<std::uint8_t> state_copy, shared_copy;      // before a step, for a replay
  Signal signal{};
  PortSignal port_signal{};
  std::vector<std::uint64_t> keys, scratch;  // arrivals of a window
  std::vector<std::uint32_t> histogram;
  std::vector<SeriesRow> series;
  std::vector<EventRow> events;
  std::int64_t events_left_out = 0;
  IdVector<QueuePairId, std::vector<PathUse>> paths;  // only of those that have sent a packet of the sample
  Counters count;
  std::size_t next_instant = 0;
  Ps next_sample_at_ps = kNeverPs;
  Ps sample_every_ps = 0;
  bool extended = false;
  bool entropy_per_packet = false;
  bool loses = false;             // some link has a random loss or corruption, or will have
  std::uint32_t lossless = 0;     // classes, as bits
  std::uint32_t path_sample = 0;  // every so many data packets are followed on their way; 0: none
  bool moves = false;             // queue pairs may change their ports

  State(const Input& input, Ps lookahead, std::size_t stride)
      : in(input),
        class_count(static_cast<std::int32_t>(input.class_priority.size())),
        class_shift(static_cast<unsigned>(std::countr_zero(std::bit_ceil(input.class_priority.size())))),
        lookahead_ps(lookahead),
        pool(stride),
        calendar(input.node_kind.size(), lookahead),
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
    if (at_ps < out.marked_until_ps) [[likely]]
      return;
    set_bit(inbound_mask, mask_base[out.peer_node], out.peer_local);
    out.marked_until_ps = calendar.mark(out.peer_node, at_ps);
  }
  /// A node has something to do of its own at `at_ps`.
  void wake_node(NodeId node, Ps at_ps) {
    if (at_ps >= kNeverPs || (at_ps >= woken_from_at_ps[node] && at_ps < woken_until_ps[node])) return;
    woken_until_ps[node] = calendar.mark(node, at_ps);
    woken_from_at_ps[node] = woken_until_ps[node] - lookahead_ps;
  }
  /// The same for a flow-control frame.
  void announce_frame(const Port& out, Ps at_ps) {
    const std::size_t base = mask_base[out.peer_node];
    set_bit(inbound_mask, base, out.peer_local);
    set_bit(frame_mask, base, out.peer_local);
    calendar.mark(out.peer_node, at_ps);
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

}  // namespace weftwork
