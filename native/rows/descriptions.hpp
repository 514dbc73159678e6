// Written by `python -m weftwork.engine.rows` from its declarations; change those.
// clang-format off
/// Descriptions of all records that cross. Included by bindings_records.hpp alone.
#pragma once
#include <array>
#include <cstddef>
#include <tuple>

#include "base/crossing.hpp"
#include "rows/fabric.hpp"
#include "rows/flow_outcome.hpp"
#include "rows/flow_run.hpp"
#include "rows/job.hpp"
#include "rows/outcome.hpp"
#include "rows/packet_run.hpp"
#include "rows/policies.hpp"
#include "rows/transport.hpp"
#include "rows/waits.hpp"

namespace weftwork::python {

template <>
struct Description<OpRow> {
  static constexpr const char* kRecord = "OpRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(OpRow, code, 0), WEFTWORK_FIELD(OpRow, value, 8), WEFTWORK_FIELD(OpRow, target, 16),
      WEFTWORK_FIELD(OpRow, rule, 24), WEFTWORK_FIELD(OpRow, stride, 32), WEFTWORK_FIELD(OpRow, size, 40),
      WEFTWORK_FIELD(OpRow, members, 48), WEFTWORK_FIELD(OpRow, shift, 56), WEFTWORK_FIELD(OpRow, step, 64),
      WEFTWORK_FIELD(OpRow, table, 72), WEFTWORK_FIELD(OpRow, total_bytes, 80), WEFTWORK_FIELD(OpRow, parts, 88),
      WEFTWORK_FIELD(OpRow, part_offset, 96), WEFTWORK_FIELD(OpRow, first_digit, 104),
      WEFTWORK_FIELD(OpRow, digits, 112), WEFTWORK_FIELD(OpRow, span, 120), WEFTWORK_FIELD(OpRow, span_stride, 128),
      WEFTWORK_FIELD(OpRow, copies, 136), WEFTWORK_FIELD(OpRow, channel, 144), WEFTWORK_FIELD(OpRow, data_class, 152),
      WEFTWORK_FIELD(OpRow, nic, 160), WEFTWORK_FIELD(OpRow, peer_rail, 168), WEFTWORK_FIELD(OpRow, after_ps, 176),
      WEFTWORK_FIELD(OpRow, label, 184)};
  static_assert(sizeof(OpRow) == 192, "NumPy lays the record out in another way");
};

template <>
struct Description<DigitRow> {
  static constexpr const char* kRecord = "DigitRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(DigitRow, rule, 0), WEFTWORK_FIELD(DigitRow, stride, 8), WEFTWORK_FIELD(DigitRow, size, 16),
      WEFTWORK_FIELD(DigitRow, members, 24), WEFTWORK_FIELD(DigitRow, shift, 32), WEFTWORK_FIELD(DigitRow, step, 40),
      WEFTWORK_FIELD(DigitRow, weight, 48)};
  static_assert(sizeof(DigitRow) == 56, "NumPy lays the record out in another way");
};

template <>
struct Description<GpuRow> {
  static constexpr const char* kRecord = "GpuRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(GpuRow, nvlink_domain, 0), WEFTWORK_FIELD(GpuRow, nvlink_rate_bps, 8),
      WEFTWORK_FIELD(GpuRow, nvlink_latency_ps, 16), WEFTWORK_FIELD(GpuRow, pcie_rate_bps, 24),
      WEFTWORK_FIELD(GpuRow, pcie_latency_ps, 32), WEFTWORK_FIELD(GpuRow, slice_bytes, 40)};
  static_assert(sizeof(GpuRow) == 48, "NumPy lays the record out in another way");
};

