/// Calls of policies' steps are counted, so that a run can be repeated up to the one that failed.
/// Nothing is copied before a call: the state may be large, and a run is deterministic.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "packet/failures.hpp"
#include "packet/policy_calls.hpp"

namespace weftwork {

/// The records of a call, as its step sees them.
struct CallRecords {
  std::span<const std::uint8_t> state, shared, signal, candidates;
};

/// What a call of a port selection has besides: its records of the ports, and how often it has changed `via` of this
/// packet at this switch.
struct PortCallRecords {
  std::span<const std::uint8_t> ports;
  std::int64_t via_changes = 0;
};

template <typename Record>
std::span<const std::uint8_t> bytes_of(const Record* records, std::size_t count = 1) {
  return {reinterpret_cast<const std::uint8_t*>(records), count * sizeof(Record)};
}

[[noreturn, gnu::cold, gnu::noinline]] inline void stop_with(const PolicyCalls& calls, const char* kind,
                                                             bool of_receiver, const CallRecords& records,
                                                             const PortCallRecords& more = {},
                                                             bool stands_still = false) {
  const auto copy = [](std::span<const std::uint8_t> bytes) {
    return std::vector<std::uint8_t>(bytes.begin(), bytes.end());
  };
  throw PolicyStop({kind, of_receiver, calls.step_calls, copy(records.state), copy(records.shared),
                    copy(records.signal), copy(records.candidates), copy(more.ports), more.via_changes, stands_still});
}

/// Count a call of a step, which follows; stop before the one that the repeated run is for.
[[gnu::always_inline]] inline void count_call(PolicyCalls& calls, const char* kind, bool of_receiver,
                                              const CallRecords& records, const PortCallRecords& more = {}) {
  calls.step_calls += 1;
  if (calls.step_calls == calls.stop_before_call) [[unlikely]]
    stop_with(calls, kind, of_receiver, records, more);
}

}  // namespace weftwork
