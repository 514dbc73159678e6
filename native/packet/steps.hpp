/// Calls of a policy's compiled steps: fill the signal, count the call, check what was written.
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>

#include "base/clock.hpp"
#include "packet/agenda.hpp"
#include "packet/fabric.hpp"
#include "packet/policy.hpp"
#include "packet/policy_calls.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/schedule.hpp"
#include "packet/setup.hpp"
#include "packet/step_calls.hpp"
#include "packet/timers.hpp"
#include "rows/policies.hpp"

namespace weftwork {

inline SenderState& sender_state(const QueuePair& qp) {
  return *reinterpret_cast<SenderState*>(qp.congestion);
}
inline ReceiverState& receiver_state(const QueuePair& qp) {
  return *reinterpret_cast<ReceiverState*>(qp.receiver_record);
}
inline PathState& path_state(const QueuePair& qp) {
  return *reinterpret_cast<PathState*>(qp.path);
}

/// Idle queue pairs and dead ones have no timers.
inline void stop_timers(const QueuePair& qp) {
  std::fill_n(sender_state(qp).timer_at_ps, kTimers, kOff);
  if (qp.path != nullptr) std::fill_n(path_state(qp).timer_at_ps, kTimers, kOff);
}

/// A new record that starts as `initial`, in cache lines of its own.
inline std::uint8_t* new_record(PolicyCalls& calls, std::span<const std::uint8_t> initial) {
  constexpr std::size_t kLine = 64;
  calls.records.push_back(std::make_unique<std::uint64_t[]>((initial.size() + kLine + 7) / 8));
  void* place = calls.records.back().get();
  std::size_t room = initial.size() + kLine;
  auto* record = static_cast<std::uint8_t*>(std::align(kLine, initial.size(), place, room));
  std::copy(initial.begin(), initial.end(), record);
  return record;
}

/// `calls.signal` without what the last call has filled in.
inline Signal& empty_signal(PolicyCalls& calls) {
  Signal& signal = calls.signal;
  std::memset(static_cast<void*>(&signal), 0, offsetof(Signal, hop_queue_bytes));
  if (calls.signal_has_hops) std::memset(signal.hop_queue_bytes, 0, sizeof(Signal) - offsetof(Signal, hop_queue_bytes));
  calls.signal_has_hops = false;
  return signal;
}

/// The signal with what every step of a sender sees; telemetry is zero unless filled.
inline Signal& sender_signal(const Setup& setup, const Fabric& fabric, PolicyCalls& calls, const QueuePair& qp,
                             Kind kind, Ps now_ps) {
  Signal& signal = empty_signal(calls);
  signal.kind = static_cast<std::int64_t>(kind);
  signal.now_ps = now_ps;
  signal.next_seq = qp.sender.nxt;
  signal.line_rate_bps = fabric.rate_bps[qp.source_port];
  signal.base_rtt_ps = qp.sender.base_rtt_ps;
  signal.fabric_base_rtt_ps = setup.in.fabric_base_rtt_ps;
  signal.mtu_bytes = setup.in.transport.mtu_bytes;
  signal.inflight_bytes = inflight_bytes(qp.sender);
  signal.backlog_bytes = qp.sender.end_bytes - qp.sender.nxt_bytes;
  return signal;
}

/// What the sender's step may not leave behind.
inline bool is_refused(const SenderState& state) {
  return !(state.rate_bps > 0) || !std::isfinite(state.rate_bps) || !(state.window_bytes >= 0) ||
         !std::isfinite(state.window_bytes) || (state.timeout_ps | state.segment_bytes | state.request_bytes) < 0;
}

/// Call the sender's step with `calls.signal`, which is filled; what it asks for is up to `tell_sender`.
inline void call_sender(const Setup& setup, Schedule& schedule, PolicyCalls& calls, QueuePair& qp, Ps now_ps) {
  const CongestionPolicy& policy = setup.in.congestion;
  count_call(calls, "congestion_control", false,
             {{qp.congestion, policy.state.size()}, {}, bytes_of(&calls.signal), {}});
  const std::int32_t status =
      policy.step(const_cast<std::uint8_t*>(policy.params.data()), qp.congestion, &calls.signal);
  const SenderState& state = sender_state(qp);
  if (status != 0 || is_refused(state)) [[unlikely]]
    stop_with(calls, "congestion_control", false, {});
  arm_timers(setup, schedule, qp.source_port, AgendaKind::kSenderTimer, qp.sender.slot.index() * kSenderTimers,
             state.timer_at_ps, qp.sender.timer_entry_at_ps, now_ps);
}

inline bool wants(std::uint32_t signals, Kind kind) {
  return (signals & bit(kind)) != 0;
}

/// Call the receiver's step with `calls.signal`, which is filled.
inline void call_receiver(const Setup& setup, Schedule& schedule, PolicyCalls& calls, QueuePair& qp, NicPort& nic,
                          Ps now_ps) {
  const CongestionPolicy& policy = setup.in.congestion;
  auto* shared = reinterpret_cast<std::uint8_t*>(nic.shared.data());
  count_call(calls, "congestion_control", true,
             {{qp.receiver_record, policy.receiver_state.size()},
              {shared, policy.shared_state.size()},
              bytes_of(&calls.signal),
              {}});
  const std::int32_t status =
      policy.receive(const_cast<std::uint8_t*>(policy.params.data()), qp.receiver_record, shared, &calls.signal);
  if (status != 0 || receiver_state(qp).credit_bytes < qp.credited_bytes) [[unlikely]]
    stop_with(calls, "congestion_control", true, {});
  arm_timers(setup, schedule, qp.destination_port, AgendaKind::kReceiverTimer, qp.receiver.slot.index() * kTimers,
             receiver_state(qp).timer_at_ps, qp.receiver.timer_entry_at_ps, now_ps);
}

/// Call path selection with `calls.signal`, which is filled.
inline void call_path(const Setup& setup, Schedule& schedule, PolicyCalls& calls, QueuePair& qp, Ps now_ps) {
  const PathPolicy& policy = setup.in.path;
  count_call(calls, "path_selection", false, {{qp.path, policy.state.size()}, {}, bytes_of(&calls.signal), {}});
  const std::int32_t status = policy.step(const_cast<std::uint8_t*>(policy.params.data()), qp.path, &calls.signal);
  const std::int64_t entropy = path_state(qp).entropy;
  if (status != 0 || entropy < 0 || entropy > 0xFFFF) [[unlikely]]
    stop_with(calls, "path_selection", false, {});
  arm_timers(setup, schedule, qp.source_port, AgendaKind::kSenderTimer,
             qp.sender.slot.index() * kSenderTimers + kTimers, path_state(qp).timer_at_ps, qp.path_timer_entry_at_ps,
             now_ps);
}

}  // namespace weftwork
