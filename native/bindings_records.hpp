/// Records between Python and the core: dtype name in Python, fields and offsets. `rows` and `table` take no other
/// record; the module exports the descriptions, and a test holds the dtypes to them.
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <tuple>
#include <type_traits>

#include "base/ids.hpp"
#include "base/job.hpp"
#include "base/waits.hpp"
#include "base/wiring.hpp"
#include "flow/hop.hpp"
#include "flow/job.hpp"
#include "flow/rows.hpp"
#include "flow/wire_sizes.hpp"
#include "packet/input.hpp"
#include "packet/job_records.hpp"
#include "packet/policy.hpp"
#include "packet/port_records.hpp"
#include "packet/recordings.hpp"

namespace weftwork::python {

// Rows that only the Python face makes.

struct MessageRow {
  std::int64_t source, destination, channel, ordinal, size_bytes, posted_at_ps, delivered_at_ps, acked_at_ps;
};

struct PortRow {
  std::int64_t frames, bytes, drops, marks, pauses_sent, resumes_sent, paused_ps, max_queue_bytes, max_ingress_bytes,
      trims, credit_frames, nic_state_bytes, max_early_packets;
};

struct TimelineRow {
  std::int64_t at_ps, port, bytes, queue_bytes, marks, drops, pauses, paused_ps;
};

struct PathRow {
  std::int64_t queue_pair, port, packets, queue_bytes;
};

struct QueuePairRow {
  std::int64_t source, destination, channel;
};

struct TierRow {
  std::int64_t start_ps, at_ps, tier;
  double bytes, flows;
};

struct LaneRow {
  std::int64_t source, destination, channel, port, packets;
};

struct ActorRow {
  std::int64_t rank, ranks, program;
};

struct RouteRow {
  std::int64_t reachable, links, latency_ps;
  double rate_bps;
};

/// One field of a record; `count` elements of `kind` (NumPy's letter: i, u, f) and `bytes` each.
struct Field {
  const char* name;
  std::size_t offset;
  char kind;
  std::size_t bytes, count;
};

template <typename T>
constexpr Field field(const char* name, std::size_t offset) {
  using Item = std::remove_extent_t<T>;
  static_assert(std::is_arithmetic_v<Item> || kIsId<Item>,
                "a field that crosses is a number, an id or an array of them");
  const char kind = std::is_floating_point_v<Item> ? 'f' : std::is_signed_v<Item> || kIsId<Item> ? 'i' : 'u';
  return {name, offset, kind, sizeof(Item), sizeof(T) / sizeof(Item)};
}

/// Whether the fields fill a record: none is missing, and padding stands only where alignment puts it.
template <std::size_t kFields>
constexpr bool is_whole(const std::array<Field, kFields>& fields, std::size_t bytes, std::size_t alignment) {
  std::size_t end = 0;
  for (const Field& each : fields) {
    if (each.offset < end || each.offset - end >= each.bytes) return false;
    end = each.offset + each.bytes * each.count;
  }
  return bytes >= end && bytes - end < alignment;
}

/// What is known of a record: its dtype in Python, empty where it crosses field by field in a dictionary (`named`). A
/// record without a specialisation does not cross.
template <typename Record>
struct Description;

template <typename T>
concept Described = requires { Description<T>::kFields; };

// WEFTWORK_EACH(f, r, a, b, ...): f(r, a), f(r, b), ...; up to 64 times
#define WEFTWORK_AGAIN() WEFTWORK_EACH_NEXT
#define WEFTWORK_PARENTHESES ()
#define WEFTWORK_EXPAND(...) WEFTWORK_EXPAND_2(WEFTWORK_EXPAND_2(WEFTWORK_EXPAND_2(WEFTWORK_EXPAND_2(__VA_ARGS__))))
#define WEFTWORK_EXPAND_2(...) WEFTWORK_EXPAND_1(WEFTWORK_EXPAND_1(WEFTWORK_EXPAND_1(WEFTWORK_EXPAND_1(__VA_ARGS__))))
#define WEFTWORK_EXPAND_1(...) WEFTWORK_EXPAND_0(WEFTWORK_EXPAND_0(WEFTWORK_EXPAND_0(WEFTWORK_EXPAND_0(__VA_ARGS__))))
#define WEFTWORK_EXPAND_0(...) __VA_ARGS__
#define WEFTWORK_EACH_NEXT(f, r, a, ...) f(r, a) __VA_OPT__(, WEFTWORK_AGAIN WEFTWORK_PARENTHESES(f, r, __VA_ARGS__))
#define WEFTWORK_EACH(f, r, ...) WEFTWORK_EXPAND(WEFTWORK_EACH_NEXT(f, r, __VA_ARGS__))
#define WEFTWORK_FIELD(Record, name) field<decltype(Record::name)>(#name, offsetof(Record, name))

#define WEFTWORK_RECORD(Record, dtype, ...)                                                                 \
  template <>                                                                                               \
  struct Description<Record> {                                                                              \
    static constexpr const char* kRecord = #Record;                                                         \
    static constexpr const char* kDtype = dtype;                                                            \
    static constexpr std::array kFields{WEFTWORK_EACH(WEFTWORK_FIELD, Record, __VA_ARGS__)};                \
    static_assert(is_whole(kFields, sizeof(Record), alignof(Record)), "a field of " #Record " is missing"); \
  }

// Into the core.
WEFTWORK_RECORD(OpRow, "OP_DTYPE", code, value, target, rule, stride, size, members, shift, step, table, total_bytes,
                parts, part_offset, first_digit, digits, span, span_stride, copies, channel, data_class, nic, peer_rail,
                after_ps, label);
WEFTWORK_RECORD(DigitRow, "DIGIT_DTYPE", rule, stride, size, members, shift, step, weight);
WEFTWORK_RECORD(GpuRow, "GPU_DTYPE", nvlink_domain, nvlink_rate_bps, nvlink_latency_ps, pcie_rate_bps, pcie_latency_ps,
                slice_bytes);
WEFTWORK_RECORD(StreamRow, "STREAM_DTYPE", rank_program, first_op);
WEFTWORK_RECORD(InstantRow, "INSTANT_DTYPE", at_ps, code, port, value);
WEFTWORK_RECORD(PinRow, "PIN_DTYPE", source, destination, channel, entropy);
WEFTWORK_RECORD(SwitchRow, "SWITCH_DTYPE", reserve_bytes, alpha, egress_alpha, xon_offset_bytes, pause_quanta, pmax,
                mark_at_dequeue, hash_algorithm, hash_seed, hash_offset, hash_fields, telemetry, weight);
WEFTWORK_RECORD(NicRow, "NIC_DTYPE", pcie_rate_bps, pcie_latency_ps, receive_buffer_bytes, xoff_bytes, xon_bytes,
                pause_quanta);
WEFTWORK_RECORD(TransportRow, "", mtu_bytes, data_overhead_bytes, first_extra_bytes, telemetry_bytes, ack_bytes,
                cnp_bytes, credit_bytes, pause_frame_bytes, interframe_bytes, go_back_n, reorder_tolerant,
                reorder_window_packets, ack_every, retransmission_timeout_ps, retry_limit, end_to_end_credits,
                selective_repeat, reorder_threshold_packets, resends_at_once, telemetry_hop_bytes, echo_bytes,
                trim_bytes, timeout_low_ps, timeout_low_packets, link_credits, credit_quantum_bytes, in_any_order,
                matches_any, inflight_cap_bytes, connection_state_bytes, host_packet_ps, host_byte_ps, replies_follow);
WEFTWORK_RECORD(flow::CollectRow, "COLLECT_DTYPE", first_axis, axes, pattern, amount_bytes, size_bytes, overhead_ps,
                local_efficiency, network_efficiency, network_share, queue_pairs);
WEFTWORK_RECORD(flow::AxisRow, "AXIS_DTYPE", stride, size);
WEFTWORK_RECORD(flow::WireSizes, "", mtu_bytes, overhead_bytes, first_extra_bytes, gap_bytes, ack_bytes, ack_every);
// Between the core and a policy's compiled step.
WEFTWORK_RECORD(Signal, "SIGNAL_DTYPE", kind, now_ps, bytes, rtt_ps, ecn, host_delay_ps, fabric_delay_ps, seq, next_seq,
                entropy, timer, line_rate_bps, base_rtt_ps, mtu_bytes, inflight_bytes, backlog_bytes, draw,
                arrived_bytes, marked_bytes, lost_bytes, completed_messages, last_hop, request_bytes,
                fabric_base_rtt_ps, hops, hop_queue_bytes, hop_tx_bytes, hop_rate_bps, hop_at_ps, hop_port, path_load);
WEFTWORK_RECORD(PortSignal, "PORT_SIGNAL_DTYPE", now_ps, hash, draw, bytes, candidates, is_data, destination, stride,
                node, tier, group, in_port, ports, hops, queue_pair_hash, edge, from_edge, to_edge, edges, from_group,
                via_group, detour, queue_pair_detour, hops_after_via, delivered, virtual_channel, word, via, choice);
WEFTWORK_RECORD(Candidate, "CANDIDATE_DTYPE", queue_bytes, rate_bps, weight, port, paused, hops_left, minimal, channel,
                turn_channel);
WEFTWORK_RECORD(SenderState, "CONGESTION_CONTROL_PREFIX", rate_bps, window_bytes, timer_at_ps, timeout_ps,
                segment_bytes, request_bytes, send_request);
WEFTWORK_RECORD(ReceiverState, "RECEIVER_PREFIX", send_cnp, send_ack, credit_bytes, send_credit, timer_at_ps);
WEFTWORK_RECORD(PathState, "PATH_SELECTION_PREFIX", entropy, timer_at_ps);
// Out of the core.
WEFTWORK_RECORD(MessageRow, "MESSAGE_DTYPE", source, destination, channel, ordinal, size_bytes, posted_at_ps,
                delivered_at_ps, acked_at_ps);
WEFTWORK_RECORD(PortRow, "PORT_DTYPE", frames, bytes, drops, marks, pauses_sent, resumes_sent, paused_ps,
                max_queue_bytes, max_ingress_bytes, trims, credit_frames, nic_state_bytes, max_early_packets);
WEFTWORK_RECORD(TimelineRow, "TIMELINE_DTYPE", at_ps, port, bytes, queue_bytes, marks, drops, pauses, paused_ps);
WEFTWORK_RECORD(PathRow, "PATH_DTYPE", queue_pair, port, packets, queue_bytes);
WEFTWORK_RECORD(QueuePairRow, "QUEUE_PAIR_DTYPE", source, destination, channel);
WEFTWORK_RECORD(MilestoneRecord, "MILESTONE_DTYPE", rank, name, at_ps);
WEFTWORK_RECORD(SeriesRow, "SERIES_DTYPE", at_ps, kind, index, value);
WEFTWORK_RECORD(EventRow, "EVENT_DTYPE", at_ps, kind, place, detail);
WEFTWORK_RECORD(CaptureRow, "CAPTURE_DTYPE", at_ps, port, kind, traffic_class, source, destination, channel, seq,
                attempt, origin, target, size_bytes, payload_bytes, entropy, hops, marked, asks_ack, cut, msn,
                credit_code, amount, refused, hop_count, hop_queue_bytes, hop_tx_bytes, hop_rate_bps, hop_at_ps,
                hop_port);
WEFTWORK_RECORD(Counters, "COUNTERS", packet_hops, data_sent, retransmissions, acks_sent, naks_sent, cnps_sent,
                credits_sent, probes_sent, timeouts, queue_pair_errors, out_of_order_discards, duplicates,
                drop_no_route, drop_link_down, drop_link_loss, drop_corrupted, drop_buffer_full, drop_egress_threshold,
                drop_headroom_full, drop_receive_buffer, requests_sent, trims, end_ps);
WEFTWORK_RECORD(TierRow, "TIER_BYTES_DTYPE", start_ps, at_ps, tier, bytes, flows);
WEFTWORK_RECORD(LaneRow, "LANE_DTYPE", source, destination, channel, port, packets);
WEFTWORK_RECORD(ActorRow, "ACTOR_DTYPE", rank, ranks, program);
WEFTWORK_RECORD(RouteRow, "ROUTE_DTYPE", reachable, links, latency_ps, rate_bps);
WEFTWORK_RECORD(flow::Hop, "HOP_DTYPE", link, weight);
WEFTWORK_RECORD(flow::Carried, "CARRIED_DTYPE", bytes, packets);
WEFTWORK_RECORD(flow::MilestoneRow, "FLOW_MILESTONE_DTYPE", actor, name, at_ps);
WEFTWORK_RECORD(flow::SegmentRow, "SEGMENT_DTYPE", actor, label, code, start_ps, end_ps);
WEFTWORK_RECORD(flow::ActivityRow, "ACTIVITY_DTYPE", label, channel, pattern, actor, ranks, instances, flows, operation,
                size_bytes, posted_ps, start_ps, end_ps);

WEFTWORK_RECORD(WaitRow, "WAIT_DTYPE", rank, stream, stands_at, turn, kind, op, peer, channel, ordinal, size_bytes,
                state, source_port, destination_port, missing);
WEFTWORK_RECORD(DeadlockRow, "DEADLOCK_DTYPE", port, traffic_class, waiting_bytes, held_bytes);

/// All of them; `rows` and `table` check that a record is among them, so that it is exported.
using Records =
    std::tuple<OpRow, DigitRow, GpuRow, StreamRow, InstantRow, PinRow, SwitchRow, NicRow, TransportRow,
               flow::CollectRow, flow::AxisRow, flow::WireSizes, Signal, PortSignal, Candidate, SenderState,
               ReceiverState, PathState, MessageRow, PortRow, TimelineRow, PathRow, QueuePairRow, MilestoneRecord,
               SeriesRow, EventRow, CaptureRow, Counters, TierRow, LaneRow, ActorRow, RouteRow, flow::Hop,
               flow::Carried, flow::MilestoneRow, flow::SegmentRow, flow::ActivityRow, WaitRow, DeadlockRow>;

template <typename T, typename List>
inline constexpr bool kIsAmong = false;
template <typename T, typename... Each>
inline constexpr bool kIsAmong<T, std::tuple<Each...>> = (std::is_same_v<T, Each> || ...);

/// A record that is described and exported.
template <typename T>
concept Crossing = Described<T> && kIsAmong<T, Records>;

}  // namespace weftwork::python
