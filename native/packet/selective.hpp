/// What a sender under selective repeat knows of its packets: which ones the receiver keeps, and which to send again.
/// Source: docs/models/packet-engine.md, "Selective repeat". Exists only for queue pairs that have lost something.
/// Invariant: what is kept lies in [una, una + window), since the receiver keeps no more.
#pragma once
#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include "base/ids.hpp"

namespace weftwork {

class Selective {
 public:
  /// `una` is the sender's; `window_packets` how far ahead of it a receiver keeps packets.
  Selective(std::int64_t una, std::int64_t window_packets)
      : next_lost_(una),
        una_(una),
        kept_(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(64, window_packets))) / 64, 0) {}

  [[nodiscard]] bool has_lost() const { return next_lost_ < lost_below_; }
  /// The first lost packet, if there is one.
  [[nodiscard]] std::int64_t first_lost() const { return next_lost_; }

  /// Everything from `una` on moved to `to` is acknowledged.
  void acknowledge(std::int64_t una, std::int64_t to) {
    const std::int64_t end = std::min(to, una + room());
    for (std::int64_t seq = una; kept_count_ > 0 && seq < end; ++seq) {
      const std::uint64_t was = word(seq);
      word(seq) &= ~bit(seq);
      kept_count_ -= was != word(seq) ? 1 : 0;
    }
    una_ = to;
    settle();
  }

  /// The receiver keeps `seq`, which is at or above `una`; what lies before `lost_below` was overtaken by too much.
  void keep(std::int64_t seq, std::int64_t lost_below) {
    kept_count_ += (word(seq) & bit(seq)) == 0 ? 1 : 0;
    word(seq) |= bit(seq);
    lost_below_ = std::max(lost_below_, lost_below);
    settle();
  }

  /// The first lost packet is sent again.
  void take() {
    next_lost_ += 1;
    settle();
  }

  /// Everything that was sent and is not kept is lost.
  void lose_all(std::int64_t una, std::int64_t nxt) {
    una_ = next_lost_ = una;
    lost_below_ = nxt;
    message = MessageId::none();
    settle();
  }

  MessageId message;  // of a packet at or before the first lost one; none: look from the oldest message on

 private:
  [[nodiscard]] std::int64_t room() const { return static_cast<std::int64_t>(kept_.size()) * 64; }
  std::uint64_t& word(std::int64_t seq) { return kept_[static_cast<std::uint64_t>(seq) / 64 % kept_.size()]; }
  static std::uint64_t bit(std::int64_t seq) { return std::uint64_t{1} << (static_cast<std::uint64_t>(seq) % 64); }

  /// Pass over what need not be sent again.
  void settle() {
    next_lost_ = std::max(next_lost_, una_);
    if (kept_count_ == 0) return;
    while (next_lost_ < lost_below_ && next_lost_ < una_ + room() && (word(next_lost_) & bit(next_lost_)) != 0)
      ++next_lost_;
  }

  std::int64_t next_lost_;  // as the page has it, or behind it where nothing that is lost lies between
  std::int64_t lost_below_ = 0;
  std::int64_t una_;  // the sender's, since the last call
  std::int64_t kept_count_ = 0;
  std::vector<std::uint64_t> kept_;  // ring by packet number
};

}  // namespace weftwork
