// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// Results of a packet run.
#pragma once
#include <cstdint>
#include <span>

namespace weftwork {

/// From there on, kinds of samples are of requested fields of a flow's state.
inline constexpr int kSeriesKinds = 3;

/// Kind of a captured frame of flow control.
inline constexpr int kCapturedPause = 7;

/// Kind of a captured frame of credits between links.
inline constexpr int kCapturedCredit = 8;

/// What a port has done; the core keeps some of it elsewhere, and fills it in at the end.
struct PortCounters {
  /// Packets sent, flow-control frames not counted
  std::int64_t frames = 0;
  /// Bytes of those frames, gaps not counted [byte]
  std::int64_t bytes = 0;
  /// Packets dropped that wanted to leave here or came in here
  std::int64_t drops = 0;
  /// Packets marked by ECN
  std::int64_t marks = 0;
  /// PFC frames that ask the other end to pause, refreshes included
  std::int64_t pauses_sent = 0;
  /// PFC frames that let the other end go on
  std::int64_t resumes_sent = 0;
  /// Time for which this port was paused, summed over priorities [ps]
  std::int64_t paused_ps = 0;
  /// Longest egress queue of one priority [byte]
  std::int64_t max_queue_bytes = 0;
  /// Largest memory that one priority of this port took, headroom included [byte]
  std::int64_t max_ingress_bytes = 0;
  /// Packets cut because they found no room towards this port
  std::int64_t trims = 0;
  /// Frames of credit sent
  std::int64_t credit_frames = 0;
  /// Memory that the ends of connections took at a NIC port [byte]
  std::int64_t nic_state_bytes = 0;
  /// Most packets that the receivers at a NIC port kept behind gaps at once [packet]
  std::int64_t max_early_packets = 0;
};

/// Counters of a run.
struct Counters {
  /// arrivals of packets over links, lost ones included
  std::int64_t packet_hops = 0;
  /// packets
  std::int64_t data_sent = 0;
  /// packets
  std::int64_t retransmissions = 0;
  /// packets
  std::int64_t acks_sent = 0;
  /// packets
  std::int64_t naks_sent = 0;
  /// packets
  std::int64_t cnps_sent = 0;
  /// packets
  std::int64_t credits_sent = 0;
  /// packets
  std::int64_t probes_sent = 0;
  /// of retransmission timers
  std::int64_t timeouts = 0;
  /// queue pairs that gave up
  std::int64_t queue_pair_errors = 0;
  /// packets that came early and were not kept
  std::int64_t out_of_order_discards = 0;
  /// packets that came again
  std::int64_t duplicates = 0;
  /// packets
  std::int64_t drop_no_route = 0;
  /// packets
  std::int64_t drop_link_down = 0;
  /// packets
  std::int64_t drop_link_loss = 0;
  /// packets
  std::int64_t drop_corrupted = 0;
  /// packets
  std::int64_t drop_buffer_full = 0;
  /// packets
  std::int64_t drop_egress_threshold = 0;
  /// packets
  std::int64_t drop_headroom_full = 0;
  /// packets
  std::int64_t drop_receive_buffer = 0;
  /// packets
  std::int64_t requests_sent = 0;
  /// packets that a switch has cut to their headers
  std::int64_t trims = 0;
  /// instant of the last arrival of a packet [ps]
  std::int64_t end_ps = 0;
};

/// A milestone that a rank has passed.
struct MilestoneRecord {
  /// that passed it
  std::int64_t rank;
  /// index of its name
  std::int64_t name;
  /// when [ps]
  std::int64_t at_ps;
};

/// Kinds of samples.
enum class SeriesKind : std::int64_t {
  kRateBps = 0,
  kWindowBytes = 1,
  kQueueBytes = 2,
};

/// A sample over time.
struct SeriesRow {
  /// when [ps]
  std::int64_t at_ps;
  /// place in SERIES_KINDS; from its end on, of the requested fields of a flow's state
  std::int64_t kind;
  /// queue pair in order of (source, destination, channel), or port
  std::int64_t index;
  /// of the sample
  double value;
};

/// Kinds of recorded events.
enum class EventKind : std::int64_t {
  kPause = 0,
  kResume = 1,
  kMark = 2,
  kDrop = 3,
  kTimeout = 4,
  kGoBack = 5,
};

/// Something that a person looks for in time.
struct EventRow {
  /// when [ps]
  std::int64_t at_ps;
  /// index into EVENT_KINDS
  std::int64_t kind;
  /// port; timeout and go back: queue pair in order of (source, destination, channel)
  std::int64_t place;
  /// pause, resume, mark: class; drop: index into DROP_REASONS
  std::int64_t detail;
};

/// A frame that started at a captured port; what its kind does not have is 0.
struct CaptureRow {
  /// its first bit leaves the port [ps]
  std::int64_t at_ps = 0;
  /// egress
  std::int64_t port = 0;
  /// index into CAPTURE_KINDS
  std::int64_t kind = 0;
  /// index of its class
  std::int64_t traffic_class = 0;
  /// rank, of the queue pair, whichever way the packet travels
  std::int64_t source = 0;
  /// rank, of the queue pair
  std::int64_t destination = 0;
  /// of the queue pair
  std::int64_t channel = 0;
  /// DATA: number of the packet; ACK, NAK: next expected; PROBE: first not acknowledged
  std::int64_t seq = 0;
  /// of the packet
  std::int64_t attempt = 0;
  /// NIC_ROW port that sends this packet
  std::int64_t origin = 0;
  /// NIC_ROW port that it is for
  std::int64_t target = 0;
  /// of the frame with its check sequence [byte]
  std::int64_t size_bytes = 0;
  /// DATA, also when it was cut [byte]
  std::int64_t payload_bytes = 0;
  /// UDP source port
  std::int64_t entropy = 0;
  /// DATA, REQUEST: switches passed
  std::int64_t hops = 0;
  /// DATA: by a switch; ACK, NAK: echoed
  std::int64_t marked = 0;
  /// 1: the packet asks for an acknowledgement
  std::int64_t asks_ack = 0;
  /// DATA: cut to its headers; ACK, NAK: caused by such a packet
  std::int64_t cut = 0;
  /// ACK, NAK
  std::int64_t msn = 0;
  /// ACK, NAK, where receivers give credits
  std::int64_t credit_code = 0;
  /// CREDIT, REQUEST, LINK CREDIT: bytes; PAUSE: quanta
  std::int64_t amount = 0;
  /// NAK: number of the packet that caused it; -1: none
  std::int64_t refused = 0;
  /// DATA, ACK, NAK: switches that have written telemetry, or into the packet echoed
  std::int64_t hop_count = 0;
  /// of each such switch, in the order of the path [byte]
  std::int64_t hop_queue_bytes[8] = {};
  /// of each such switch [byte]
  std::int64_t hop_tx_bytes[8] = {};
  /// of each such switch [bit/s]
  std::int64_t hop_rate_bps[8] = {};
  /// of each such switch [ps]
  std::int64_t hop_at_ps[8] = {};
  /// of each such switch
  std::int64_t hop_port[8] = {};
};

}  // namespace weftwork