template <>
struct Description<StreamRow> {
  static constexpr const char* kRecord = "StreamRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(StreamRow, rank_program, 0), WEFTWORK_FIELD(StreamRow, first_op, 8)};
  static_assert(sizeof(StreamRow) == 16, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::CollectRow> {
  static constexpr const char* kRecord = "flow::CollectRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::CollectRow, first_axis, 0), WEFTWORK_FIELD(flow::CollectRow, axes, 8),
      WEFTWORK_FIELD(flow::CollectRow, pattern, 16), WEFTWORK_FIELD(flow::CollectRow, amount_bytes, 24),
      WEFTWORK_FIELD(flow::CollectRow, size_bytes, 32), WEFTWORK_FIELD(flow::CollectRow, overhead_ps, 40),
      WEFTWORK_FIELD(flow::CollectRow, local_efficiency, 48),
      WEFTWORK_FIELD(flow::CollectRow, network_efficiency, 56), WEFTWORK_FIELD(flow::CollectRow, network_share, 64),
      WEFTWORK_FIELD(flow::CollectRow, queue_pairs, 72)};
  static_assert(sizeof(flow::CollectRow) == 80, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::AxisRow> {
  static constexpr const char* kRecord = "flow::AxisRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::AxisRow, stride, 0), WEFTWORK_FIELD(flow::AxisRow, size, 8)};
  static_assert(sizeof(flow::AxisRow) == 16, "NumPy lays the record out in another way");
};

template <>
struct Description<SwitchRow> {
  static constexpr const char* kRecord = "SwitchRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(SwitchRow, reserve_bytes, 0), WEFTWORK_FIELD(SwitchRow, alpha, 8),
      WEFTWORK_FIELD(SwitchRow, egress_alpha, 16), WEFTWORK_FIELD(SwitchRow, xon_offset_bytes, 24),
      WEFTWORK_FIELD(SwitchRow, pause_quanta, 32), WEFTWORK_FIELD(SwitchRow, pmax, 40),
      WEFTWORK_FIELD(SwitchRow, mark_at_dequeue, 48), WEFTWORK_FIELD(SwitchRow, hash_algorithm, 56),
      WEFTWORK_FIELD(SwitchRow, hash_seed, 64), WEFTWORK_FIELD(SwitchRow, hash_offset, 72),
      WEFTWORK_FIELD(SwitchRow, hash_fields, 80), WEFTWORK_FIELD(SwitchRow, telemetry, 88),
      WEFTWORK_FIELD(SwitchRow, weight, 96)};
  static_assert(sizeof(SwitchRow) == 160, "NumPy lays the record out in another way");
};

template <>
struct Description<NicRow> {
  static constexpr const char* kRecord = "NicRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(NicRow, pcie_rate_bps, 0), WEFTWORK_FIELD(NicRow, pcie_latency_ps, 8),
      WEFTWORK_FIELD(NicRow, receive_buffer_bytes, 16), WEFTWORK_FIELD(NicRow, xoff_bytes, 24),
      WEFTWORK_FIELD(NicRow, xon_bytes, 32), WEFTWORK_FIELD(NicRow, pause_quanta, 40)};
  static_assert(sizeof(NicRow) == 48, "NumPy lays the record out in another way");
};

template <>
struct Description<PinRow> {
  static constexpr const char* kRecord = "PinRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(PinRow, source, 0), WEFTWORK_FIELD(PinRow, destination, 8), WEFTWORK_FIELD(PinRow, channel, 16),
      WEFTWORK_FIELD(PinRow, entropy, 24)};
  static_assert(sizeof(PinRow) == 32, "NumPy lays the record out in another way");
};

template <>
struct Description<InstantRow> {
  static constexpr const char* kRecord = "InstantRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(InstantRow, at_ps, 0), WEFTWORK_FIELD(InstantRow, code, 8), WEFTWORK_FIELD(InstantRow, port, 16),
      WEFTWORK_FIELD(InstantRow, value, 24)};
  static_assert(sizeof(InstantRow) == 32, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::LossRules> {
  static constexpr const char* kRecord = "flow::LossRules";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::LossRules, timeout_ps, 0), WEFTWORK_FIELD(flow::LossRules, goes_back, 8),
      WEFTWORK_FIELD(flow::LossRules, waits_always, 16), WEFTWORK_FIELD(flow::LossRules, waits_at_gaps, 24),
      WEFTWORK_FIELD(flow::LossRules, kept_packets, 32), WEFTWORK_FIELD(flow::LossRules, repeats, 40),
      WEFTWORK_FIELD(flow::LossRules, waits, 48), WEFTWORK_FIELD(flow::LossRules, end_waits, 56),
      WEFTWORK_FIELD(flow::LossRules, call_waits, 64)};
  static_assert(sizeof(flow::LossRules) == 72, "NumPy lays the record out in another way");
};

