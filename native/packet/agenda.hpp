/// The agenda of a node: a heap of (instant, kind, identity). Entries may be stale; who set them knows.
#pragma once
#include <algorithm>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/ids.hpp"

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
  kNotify = 8
};

/// The kind lies in the upper 4 bits of a key; then local port (20) and the rest (40), or rank (40) and link or token
/// (20), or stream (60).
struct AgendaEntry {
  Ps at_ps;
  std::uint64_t key;

  [[nodiscard]] AgendaKind kind() const { return static_cast<AgendaKind>(key >> 60); }
  [[nodiscard]] LocalPort port() const { return LocalPort((key >> 40) & 0xFFFFFU); }
  [[nodiscard]] std::uint64_t rest() const { return key & 0xFFFFFFFFFFULL; }
  [[nodiscard]] RankId rank() const { return RankId((key >> 20) & 0xFFFFFFFFFFULL); }
  [[nodiscard]] Link link() const { return static_cast<Link>(key & 0xFFFFFU); }
  [[nodiscard]] std::int64_t token() const { return static_cast<std::int64_t>(key & 0xFFFFFU); }
  [[nodiscard]] StreamId stream() const { return StreamId(key); }
};

inline std::uint64_t port_key(AgendaKind kind, LocalPort port, std::uint64_t rest) {
  return static_cast<std::uint64_t>(kind) << 60 | static_cast<std::uint64_t>(port.value) << 40 | rest;
}
inline std::uint64_t job_key(StreamId stream) {
  return stream.index();
}
inline std::uint64_t rank_key(AgendaKind kind, RankId rank, std::uint64_t rest) {
  return static_cast<std::uint64_t>(kind) << 60 | static_cast<std::uint64_t>(rank.value) << 20 | rest;
}
inline std::uint64_t link_key(AgendaKind kind, RankId rank, Link link) {
  return rank_key(kind, rank, static_cast<std::uint64_t>(link));
}

class Agenda {
 public:
  [[nodiscard]] Ps next_ps() const { return next_at_ps_; }

  /// Whether what comes next would come after the end of simulated time.
  [[nodiscard]] bool outlasts_the_clock() const { return !heap_.empty() && next_at_ps_ >= kNeverPs; }

  void push(Ps at_ps, std::uint64_t key) {
    must_hold(at_ps >= handled_at_ps_, Invariant::time_never_runs_back, "at_ps handled_at_ps kind", at_ps,
              handled_at_ps_, key >> 60);
    heap_.push_back({at_ps, key});
    std::push_heap(heap_.begin(), heap_.end(), later);
    next_at_ps_ = heap_.front().at_ps;
  }

  /// Whether any entry, also a stale one, is one of those that `wanted` says.
  template <typename Wanted>
  [[nodiscard]] bool any(Wanted&& wanted) const {
    return std::any_of(heap_.begin(), heap_.end(), wanted);
  }

  AgendaEntry pop() {
    must_hold(!heap_.empty(), Invariant::time_never_runs_back, "next_at_ps", next_at_ps_);
    std::pop_heap(heap_.begin(), heap_.end(), later);
    const AgendaEntry entry = heap_.back();
    heap_.pop_back();
    next_at_ps_ = heap_.empty() ? kNeverPs : heap_.front().at_ps;
    must_hold(entry.at_ps >= handled_at_ps_ && entry.at_ps <= next_at_ps_, Invariant::time_never_runs_back,
              "at_ps handled_at_ps next_at_ps kind", entry.at_ps, handled_at_ps_, next_at_ps_, entry.kind());
    handled_at_ps_ = entry.at_ps;
    return entry;
  }

 private:
  /// By time, then by key, as one number: a branch that depends on both entries is guessed wrong half the time.
  static bool later(const AgendaEntry& a, const AgendaEntry& b) { return order(a) > order(b); }
  static unsigned __int128 order(const AgendaEntry& entry) {
    return static_cast<unsigned __int128>(entry.at_ps) << 64 | entry.key;
  }
  Ps next_at_ps_ = kNeverPs;
  Ps handled_at_ps_ = 0;  // the last entry
  std::vector<AgendaEntry> heap_;
};

}  // namespace weftwork