namespace weftwork::python {

/// A message.
struct MessageRow {
  /// rank
  std::int64_t source;
  /// rank
  std::int64_t destination;
  /// of the job
  std::int64_t channel;
  /// on its queue pair, from 0
  std::int64_t ordinal;
  /// payload [byte]
  std::int64_t size_bytes;
  /// by the source's program [ps]
  std::int64_t posted_at_ps;
  /// last byte at the receiver; -1: not delivered [ps]
  std::int64_t delivered_at_ps;
  /// -1: not acknowledged [ps]
  std::int64_t acked_at_ps;
};

/// Ends of a queue pair, in the order in which series name them.
struct QueuePairRow {
  /// rank
  std::int64_t source;
  /// rank
  std::int64_t destination;
  /// of the job
  std::int64_t channel;
};

/// What a port did in a bin of time.
struct TimelineRow {
  /// end of the bin; all but the last are multiples of the bin [ps]
  std::int64_t at_ps;
  /// egress
  std::int64_t port;
  /// of packets that started transmission in the bin, as PORT_DTYPE counts them [byte]
  std::int64_t bytes;
  /// of all classes, at the end; the largest where bins were merged [byte]
  std::int64_t queue_bytes;
  /// of ECN
  std::int64_t marks;
  /// of packets
  std::int64_t drops;
  /// flow-control frames with quanta above 0 that were sent
  std::int64_t pauses;
  /// summed over classes: for how long the port was paused within the bin [ps]
  std::int64_t paused_ps;
};

/// Sampled packets of a queue pair at an egress port.
struct PathRow {
  /// in order of (source, destination, channel)
  std::int64_t queue_pair;
  /// egress
  std::int64_t port;
  /// of the sample, retransmissions included
  std::int64_t packets;
  /// that were queued there ahead of them, summed; 0 at a host [byte]
  std::int64_t queue_bytes;
};

/// How far a packet run has come.
struct ProgressRow {
  /// instant that was reached [ps]
  std::int64_t simulated_ps;
  /// arrivals of packets over links
  std::int64_t packet_hops;
  /// payload [byte]
  std::int64_t delivered_bytes;
};

}  // namespace weftwork::python