template <>
struct Description<Signal> {
  static constexpr const char* kRecord = "Signal";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(Signal, kind, 0), WEFTWORK_FIELD(Signal, now_ps, 8), WEFTWORK_FIELD(Signal, bytes, 16),
      WEFTWORK_FIELD(Signal, rtt_ps, 24), WEFTWORK_FIELD(Signal, ecn, 32), WEFTWORK_FIELD(Signal, host_delay_ps, 40),
      WEFTWORK_FIELD(Signal, fabric_delay_ps, 48), WEFTWORK_FIELD(Signal, seq, 56),
      WEFTWORK_FIELD(Signal, next_seq, 64), WEFTWORK_FIELD(Signal, entropy, 72), WEFTWORK_FIELD(Signal, timer, 80),
      WEFTWORK_FIELD(Signal, line_rate_bps, 88), WEFTWORK_FIELD(Signal, base_rtt_ps, 96),
      WEFTWORK_FIELD(Signal, mtu_bytes, 104), WEFTWORK_FIELD(Signal, inflight_bytes, 112),
      WEFTWORK_FIELD(Signal, backlog_bytes, 120), WEFTWORK_FIELD(Signal, draw, 128),
      WEFTWORK_FIELD(Signal, arrived_bytes, 136), WEFTWORK_FIELD(Signal, marked_bytes, 144),
      WEFTWORK_FIELD(Signal, lost_bytes, 152), WEFTWORK_FIELD(Signal, completed_messages, 160),
      WEFTWORK_FIELD(Signal, last_hop, 168), WEFTWORK_FIELD(Signal, request_bytes, 176),
      WEFTWORK_FIELD(Signal, fabric_base_rtt_ps, 184), WEFTWORK_FIELD(Signal, hops, 192),
      WEFTWORK_FIELD(Signal, hop_queue_bytes, 200), WEFTWORK_FIELD(Signal, hop_tx_bytes, 264),
      WEFTWORK_FIELD(Signal, hop_rate_bps, 328), WEFTWORK_FIELD(Signal, hop_at_ps, 392),
      WEFTWORK_FIELD(Signal, hop_port, 456), WEFTWORK_FIELD(Signal, path_load, 520)};
  static_assert(sizeof(Signal) == 528, "NumPy lays the record out in another way");
};

template <>
struct Description<PortSignal> {
  static constexpr const char* kRecord = "PortSignal";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(PortSignal, now_ps, 0), WEFTWORK_FIELD(PortSignal, hash, 8),
      WEFTWORK_FIELD(PortSignal, draw, 16), WEFTWORK_FIELD(PortSignal, bytes, 24),
      WEFTWORK_FIELD(PortSignal, candidates, 32), WEFTWORK_FIELD(PortSignal, is_data, 40),
      WEFTWORK_FIELD(PortSignal, destination, 48), WEFTWORK_FIELD(PortSignal, stride, 56),
      WEFTWORK_FIELD(PortSignal, node, 64), WEFTWORK_FIELD(PortSignal, tier, 72),
      WEFTWORK_FIELD(PortSignal, group, 80), WEFTWORK_FIELD(PortSignal, in_port, 88),
      WEFTWORK_FIELD(PortSignal, ports, 96), WEFTWORK_FIELD(PortSignal, hops, 104),
      WEFTWORK_FIELD(PortSignal, queue_pair_hash, 112), WEFTWORK_FIELD(PortSignal, edge, 120),
      WEFTWORK_FIELD(PortSignal, from_edge, 128), WEFTWORK_FIELD(PortSignal, to_edge, 136),
      WEFTWORK_FIELD(PortSignal, edges, 144), WEFTWORK_FIELD(PortSignal, from_group, 152),
      WEFTWORK_FIELD(PortSignal, via_group, 160), WEFTWORK_FIELD(PortSignal, detour, 168),
      WEFTWORK_FIELD(PortSignal, queue_pair_detour, 176), WEFTWORK_FIELD(PortSignal, hops_after_via, 184),
      WEFTWORK_FIELD(PortSignal, delivered, 192), WEFTWORK_FIELD(PortSignal, virtual_channel, 200),
      WEFTWORK_FIELD(PortSignal, word, 208), WEFTWORK_FIELD(PortSignal, via, 216),
      WEFTWORK_FIELD(PortSignal, choice, 224)};
  static_assert(sizeof(PortSignal) == 232, "NumPy lays the record out in another way");
};

