// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// What a policy's compiled step reads and writes: weftwork.policies.interface, eight bytes a field.
#pragma once
#include <cstdint>
#include <span>

namespace weftwork {

/// Timers of a queue pair's policy on each side.
inline constexpr int kTimers = 4;

/// Switches whose telemetry a packet carries.
inline constexpr int kHops = 8;

/// Kinds of signals.
enum class Kind : std::int64_t {
  kStart = 0,
  kResume = 1,
  kSend = 2,
  kAck = 3,
  kCnp = 4,
  kNak = 5,
  kTrim = 6,
  kTimeout = 7,
  kTimer = 8,
  kCredit = 9,
  kData = 10,
  kRequest = 11,
};

/// Signal to a sender's step, a receiver's step or a path selection.
struct Signal {
  /// a Kind
  std::int64_t kind;
  /// the instant of the call [ps]
  std::int64_t now_ps;
  /// ACK: payload newly acknowledged; SEND, DATA, TRIM: payload; CREDIT: bytes newly granted [byte]
  std::int64_t bytes;
  /// sender ACK, TRIM: since the packet was sent; 0: not known [ps]
  std::int64_t rtt_ps;
  /// ACK, DATA: 1: it was marked
  std::int64_t ecn;
  /// sender ACK, TRIM: part of the RTT spent in the receiving host; DATA: in this host [ps]
  std::int64_t host_delay_ps;
  /// sender ACK, TRIM: the rest of the RTT [ps]
  std::int64_t fabric_delay_ps;
  /// ACK, NAK: next number expected; SEND, DATA, TRIM: of the packet; REQUEST: next_seq when it was queued
  std::int64_t seq;
  /// sender: number of the next packet, from 0, not wrapped; going back lowers it
  std::int64_t next_seq;
  /// ACK, NAK, TRIM: echoed from the packet; SEND, DATA: that it carries; TIMEOUT: of the oldest packet
  std::int64_t entropy;
  /// TIMER: which of the four
  std::int64_t timer;
  /// of the NIC port, now [bit/s]
  std::int64_t line_rate_bps;
  /// of the path without queues [ps]
  std::int64_t base_rtt_ps;
  /// payload of a full packet [byte]
  std::int64_t mtu_bytes;
  /// sender: payload that was sent and of which nothing is known [byte]
  std::int64_t inflight_bytes;
  /// sender: payload posted and not sent yet [byte]
  std::int64_t backlog_bytes;
  /// path SEND: 62 random bits of this packet's identity
  std::int64_t draw;
  /// ACK: payload newly known to have arrived, also beyond gaps [byte]
  std::int64_t arrived_bytes;
  /// ACK: payload that has arrived with a mark since the last ACK signal [byte]
  std::int64_t marked_bytes;
  /// sender ACK, NAK, TRIM, TIMEOUT: payload newly known to be lost [byte]
  std::int64_t lost_bytes;
  /// ACK: messages newly acknowledged whole
  std::int64_t completed_messages;
  /// TRIM: 1: the switch that cut the packet is the receiver's own
  std::int64_t last_hop;
  /// receiver DATA, TRIM, REQUEST: what the sender's state said [byte]
  std::int64_t request_bytes;
  /// sender: the longest base RTT of any two NIC ports [ps]
  std::int64_t fabric_base_rtt_ps;
  /// ACK, NAK, TRIM, DATA, REQUEST: switches that the packet has passed, from its TTL
  std::int64_t hops;
  /// ACK: of the packet's queue at each switch, as it left [byte]
  std::int64_t hop_queue_bytes[8];
  /// ACK: sent by that port so far [byte]
  std::int64_t hop_tx_bytes[8];
  /// ACK: of that port [bit/s]
  std::int64_t hop_rate_bps[8];
  /// ACK: when it left [ps]
  std::int64_t hop_at_ps[8];
  /// ACK: global id of the port by which it left
  std::int64_t hop_port[8];
  /// ACK: smoothed load of the busiest port on the packet's way, where 1 is full, as a code tells it
  double path_load;
};

/// Signal to a port selection.
struct PortSignal {
  /// the instant of the call [ps]
  std::int64_t now_ps;
  /// of the chosen fields, by the switch's own hash, after its offset
  std::int64_t hash;
  /// 62 random bits of this packet's identity at this switch
  std::int64_t draw;
  /// of the frame [byte]
  std::int64_t bytes;
  /// how many; the array holds as many
  std::int64_t candidates;
  /// 0: ACK, CNP and other control packets
  std::int64_t is_data;
  /// number of the NIC port that the packet goes to, counted leaf by leaf
  std::int64_t destination;
  /// consecutive numbers that the tiers below have already told apart; 1 at a leaf
  std::int64_t stride;
  /// id of this switch
  std::int64_t node;
  /// of this switch: 1 a leaf, and so on upwards
  std::int64_t tier;
  /// pod or group of this switch; -1: none
  std::int64_t group;
  /// local index of the port by which the packet came in
  std::int64_t in_port;
  /// of this switch; the rows of `port_state` are as many
  std::int64_t ports;
  /// switches passed before this one
  std::int64_t hops;
  /// 62 bits of the queue pair's identity, the same everywhere
  std::int64_t queue_pair_hash;
  /// number of this switch among those with hosts; -1: it has none
  std::int64_t edge;
  /// of the switch of the NIC port that has sent the packet
  std::int64_t from_edge;
  /// of the switch of the NIC port that it goes to
  std::int64_t to_edge;
  /// how many there are
  std::int64_t edges;
  /// pod or group of the switch of `from_edge`; -1: none
  std::int64_t from_group;
  /// pod or group of the switch of `via`; -1: none, or `via` is OFF
  std::int64_t via_group;
  /// edge drawn for this packet, by which it may go round; OFF: none, as within a switch or group
  std::int64_t detour;
  /// the same for all packets of the queue pair
  std::int64_t queue_pair_detour;
  /// switches from `via` to the destination; 0 where `via` is OFF
  std::int64_t hops_after_via;
  /// 1: the only candidate leads to the receiver's NIC port
  std::int64_t delivered;
  /// of the packet within its priority, from 0; may be written
  std::int64_t virtual_channel;
  /// travels with the packet, 0 at its NIC; may be written
  std::int64_t word;
  /// edge that the packet passes first, or OFF; may be written
  std::int64_t via;
  /// written: index of the candidate; 0 when the step is called
  std::int64_t choice;
};

/// Port among which a port selection chooses.
struct Candidate {
  /// of the packet's class at that port, exact at this instant [byte]
  std::int64_t queue_bytes;
  /// of the port, now [bit/s]
  std::int64_t rate_bps;
  /// capacity of the ways behind it beside that of the others, in whole numbers; 1 where nobody asks
  std::int64_t weight;
  /// local index at this switch
  std::int64_t port;
  /// 1: the far end forbids the packet's class now
  std::int64_t paused;
  /// switches that the packet passes after this one, if it goes on by a shortest path
  std::int64_t hops_left;
  /// 1: on a shortest path, as all are without the need
  std::int64_t minimal;
  /// virtual channel that routing gives the packet behind the port
  std::int64_t channel;
  /// the same if a new part of its way begins here: from `via` on, or towards a `via` after a start
  std::int64_t turn_channel;
};

/// First fields of a congestion control's state.
struct SenderState {
  /// what the NIC paces by; at START the line rate [bit/s]
  double rate_bps;
  /// payload that may be in flight; at START `NO_WINDOW_BYTES` [byte]
  double window_bytes;
  /// when to call back, or OFF [ps]
  std::int64_t timer_at_ps[4];
  /// own retransmission timeout; 0: the transport's [ps]
  std::int64_t timeout_ps;
  /// frames that leave back to back before the next pause; 0: every packet is paced [byte]
  std::int64_t segment_bytes;
  /// carried in the header of each packet that is sent [byte]
  std::int64_t request_bytes;
  /// set to 1: the NIC sends a REQUEST now and clears it
  std::int64_t send_request;
};

/// First fields of a receiver's state.
struct ReceiverState {
  /// set to 1: the NIC sends a CNP now and clears it
  std::int64_t send_cnp;
  /// set to 1: the NIC acknowledges now and clears it
  std::int64_t send_ack;
  /// all that was ever granted: the NIC sends a CREDIT with it whenever it has grown [byte]
  std::int64_t credit_bytes;
  /// set to 1: the NIC sends the CREDIT again and clears it
  std::int64_t send_credit;
  /// when to call back, or OFF [ps]
  std::int64_t timer_at_ps[4];
};

/// First fields of a path selection's state.
struct PathState {
  /// 0 to 65,535, carried as the UDP source port; at first the queue pair's own
  std::int64_t entropy;
  /// when to call back, or OFF [ps]
  std::int64_t timer_at_ps[4];
};

}  // namespace weftwork
