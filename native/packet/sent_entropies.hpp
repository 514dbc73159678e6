/// The entropy that each packet of a queue pair carried when it was sent last: a ring by packet number.
/// Leaves out: packets below the one that is acknowledged next, which nobody asks for.
#pragma once
#include <bit>
#include <cstddef>
#include <cstdint>
#include <utility>
#include <vector>

namespace weftwork {

class SentEntropies {
 public:
  /// Packet `seq` leaves; none below `una` will be asked for.
  void put(std::int64_t seq, std::int64_t una, std::uint16_t entropy) {
    const auto span = static_cast<std::uint64_t>(seq - una) + 1;
    if (span > ring_.size()) grow(una, span);
    ring_[place(seq)] = entropy;
  }

  /// That of packet `seq`, which was sent and is not acknowledged.
  [[nodiscard]] std::uint16_t of(std::int64_t seq) const { return ring_[place(seq)]; }

 private:
  [[nodiscard]] std::size_t place(std::int64_t seq) const {
    return static_cast<std::uint64_t>(seq) & (ring_.size() - 1);
  }

  void grow(std::int64_t una, std::uint64_t span) {
    SentEntropies larger;
    larger.ring_.resize(std::bit_ceil(span));
    for (std::int64_t seq = una; seq < una + static_cast<std::int64_t>(ring_.size()); ++seq)
      larger.ring_[larger.place(seq)] = ring_[place(seq)];
    ring_ = std::move(larger.ring_);
  }

  std::vector<std::uint16_t> ring_;  // a power of two of them
};

}  // namespace weftwork