template <>
struct Description<Candidate> {
  static constexpr const char* kRecord = "Candidate";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(Candidate, queue_bytes, 0), WEFTWORK_FIELD(Candidate, rate_bps, 8),
      WEFTWORK_FIELD(Candidate, weight, 16), WEFTWORK_FIELD(Candidate, port, 24),
      WEFTWORK_FIELD(Candidate, paused, 32), WEFTWORK_FIELD(Candidate, hops_left, 40),
      WEFTWORK_FIELD(Candidate, minimal, 48), WEFTWORK_FIELD(Candidate, channel, 56),
      WEFTWORK_FIELD(Candidate, turn_channel, 64)};
  static_assert(sizeof(Candidate) == 72, "NumPy lays the record out in another way");
};

template <>
struct Description<SenderState> {
  static constexpr const char* kRecord = "SenderState";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(SenderState, rate_bps, 0), WEFTWORK_FIELD(SenderState, window_bytes, 8),
      WEFTWORK_FIELD(SenderState, timer_at_ps, 16), WEFTWORK_FIELD(SenderState, timeout_ps, 48),
      WEFTWORK_FIELD(SenderState, segment_bytes, 56), WEFTWORK_FIELD(SenderState, request_bytes, 64),
      WEFTWORK_FIELD(SenderState, send_request, 72)};
  static_assert(sizeof(SenderState) == 80, "NumPy lays the record out in another way");
};

template <>
struct Description<ReceiverState> {
  static constexpr const char* kRecord = "ReceiverState";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(ReceiverState, send_cnp, 0), WEFTWORK_FIELD(ReceiverState, send_ack, 8),
      WEFTWORK_FIELD(ReceiverState, credit_bytes, 16), WEFTWORK_FIELD(ReceiverState, send_credit, 24),
      WEFTWORK_FIELD(ReceiverState, timer_at_ps, 32)};
  static_assert(sizeof(ReceiverState) == 64, "NumPy lays the record out in another way");
};

template <>
struct Description<PathState> {
  static constexpr const char* kRecord = "PathState";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(PathState, entropy, 0), WEFTWORK_FIELD(PathState, timer_at_ps, 8)};
  static_assert(sizeof(PathState) == 40, "NumPy lays the record out in another way");
};

template <>
struct Description<StateField> {
  static constexpr const char* kRecord = "StateField";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(StateField, of_path, 0), WEFTWORK_FIELD(StateField, is_float, 1),
      WEFTWORK_FIELD(StateField, place, 8)};
  static_assert(sizeof(StateField) == 16, "NumPy lays the record out in another way");
};

template <>
struct Description<python::MessageRow> {
  static constexpr const char* kRecord = "python::MessageRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::MessageRow, source, 0), WEFTWORK_FIELD(python::MessageRow, destination, 8),
      WEFTWORK_FIELD(python::MessageRow, channel, 16), WEFTWORK_FIELD(python::MessageRow, ordinal, 24),
      WEFTWORK_FIELD(python::MessageRow, size_bytes, 32), WEFTWORK_FIELD(python::MessageRow, posted_at_ps, 40),
      WEFTWORK_FIELD(python::MessageRow, delivered_at_ps, 48), WEFTWORK_FIELD(python::MessageRow, acked_at_ps, 56)};
  static_assert(sizeof(python::MessageRow) == 64, "NumPy lays the record out in another way");
};

template <>
struct Description<PortCounters> {
  static constexpr const char* kRecord = "PortCounters";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(PortCounters, frames, 0), WEFTWORK_FIELD(PortCounters, bytes, 8),
      WEFTWORK_FIELD(PortCounters, drops, 16), WEFTWORK_FIELD(PortCounters, marks, 24),
      WEFTWORK_FIELD(PortCounters, pauses_sent, 32), WEFTWORK_FIELD(PortCounters, resumes_sent, 40),
      WEFTWORK_FIELD(PortCounters, paused_ps, 48), WEFTWORK_FIELD(PortCounters, max_queue_bytes, 56),
      WEFTWORK_FIELD(PortCounters, max_ingress_bytes, 64), WEFTWORK_FIELD(PortCounters, trims, 72),
      WEFTWORK_FIELD(PortCounters, credit_frames, 80), WEFTWORK_FIELD(PortCounters, nic_state_bytes, 88),
      WEFTWORK_FIELD(PortCounters, max_early_packets, 96)};
  static_assert(sizeof(PortCounters) == 104, "NumPy lays the record out in another way");
};

