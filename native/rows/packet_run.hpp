// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// A packet run as its engine takes it.
#pragma once
#include <cstdint>
#include <span>

#include "base/ids.hpp"
#include "base/record_bytes.hpp"
#include "packet/ids.hpp"
#include "rows/fabric.hpp"
#include "rows/job.hpp"
#include "rows/policies.hpp"

namespace weftwork {

/// Next hops at one time.
struct RouteTable {
  /// (nodes, attachments), candidate group, -1 unreachable, -2 this node is the attachment
  std::span<const std::int32_t> group_of;
  /// (groups + 1,), first candidate of each group
  std::span<const std::int64_t> group_ptr;
  /// global ids of the candidates, ascending within a group
  std::span<const std::int32_t> group_ports;
  /// weight of each candidate
  std::span<const std::int32_t> group_weights;
  /// (nodes, attachments), group of the ports to other switches from which an attachment can be reached and that are on
  /// no shortest path, -1: none; (0, 0) where no policy asks
  std::span<const std::int32_t> second_of;
  /// (nodes, attachments), hops over switches, -1 unreachable; (0, 0) where no policy asks
  std::span<const std::int16_t> distance;
  /// (layers, nodes, attachments), candidate group in each layer, -1: the shortest paths hold; (0, 0, 0) without layers
  std::span<const std::int32_t> layer_group;
  /// (attachments, attachments, ways), layer of each way from the first to the second, -1: the shortest paths; ways are
  /// chosen by entropy
  std::span<const std::int32_t> layer_of;
  /// how many of the ways, the first ones, are chosen by entropies below this number alone
  std::int64_t pinned_ways = 0;
  /// of each pair of attachments
  std::int64_t ways = 0;
};

/// What crosses of weftwork.engine.packet_input.PacketInput.
struct PacketInputRows {
  /// of the run
  std::uint64_t seed = 0;
  /// the run ends before the first event at or after it; NEVER_PS: at quiescence [ps]
  std::int64_t until_ps = 0;
  /// (N,), HOST or SWITCH of weftwork.spec.fabric
  IdSpan<NodeId, const std::int8_t> node_kind;
  /// (N,), row of the NICs or switches
  IdSpan<NodeId, const DeviceId> node_device;
  /// (N + 1,), first port of each node; ports of a node are contiguous
  IdSpan<NodeId, const std::int64_t> port_base;
  /// (P,), node of each port
  IdSpan<PortId, const NodeId> port_node;
  /// (P,), far end of each port; -1 without a link
  IdSpan<PortId, const PortId> port_peer;
  /// (P,), of the direction that leaves the port [bit/s]
  IdSpan<PortId, const std::int64_t> port_rate_bps;
  /// (P,), of the direction that leaves the port [ps]
  IdSpan<PortId, const std::int64_t> port_delay_ps;
  /// (P,), probability
  IdSpan<PortId, const double> port_loss;
  /// (P,), probability
  IdSpan<PortId, const double> port_corruption;
  /// (P,), of each lossless class whose ingress is the port [byte]
  IdSpan<PortId, const std::int64_t> port_headroom_bytes;
  /// (P,), ECN threshold of a switch's egress; 0 at hosts [byte]
  IdSpan<PortId, const std::int64_t> port_kmin_bytes;
  /// (P,), ECN threshold of a switch's egress; 0 at hosts [byte]
  IdSpan<PortId, const std::int64_t> port_kmax_bytes;
  /// (P,), room of each lane whose ingress is the port; 0 without link credits [byte]
  IdSpan<PortId, const std::int64_t> port_credit_bytes;
  /// (N,), size of the shared part of a switch's buffer [byte]
  IdSpan<NodeId, const std::int64_t> shared_bytes;
  /// (N,), 0: hosts
  IdSpan<NodeId, const std::int64_t> node_tier;
  /// (N,), pod or group; -1: none
  IdSpan<NodeId, const std::int64_t> node_group;
  /// (P,), attachment for the port of a host, else -1
  IdSpan<PortId, const AttachmentId> attachment;
  /// (P,), for a port selection by destination; see weftwork.topology.digits
  IdSpan<PortId, const std::int64_t> destination_number;
  /// (P,), for a port selection by destination; see weftwork.topology.digits
  IdSpan<PortId, const std::int64_t> port_stride;
  /// (A,), node of each attachment
  std::span<const std::int32_t> attach_node;
  /// (P,), kind of the port's link, as the channel rule has it; -1: a link of a host
  IdSpan<PortId, const std::int64_t> port_kind;
  /// (2, kinds + 1, virtual channels, kinds), next virtual channel by whether a new part of the way begins, kind of the
  /// link in (links of hosts first), channel held and kind of the link out
  std::span<const std::int8_t> channel_rule;
  /// (A,), attachments that a detour may go by, those of a group one after the other
  std::span<const std::int32_t> detour_order;
  /// (groups + 1,), where each group of the detour order begins
  std::span<const std::int64_t> detour_base;
  /// (A,), group of each attachment
  std::span<const std::int32_t> detour_group;
  /// detours avoid the group of the destination too; else only the source's
  bool detour_by_group = false;
  /// settings of switches
  IdSpan<DeviceId, const SwitchRow> switches;
  /// settings of NICs
  IdSpan<DeviceId, const NicRow> nics;
  /// (C,), ascending priorities in use, once for each virtual channel
  IdSpan<TrafficClass, const std::int64_t> class_priority;
  /// (C,), 1: flow control
  IdSpan<TrafficClass, const std::int64_t> class_lossless;
  /// class of ACK, NAK, CNP, CREDIT, REQUEST and PROBE
  TrafficClass control_class = {};
  /// class of packets that were cut
  TrafficClass trim_class = {};
  /// classes of one priority, which follow each other
  std::int32_t virtual_channels = 0;
  /// longest base RTT of any two NIC ports, 0 where no policy reads it [ps]
  std::int64_t fabric_base_rtt_ps = 0;
  /// changes of the fabric, ordered by time and then as they are applied
  std::span<const InstantRow> instants;
  /// operations of the job's programs
  std::span<const OpRow> ops;
  /// streams of the programs; those of one program are contiguous and in order
  std::span<const StreamRow> streams;
  /// peers and coordinates of ranks that operations look up
  std::span<const std::int64_t> tables;
  /// terms of the numbers of parts
  std::span<const DigitRow> digits;
  /// (R,), program of each rank
  IdSpan<RankId, const ProgramId> rank_program;
  /// (R, K), NIC ports of each rank, the usual one first
  std::span<const PortId> rank_ports;
  /// (R,), ports of each rank inside its server
  IdSpan<RankId, const GpuRow> rank_gpu;
  /// of a rank
  std::int64_t tokens = 0;
  /// any program has a Receive
  bool has_receives = false;
  /// queue pairs that take a pinned way, as their entropy is given; one row for each
  std::span<const PinRow> pins;
  /// kinds of links between switches in the channel rule
  std::int64_t link_kinds = 0;
  /// a policy of the sender needs telemetry of switches
  bool has_telemetry = false;
  /// a policy of the sender needs the load of the busiest port on a path
  bool has_path_load = false;
  /// packets carry their departure time, which ACKs and NAKs echo
  bool echoes_time = false;
  /// ACKs and NAKs echo the entropy of their packet
  bool echoes_entropy = false;
  /// a policy reads what only an extended packet carries
  bool extended = false;
  /// a policy reads or writes what only a wide packet carries
  bool wide = false;
  /// a control sends several packets back to back
  bool keeps_segments = false;
  /// between two checks for a deadlock [ps]
  std::int64_t watch_ps = 0;
  /// of a step: the run stops there with its records; 0: nowhere
  std::int64_t stop_before_call = 0;
};

/// A congestion control. Its own classes declare its records.
struct CongestionSettings {
  /// of the compiled step; 0: none
  std::uint64_t step_address = 0;
  /// of the receiver's compiled step; 0: none
  std::uint64_t receive_address = 0;
  /// bits of the kinds at which the step is called
  std::uint32_t signals = 0;
  /// the receiver's step is called for each data packet; else only for marked ones
  bool receive_all = false;
  /// a change of the rate moves the departure that is already set
  bool moves_departures = false;
  /// of its parameters, which only its step reads
  RecordBytes<> params;
  /// of a sender at the start
  RecordBytes<SenderState> state;
  /// of a receiver at the start; empty: no such step
  RecordBytes<ReceiverState> receiver_state;
  /// that the receivers of a NIC share; empty: none, and only its step reads it
  RecordBytes<> shared_state;
};

/// A path selection. Its own classes declare its records; without a step the entropy is constant.
struct PathSettings {
  /// of the compiled step; 0: none
  std::uint64_t step_address = 0;
  /// bits of the kinds at which the step is called
  std::uint32_t signals = 0;
  /// the step is called once for each message; else for each packet
  bool per_message = false;
  /// of its parameters, which only its step reads
  RecordBytes<> params;
  /// of a queue pair at the start; empty: no step
  RecordBytes<PathState> state;
};

/// A port selection. Its own classes declare its records.
struct PortSettings {
  /// of the compiled step; 0: none
  std::uint64_t step_address = 0;
  /// the step needs queues of the candidates
  bool queue = false;
  /// the step reads `paused`
  bool paused = false;
  /// the step reads `queue_pair_hash`, `from_edge` or `to_edge`
  bool origin = false;
  /// the catalogue's own ecmp: hash mod candidates, computed in place
  bool plain_ecmp = false;
  /// the step needs the switches that remain behind each candidate
  bool hops_left = false;
  /// candidates on longer paths too
  bool non_minimal = false;
  /// the step reads `channel` or `turn_channel`
  bool channel = false;
  /// the step reads `detour`, or groups of a packet's ends
  bool detour = false;
  /// the step reads or writes `via`
  bool via = false;
  /// the step is called for a single candidate too
  bool always = false;
  /// the step is called at the destination's attachment too
  bool at_delivery = false;
  /// a port that is down stays a candidate
  bool waits_for_routes = false;
  /// the packet's word chooses its layer of routes, not its entropy
  bool layer_by_word = false;
  /// of its parameters, which only its step reads
  RecordBytes<> params;
  /// of a switch at the start, which only its step reads
  RecordBytes<> state;
  /// of one port at the start; empty: none, and only its step reads it
  RecordBytes<> port_state;
};

/// One number of the state of a queue pair's policies that is recorded.
struct StateField {
  /// of the path selection's state, else of the congestion control's at the sender
  bool of_path;
  /// else an int64
  bool is_float;
  /// in the record, in numbers of eight bytes
  std::int64_t place;
};

/// What is recorded over time: ports, queue pairs, events, a timeline of all ports, and paths.
struct SeriesRequest {
  /// between two samples; 0: none [ps]
  std::int64_t every_ps = 0;
  /// all queue pairs are recorded
  bool all_flows = false;
  /// of samples; beyond it every second instant is dropped
  std::int64_t row_limit = 0;
  /// of recorded events
  std::int64_t event_limit = 0;
  /// the most that are kept; 0: no timeline
  std::int64_t timeline_bins = 0;
  /// every so many data packets are followed; 0: none
  std::uint32_t path_sample = 0;
  /// whose queues are recorded
  std::span<const PortId> ports;
  /// identities of recorded flows
  std::span<const std::uint64_t> flows;
  /// more of these flows
  std::span<const StateField> state;
};

/// Ports whose frames are captured; none: nothing.
struct CaptureRequest {
  /// whose frames are captured
  std::span<const PortId> ports;
  /// of each port
  std::int64_t row_limit = 0;
};

}  // namespace weftwork
