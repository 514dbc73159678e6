/// The calendar: nodes with work in each window, without a scan of all nodes.
/// A ring of 1,024 windows holds a bitmap of nodes each; what lies further ahead waits in a heap.
/// Invariant: a node with an event in window w is scheduled for w before w begins.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <queue>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"

namespace weftwork {

class Calendar {
 public:
  Calendar(std::size_t nodes, Ps window_ps)
      : window_ps_(window_ps), words_((nodes + 63) / 64), bits_(words_ * kWindows, 0), occupied_(kWindows / 64, 0) {}

  /// Start of the current window.
  [[nodiscard]] Ps start_ps() const { return start_at_ps_; }
  [[nodiscard]] Ps end_ps() const { return start_at_ps_ + window_ps_; }

  /// Note that `node` has something to do at `at_ps`, which lies in the current window or later.
  /// Returns the end of that window.
  Ps schedule(NodeId node, Ps at_ps) {
    Ps ahead = at_ps - start_at_ps_;
    must_hold(ahead >= 0, Invariant::time_never_runs_back, "at_ps window_at_ps node", at_ps, start_at_ps_, node);
    std::int64_t windows = 0;
    if (ahead < 4 * window_ps_) {
      while (ahead >= window_ps_) {
        ahead -= window_ps_;
        ++windows;
      }
    } else {
      windows = ahead / window_ps_;
      if (windows >= kWindows) {
        if (at_ps < kNeverPs) far_.emplace(current_ + windows, node);
        return start_at_ps_ + (windows + 1) * window_ps_;
      }
    }
    set(slot_of(current_ + windows), node);
    return start_at_ps_ + (windows + 1) * window_ps_;
  }

  /// Start of the first window from the current one on for which a node is scheduled, or never.
  [[nodiscard]] Ps next_ps() const {
    std::int64_t target = next_occupied();
    if (!far_.empty() && (target < 0 || far_.top().first < target)) target = far_.top().first;
    return target < 0 ? kNeverPs : target * window_ps_;
  }

  /// Make the window that contains `at_ps` the current one; no window with a scheduled node lies in between.
  void go_to(Ps at_ps) {
    must_hold(at_ps >= start_at_ps_, Invariant::time_never_runs_back, "at_ps window_at_ps", at_ps, start_at_ps_);
    current_ = at_ps / window_ps_;
    start_at_ps_ = current_ * window_ps_;
    must_hold(at_ps - start_at_ps_ < window_ps_, Invariant::time_never_runs_back, "at_ps window_at_ps window_ps", at_ps,
              start_at_ps_, window_ps_);
    while (!far_.empty() && far_.top().first < current_ + kWindows) {
      must_hold(far_.top().first >= current_, Invariant::time_never_runs_back, "window current_window node",
                far_.top().first, current_, far_.top().second);
      set(slot_of(far_.top().first), far_.top().second);
      far_.pop();
    }
  }

  /// Call `visit(node)` for every node of the current window, those scheduled meanwhile included.
  template <typename Visit>
  void each(Visit&& visit) {
    std::uint64_t* row = &bits_[slot_of(current_) * words_];
    for (std::size_t word = 0; word < words_; ++word) {
      std::uint64_t rest = row[word];
      while (rest != 0) {
        visit(NodeId(lowest_place(word, rest)));
        rest &= rest - 1;
      }
    }
  }

  /// Forget the nodes of the current window, which is done.
  void clear() {
    const std::size_t slot = slot_of(current_);
    std::fill_n(bits_.begin() + static_cast<std::ptrdiff_t>(slot * words_), words_, 0);
    occupied_[slot / 64] &= ~(std::uint64_t{1} << (slot % 64));
  }

 private:
  static constexpr std::int64_t kWindows = 1024;

  /// The place of a window in the ring.
  static std::size_t slot_of(std::int64_t window) { return static_cast<std::size_t>(window & (kWindows - 1)); }

  void set(std::size_t slot, NodeId node) {
    std::uint64_t& word = bits_[slot * words_ + node.index() / 64];
    const std::uint64_t bit = std::uint64_t{1} << (node.index() % 64);
    if ((word & bit) != 0) return;
    word |= bit;
    occupied_[slot / 64] |= std::uint64_t{1} << (slot % 64);
  }

  /// Number of the first occupied window from the current one on, or -1.
  [[nodiscard]] std::int64_t next_occupied() const {
    const std::size_t first = slot_of(current_);
    for (std::size_t step = 0; step <= kWindows / 64; ++step) {
      const std::size_t word = (first / 64 + step) % (kWindows / 64);
      std::uint64_t bits = occupied_[word];
      if (step == 0) bits &= ~std::uint64_t{0} << (first % 64);
      if (step == kWindows / 64) bits &= ~(~std::uint64_t{0} << (first % 64));
      if (bits == 0) continue;
      const std::size_t slot = lowest_place(word, bits);
      return current_ + static_cast<std::int64_t>((slot - first) & (kWindows - 1));
    }
    return -1;
  }

  using Far = std::pair<std::int64_t, NodeId>;
  Ps window_ps_;
  Ps start_at_ps_ = 0;
  std::int64_t current_ = 0;
  std::size_t words_;
  std::vector<std::uint64_t> bits_;      // by window slot, then node
  std::vector<std::uint64_t> occupied_;  // by window slot
  std::priority_queue<Far, std::vector<Far>, std::greater<>> far_;
};

}  // namespace weftwork