template <>
struct Description<Counters> {
  static constexpr const char* kRecord = "Counters";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(Counters, packet_hops, 0), WEFTWORK_FIELD(Counters, data_sent, 8),
      WEFTWORK_FIELD(Counters, retransmissions, 16), WEFTWORK_FIELD(Counters, acks_sent, 24),
      WEFTWORK_FIELD(Counters, naks_sent, 32), WEFTWORK_FIELD(Counters, cnps_sent, 40),
      WEFTWORK_FIELD(Counters, credits_sent, 48), WEFTWORK_FIELD(Counters, probes_sent, 56),
      WEFTWORK_FIELD(Counters, timeouts, 64), WEFTWORK_FIELD(Counters, queue_pair_errors, 72),
      WEFTWORK_FIELD(Counters, out_of_order_discards, 80), WEFTWORK_FIELD(Counters, duplicates, 88),
      WEFTWORK_FIELD(Counters, drop_no_route, 96), WEFTWORK_FIELD(Counters, drop_link_down, 104),
      WEFTWORK_FIELD(Counters, drop_link_loss, 112), WEFTWORK_FIELD(Counters, drop_corrupted, 120),
      WEFTWORK_FIELD(Counters, drop_buffer_full, 128), WEFTWORK_FIELD(Counters, drop_egress_threshold, 136),
      WEFTWORK_FIELD(Counters, drop_headroom_full, 144), WEFTWORK_FIELD(Counters, drop_receive_buffer, 152),
      WEFTWORK_FIELD(Counters, requests_sent, 160), WEFTWORK_FIELD(Counters, trims, 168),
      WEFTWORK_FIELD(Counters, end_ps, 176)};
  static_assert(sizeof(Counters) == 184, "NumPy lays the record out in another way");
};

template <>
struct Description<python::QueuePairRow> {
  static constexpr const char* kRecord = "python::QueuePairRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::QueuePairRow, source, 0), WEFTWORK_FIELD(python::QueuePairRow, destination, 8),
      WEFTWORK_FIELD(python::QueuePairRow, channel, 16)};
  static_assert(sizeof(python::QueuePairRow) == 24, "NumPy lays the record out in another way");
};

template <>
struct Description<MilestoneRecord> {
  static constexpr const char* kRecord = "MilestoneRecord";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(MilestoneRecord, rank, 0), WEFTWORK_FIELD(MilestoneRecord, name, 8),
      WEFTWORK_FIELD(MilestoneRecord, at_ps, 16)};
  static_assert(sizeof(MilestoneRecord) == 24, "NumPy lays the record out in another way");
};

template <>
struct Description<SeriesRow> {
  static constexpr const char* kRecord = "SeriesRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(SeriesRow, at_ps, 0), WEFTWORK_FIELD(SeriesRow, kind, 8), WEFTWORK_FIELD(SeriesRow, index, 16),
      WEFTWORK_FIELD(SeriesRow, value, 24)};
  static_assert(sizeof(SeriesRow) == 32, "NumPy lays the record out in another way");
};

template <>
struct Description<EventRow> {
  static constexpr const char* kRecord = "EventRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(EventRow, at_ps, 0), WEFTWORK_FIELD(EventRow, kind, 8), WEFTWORK_FIELD(EventRow, place, 16),
      WEFTWORK_FIELD(EventRow, detail, 24)};
  static_assert(sizeof(EventRow) == 32, "NumPy lays the record out in another way");
};

template <>
struct Description<python::TimelineRow> {
  static constexpr const char* kRecord = "python::TimelineRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::TimelineRow, at_ps, 0), WEFTWORK_FIELD(python::TimelineRow, port, 8),
      WEFTWORK_FIELD(python::TimelineRow, bytes, 16), WEFTWORK_FIELD(python::TimelineRow, queue_bytes, 24),
      WEFTWORK_FIELD(python::TimelineRow, marks, 32), WEFTWORK_FIELD(python::TimelineRow, drops, 40),
      WEFTWORK_FIELD(python::TimelineRow, pauses, 48), WEFTWORK_FIELD(python::TimelineRow, paused_ps, 56)};
  static_assert(sizeof(python::TimelineRow) == 64, "NumPy lays the record out in another way");
};

