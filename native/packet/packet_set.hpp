/// A set of packet numbers that lie near each other: one bit each, in a ring that grows with their span.
/// Invariant: all members lie in [floor, floor + room), where floor is what the last call was told.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

#include "base/invariant.hpp"

namespace weftwork {

class PacketSet {
 public:
  [[nodiscard]] bool empty() const { return count_ == 0; }

  [[nodiscard]] bool contains(std::int64_t seq) const {
    return count_ != 0 && seq >= floor_ && seq - floor_ < room() && (word(seq) & bit(seq)) != 0;
  }

  /// Insert `seq`, which is no member; no member lies below `floor`, and none will be inserted there.
  void insert(std::int64_t seq, std::int64_t floor) {
    floor_ = floor;
    if (seq - floor >= room()) grow(seq);
    must_hold(seq >= floor && (word(seq) & bit(seq)) == 0, Invariant::packet_is_kept_or_lost, "seq floor count", seq,
              floor, count_);
    words_[place(seq)] |= bit(seq);
    count_ += 1;
  }

  /// Remove `seq`, which is a member.
  void erase(std::int64_t seq) {
    must_hold(contains(seq), Invariant::packet_is_kept_or_lost, "seq floor count", seq, floor_, count_);
    words_[place(seq)] &= ~bit(seq);
    count_ -= 1;
  }

  /// The smallest member of a set that is not empty.
  [[nodiscard]] std::int64_t first() const {
    std::int64_t seq = floor_;
    for (;;) {
      const std::uint64_t rest = word(seq) >> (static_cast<std::uint64_t>(seq) % 64);
      if (rest != 0) return seq + std::countr_zero(rest);
      seq += 64 - seq % 64;
    }
  }

 private:
  [[nodiscard]] std::int64_t room() const { return static_cast<std::int64_t>(words_.size()) * 64; }
  [[nodiscard]] std::size_t place(std::int64_t seq) const {
    return static_cast<std::uint64_t>(seq) / 64 & (words_.size() - 1);
  }
  [[nodiscard]] std::uint64_t word(std::int64_t seq) const { return words_[place(seq)]; }
  static std::uint64_t bit(std::int64_t seq) { return std::uint64_t{1} << (static_cast<std::uint64_t>(seq) % 64); }

  void grow(std::int64_t seq) {
    const auto span = static_cast<std::uint64_t>(seq - floor_) / 64 + 2;  // the first and the last word may be one
    PacketSet larger;
    larger.floor_ = floor_;
    larger.words_.resize(std::bit_ceil(std::max<std::uint64_t>(span, 2 * words_.size())));
    if (!words_.empty())
      for (std::int64_t old = floor_; old < floor_ + room(); ++old)
        if ((word(old) & bit(old)) != 0) larger.words_[larger.place(old)] |= bit(old);
    words_ = std::move(larger.words_);
  }

  std::vector<std::uint64_t> words_;  // a power of two of them
  std::int64_t floor_ = 0;
  std::int64_t count_ = 0;
};

}  // namespace weftwork
