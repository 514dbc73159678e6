/// The records that a policy sees and writes: weftwork.policies.interface, field by field, eight bytes each.
/// A policy is a pointer to a compiled step and the bytes of its parameters and of its first state.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace weftwork {

inline constexpr int kTimers = 4;
inline constexpr int kHops = 8;
inline constexpr double kNoWindowBytes = 9007199254740992.0;  // NO_WINDOW_BYTES

enum class Kind : std::int64_t {
  kStart,
  kResume,
  kSend,
  kAck,
  kCnp,
  kNak,
  kTrim,
  kTimeout,
  kTimer,
  kCredit,
  kData,
  kRequest
};

constexpr std::uint32_t bit(Kind kind) {
  return 1U << static_cast<unsigned>(kind);
}

struct Signal {  // SIGNAL_DTYPE
  std::int64_t kind, now_ps, bytes, rtt_ps, ecn, host_delay_ps, fabric_delay_ps, seq, next_seq, entropy, timer,
      line_rate_bps, base_rtt_ps, mtu_bytes, inflight_bytes, backlog_bytes, draw, arrived_bytes, marked_bytes,
      lost_bytes, completed_messages, last_hop, request_bytes, fabric_base_rtt_ps, hops;
  std::int64_t hop_queue_bytes[kHops], hop_tx_bytes[kHops], hop_rate_bps[kHops], hop_at_ps[kHops], hop_port[kHops];
  double path_load;
};
static_assert(sizeof(Signal) == 528);

struct PortSignal {  // PORT_SIGNAL_DTYPE
  std::int64_t now_ps, hash, draw, bytes, candidates, is_data, destination, stride, node, tier, group, in_port, ports,
      hops, queue_pair_hash, edge, from_edge, to_edge, edges, from_group, via_group, detour, queue_pair_detour,
      hops_after_via, delivered, virtual_channel, word, via, choice;
};

struct Candidate {  // CANDIDATE_DTYPE
  std::int64_t queue_bytes, rate_bps, weight, port, paused, hops_left, minimal, channel, turn_channel;
};

struct SenderState {  // CONGESTION_CONTROL_PREFIX
  double rate_bps, window_bytes;
  std::int64_t timer_at_ps[kTimers];
  std::int64_t timeout_ps, segment_bytes, request_bytes, send_request;
};

struct ReceiverState {  // RECEIVER_PREFIX
  std::int64_t send_cnp, send_ack, credit_bytes, send_credit;
  std::int64_t timer_at_ps[kTimers];
};

struct PathState {  // PATH_SELECTION_PREFIX
  std::int64_t entropy;
  std::int64_t timer_at_ps[kTimers];
};

using StepFunction = std::int32_t (*)(void* params, void* state, void* signal);
using ReceiveFunction = std::int32_t (*)(void* params, void* state, void* shared, void* signal);
using PortFunction = std::int32_t (*)(void* params, void* state, void* ports, void* signal, void* candidates);

struct CongestionPolicy {
  StepFunction step = nullptr;
  ReceiveFunction receive = nullptr;
  std::vector<std::uint8_t> params, state, receiver_state, shared_state;
  std::uint32_t signals = 0;  // bits of Kind
  bool receive_all = false;   // false: only marked packets
  bool moves_departures = false;
};

struct PathPolicy {
  StepFunction step = nullptr;  // null: constant entropy
  std::vector<std::uint8_t> params, state;
  std::uint32_t signals = 0;
  bool per_message = false;
};

struct PortPolicy {
  PortFunction step = nullptr;
  std::vector<std::uint8_t> params, state, port_state;  // the last: of one port; empty: none
  bool queue = false;
  bool paused = false;      // the step reads `paused`
  bool origin = false;      // the step reads `queue_pair_hash`, `from_edge` or `to_edge`
  bool plain_ecmp = false;  // the catalogue's own ecmp: hash mod candidates, computed in place
  bool hops_left = false;
  bool non_minimal = false;
  bool channel = false;  // the step reads `channel` or `turn_channel`
  bool detour = false;   // the step reads `detour`, or groups of a packet's ends
  bool via = false;      // the step reads or writes `via`
  bool always = false;
  bool at_delivery = false;
  bool waits_for_routes = false;  // a port that is down stays a candidate
  bool layer_by_word = false;     // the packet's word chooses its layer of routes, not its entropy
};

/// Which call of a step failed. A run is repeated up to this call to have its records, which plain Python replays to
/// name file and line.
struct PolicyFailure {
  std::string kind;          // of policy, as scenarios spell it
  bool of_receiver = false;  // the receiver's step of a congestion control, else the first one
  std::int64_t call = 0;     // counted over all steps of the run, from 1
  // Records before the call; empty but in the repeated run.
  std::vector<std::uint8_t> state, shared, signal, candidates, ports;
  std::int64_t via_changes = 0;  // how often the step has changed `via` of the packet at this switch
  bool stands_still = false;     // it set a timer to its own instant once too often
};

}  // namespace weftwork