template <>
struct Description<python::PathRow> {
  static constexpr const char* kRecord = "python::PathRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::PathRow, queue_pair, 0), WEFTWORK_FIELD(python::PathRow, port, 8),
      WEFTWORK_FIELD(python::PathRow, packets, 16), WEFTWORK_FIELD(python::PathRow, queue_bytes, 24)};
  static_assert(sizeof(python::PathRow) == 32, "NumPy lays the record out in another way");
};

template <>
struct Description<CaptureRow> {
  static constexpr const char* kRecord = "CaptureRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(CaptureRow, at_ps, 0), WEFTWORK_FIELD(CaptureRow, port, 8), WEFTWORK_FIELD(CaptureRow, kind, 16),
      WEFTWORK_FIELD(CaptureRow, traffic_class, 24), WEFTWORK_FIELD(CaptureRow, source, 32),
      WEFTWORK_FIELD(CaptureRow, destination, 40), WEFTWORK_FIELD(CaptureRow, channel, 48),
      WEFTWORK_FIELD(CaptureRow, seq, 56), WEFTWORK_FIELD(CaptureRow, attempt, 64),
      WEFTWORK_FIELD(CaptureRow, origin, 72), WEFTWORK_FIELD(CaptureRow, target, 80),
      WEFTWORK_FIELD(CaptureRow, size_bytes, 88), WEFTWORK_FIELD(CaptureRow, payload_bytes, 96),
      WEFTWORK_FIELD(CaptureRow, entropy, 104), WEFTWORK_FIELD(CaptureRow, hops, 112),
      WEFTWORK_FIELD(CaptureRow, marked, 120), WEFTWORK_FIELD(CaptureRow, asks_ack, 128),
      WEFTWORK_FIELD(CaptureRow, cut, 136), WEFTWORK_FIELD(CaptureRow, msn, 144),
      WEFTWORK_FIELD(CaptureRow, credit_code, 152), WEFTWORK_FIELD(CaptureRow, amount, 160),
      WEFTWORK_FIELD(CaptureRow, refused, 168), WEFTWORK_FIELD(CaptureRow, hop_count, 176),
      WEFTWORK_FIELD(CaptureRow, hop_queue_bytes, 184), WEFTWORK_FIELD(CaptureRow, hop_tx_bytes, 248),
      WEFTWORK_FIELD(CaptureRow, hop_rate_bps, 312), WEFTWORK_FIELD(CaptureRow, hop_at_ps, 376),
      WEFTWORK_FIELD(CaptureRow, hop_port, 440)};
  static_assert(sizeof(CaptureRow) == 504, "NumPy lays the record out in another way");
};

template <>
struct Description<python::ProgressRow> {
  static constexpr const char* kRecord = "python::ProgressRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::ProgressRow, simulated_ps, 0), WEFTWORK_FIELD(python::ProgressRow, packet_hops, 8),
      WEFTWORK_FIELD(python::ProgressRow, delivered_bytes, 16)};
  static_assert(sizeof(python::ProgressRow) == 24, "NumPy lays the record out in another way");
};

template <>
struct Description<WaitRow> {
  static constexpr const char* kRecord = "WaitRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(WaitRow, rank, 0), WEFTWORK_FIELD(WaitRow, stream, 8), WEFTWORK_FIELD(WaitRow, stands_at, 16),
      WEFTWORK_FIELD(WaitRow, turn, 24), WEFTWORK_FIELD(WaitRow, kind, 32), WEFTWORK_FIELD(WaitRow, op, 40),
      WEFTWORK_FIELD(WaitRow, peer, 48), WEFTWORK_FIELD(WaitRow, channel, 56), WEFTWORK_FIELD(WaitRow, ordinal, 64),
      WEFTWORK_FIELD(WaitRow, size_bytes, 72), WEFTWORK_FIELD(WaitRow, state, 80),
      WEFTWORK_FIELD(WaitRow, source_port, 88), WEFTWORK_FIELD(WaitRow, destination_port, 96),
      WEFTWORK_FIELD(WaitRow, missing, 104)};
  static_assert(sizeof(WaitRow) == 112, "NumPy lays the record out in another way");
};

