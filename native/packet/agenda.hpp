/// What a domain has to do on its own: a heap of (instant, kind, identity). Entries may be stale; who set them knows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"

namespace weftwork {

enum class AgendaKind : std::uint64_t {
  kJob = 0,
  kHostInterface = 1,
  kRetransmission = 2,
  kSenderTimer = 3,
  kReceiverTimer = 4,
  kPauseRefresh = 5,
  kDelivery = 6,
  kEgress = 7,
  kSignal = 8
};

struct AgendaEntry {
  Ps at_ps;
  std::uint64_t
      key;  // kind in the upper 4 bits, then local port (20) and the rest (40), or rank (40) and stream or link (20)

  [[nodiscard]] AgendaKind kind() const { return static_cast<AgendaKind>(key >> 60); }
  [[nodiscard]] std::uint32_t port() const { return static_cast<std::uint32_t>(key >> 40) & 0xFFFFFU; }
  [[nodiscard]] std::uint64_t rest() const { return key & 0xFFFFFFFFFFULL; }
  [[nodiscard]] std::uint64_t rank() const { return (key >> 20) & 0xFFFFFFFFFFULL; }
  [[nodiscard]] std::uint32_t stream() const { return static_cast<std::uint32_t>(key) & 0xFFFFFU; }
};

inline std::uint64_t port_key(AgendaKind kind, std::int32_t port, std::uint64_t rest) {
  return static_cast<std::uint64_t>(kind) << 60 | static_cast<std::uint64_t>(port) << 40 | rest;
}
inline std::uint64_t job_key(std::uint64_t rank, std::uint64_t stream) {
  return rank << 20 | stream;
}
inline std::uint64_t server_key(AgendaKind kind, std::int32_t rank, std::uint64_t link) {
  return static_cast<std::uint64_t>(kind) << 60 | static_cast<std::uint64_t>(rank) << 20 | link;
}

class Agenda {
 public:
  [[nodiscard]] Ps next_ps() const { return next_at_ps_; }

  /// Whether what comes next would come after the end of simulated time.
  [[nodiscard]] bool outlasts_the_clock() const { return !heap_.empty() && next_at_ps_ >= kNeverPs; }

  void push(Ps at_ps, std::uint64_t key) {
    heap_.push_back({at_ps, key});
    std::push_heap(heap_.begin(), heap_.end(), later);
    next_at_ps_ = heap_.front().at_ps;
  }

  AgendaEntry pop() {
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const AgendaEntry entry = heap_.back();
    heap_.pop_back();
    next_at_ps_ = heap_.empty() ? kNeverPs : heap_.front().at_ps;
    return entry;
  }

 private:
  static bool later(const AgendaEntry& a, const AgendaEntry& b) {
    return a.at_ps != b.at_ps ? a.at_ps > b.at_ps : a.key > b.key;
  }
  Ps next_at_ps_ = kNeverPs;
  std::vector<AgendaEntry> heap_;
};

}  // namespace weftwork