template <>
struct Description<DeadlockRow> {
  static constexpr const char* kRecord = "DeadlockRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(DeadlockRow, port, 0), WEFTWORK_FIELD(DeadlockRow, traffic_class, 8),
      WEFTWORK_FIELD(DeadlockRow, waiting_bytes, 16), WEFTWORK_FIELD(DeadlockRow, held_bytes, 24)};
  static_assert(sizeof(DeadlockRow) == 32, "NumPy lays the record out in another way");
};

template <>
struct Description<python::ActorRow> {
  static constexpr const char* kRecord = "python::ActorRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::ActorRow, rank, 0), WEFTWORK_FIELD(python::ActorRow, ranks, 8),
      WEFTWORK_FIELD(python::ActorRow, program, 16)};
  static_assert(sizeof(python::ActorRow) == 24, "NumPy lays the record out in another way");
};

template <>
struct Description<python::TierRow> {
  static constexpr const char* kRecord = "python::TierRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::TierRow, start_ps, 0), WEFTWORK_FIELD(python::TierRow, at_ps, 8),
      WEFTWORK_FIELD(python::TierRow, tier, 16), WEFTWORK_FIELD(python::TierRow, bytes, 24),
      WEFTWORK_FIELD(python::TierRow, flows, 32)};
  static_assert(sizeof(python::TierRow) == 40, "NumPy lays the record out in another way");
};

template <>
struct Description<python::LaneRow> {
  static constexpr const char* kRecord = "python::LaneRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::LaneRow, source, 0), WEFTWORK_FIELD(python::LaneRow, destination, 8),
      WEFTWORK_FIELD(python::LaneRow, channel, 16), WEFTWORK_FIELD(python::LaneRow, port, 24),
      WEFTWORK_FIELD(python::LaneRow, packets, 32)};
  static_assert(sizeof(python::LaneRow) == 40, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::Carried> {
  static constexpr const char* kRecord = "flow::Carried";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::Carried, bytes, 0), WEFTWORK_FIELD(flow::Carried, packets, 8)};
  static_assert(sizeof(flow::Carried) == 16, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::MilestoneRow> {
  static constexpr const char* kRecord = "flow::MilestoneRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::MilestoneRow, actor, 0), WEFTWORK_FIELD(flow::MilestoneRow, name, 8),
      WEFTWORK_FIELD(flow::MilestoneRow, at_ps, 16)};
  static_assert(sizeof(flow::MilestoneRow) == 24, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::SegmentRow> {
  static constexpr const char* kRecord = "flow::SegmentRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::SegmentRow, actor, 0), WEFTWORK_FIELD(flow::SegmentRow, label, 8),
      WEFTWORK_FIELD(flow::SegmentRow, code, 16), WEFTWORK_FIELD(flow::SegmentRow, start_ps, 24),
      WEFTWORK_FIELD(flow::SegmentRow, end_ps, 32)};
  static_assert(sizeof(flow::SegmentRow) == 40, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::ActivityRow> {
  static constexpr const char* kRecord = "flow::ActivityRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::ActivityRow, label, 0), WEFTWORK_FIELD(flow::ActivityRow, channel, 8),
      WEFTWORK_FIELD(flow::ActivityRow, pattern, 16), WEFTWORK_FIELD(flow::ActivityRow, actor, 24),
      WEFTWORK_FIELD(flow::ActivityRow, ranks, 32), WEFTWORK_FIELD(flow::ActivityRow, instances, 40),
      WEFTWORK_FIELD(flow::ActivityRow, flows, 48), WEFTWORK_FIELD(flow::ActivityRow, operation, 56),
      WEFTWORK_FIELD(flow::ActivityRow, size_bytes, 64), WEFTWORK_FIELD(flow::ActivityRow, posted_ps, 72),
      WEFTWORK_FIELD(flow::ActivityRow, start_ps, 80), WEFTWORK_FIELD(flow::ActivityRow, end_ps, 88)};
  static_assert(sizeof(flow::ActivityRow) == 96, "NumPy lays the record out in another way");
};

template <>
struct Description<flow::Hop> {
  static constexpr const char* kRecord = "flow::Hop";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(flow::Hop, link, 0), WEFTWORK_FIELD(flow::Hop, weight, 8)};
  static_assert(sizeof(flow::Hop) == 16, "NumPy lays the record out in another way");
};

template <>
struct Description<python::RouteRow> {
  static constexpr const char* kRecord = "python::RouteRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::RouteRow, reachable, 0), WEFTWORK_FIELD(python::RouteRow, links, 8),
      WEFTWORK_FIELD(python::RouteRow, latency_ps, 16), WEFTWORK_FIELD(python::RouteRow, rate_bps, 24)};
  static_assert(sizeof(python::RouteRow) == 32, "NumPy lays the record out in another way");
};

template <>
struct Description<python::FlowEndsRow> {
  static constexpr const char* kRecord = "python::FlowEndsRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::FlowEndsRow, source_port, 0), WEFTWORK_FIELD(python::FlowEndsRow, destination_port, 8),
      WEFTWORK_FIELD(python::FlowEndsRow, entropy, 16), WEFTWORK_FIELD(python::FlowEndsRow, destination_qp, 24),
      WEFTWORK_FIELD(python::FlowEndsRow, queue_pair_hash, 32)};
  static_assert(sizeof(python::FlowEndsRow) == 40, "NumPy lays the record out in another way");
};

template <>
struct Description<python::FlowProgressRow> {
  static constexpr const char* kRecord = "python::FlowProgressRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::FlowProgressRow, simulated_ps, 0), WEFTWORK_FIELD(python::FlowProgressRow, end_ps, 8),
      WEFTWORK_FIELD(python::FlowProgressRow, events, 16), WEFTWORK_FIELD(python::FlowProgressRow, solves, 24),
      WEFTWORK_FIELD(python::FlowProgressRow, delivered_bytes, 32)};
  static_assert(sizeof(python::FlowProgressRow) == 40, "NumPy lays the record out in another way");
};

template <>
struct Description<python::FoldedRow> {
  static constexpr const char* kRecord = "python::FoldedRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::FoldedRow, ranks, 0), WEFTWORK_FIELD(python::FoldedRow, actors, 8),
      WEFTWORK_FIELD(python::FoldedRow, activities, 16), WEFTWORK_FIELD(python::FoldedRow, activity_cells, 24),
      WEFTWORK_FIELD(python::FoldedRow, links, 32), WEFTWORK_FIELD(python::FoldedRow, link_cells, 40),
      WEFTWORK_FIELD(python::FoldedRow, kept, 48), WEFTWORK_FIELD(python::FoldedRow, rounds, 56)};
  static_assert(sizeof(python::FoldedRow) == 64, "NumPy lays the record out in another way");
};

template <>
struct Description<python::FluidReportRow> {
  static constexpr const char* kRecord = "python::FluidReportRow";
  static constexpr std::array kFields{
      WEFTWORK_FIELD(python::FluidReportRow, worst_rate_error, 0), WEFTWORK_FIELD(python::FluidReportRow, cpu_s, 8),
      WEFTWORK_FIELD(python::FluidReportRow, most_alive, 16), WEFTWORK_FIELD(python::FluidReportRow, events, 24),
      WEFTWORK_FIELD(python::FluidReportRow, full, 32), WEFTWORK_FIELD(python::FluidReportRow, links, 40),
      WEFTWORK_FIELD(python::FluidReportRow, rates, 48), WEFTWORK_FIELD(python::FluidReportRow, moves, 56)};
  static_assert(sizeof(python::FluidReportRow) == 64, "NumPy lays the record out in another way");
};

/// All of them.
using Records = std::tuple<
      OpRow, DigitRow, GpuRow, StreamRow, flow::CollectRow, flow::AxisRow, SwitchRow, NicRow, PinRow, InstantRow,
      flow::LossRules, Signal, PortSignal, Candidate, SenderState, ReceiverState, PathState, StateField,
      python::MessageRow, PortCounters, Counters, python::QueuePairRow, MilestoneRecord, SeriesRow, EventRow,
      python::TimelineRow, python::PathRow, CaptureRow, python::ProgressRow, WaitRow, DeadlockRow, python::ActorRow,
      python::TierRow, python::LaneRow, flow::Carried, flow::MilestoneRow, flow::SegmentRow, flow::ActivityRow,
      flow::Hop, python::RouteRow, python::FlowEndsRow, python::FlowProgressRow, python::FoldedRow,
      python::FluidReportRow>;

}  // namespace weftwork::python
