/// The identity of a flow, which is all messages of one (source, destination, channel).
/// Source: docs/models/packet-engine.md, "Entropy" and "Hash"; the same bits as weftwork.engine.outcome.flow_identity.
#pragma once
#include <cstdint>

#include "base/random.hpp"

namespace weftwork {

/// 24 bits of the source's rank, 24 of the destination's, 16 of the channel.
inline std::uint64_t flow_identity(std::int64_t source, std::int64_t destination, std::int64_t channel) {
  return static_cast<std::uint64_t>(source) << 40 | static_cast<std::uint64_t>(destination) << 16 |
         static_cast<std::uint64_t>(channel);
}

struct FlowEnds {
  std::int64_t source, destination, channel;
};

inline FlowEnds flow_ends(std::uint64_t flow) {
  return {static_cast<std::int64_t>(flow >> 40), static_cast<std::int64_t>(flow >> 16 & 0xFFFFFF),
          static_cast<std::int64_t>(flow & 0xFFFF)};
}

/// The entropy (UDP source port) that a flow's queue pair has where no policy chooses another.
inline std::uint16_t flow_entropy(std::uint64_t seed, std::uint64_t flow) {
  return static_cast<std::uint16_t>(0xC000U | (draw(seed, Stream::kPathChoice, flow, 0, 0) & 0x3FFFU));
}

/// The number of a flow's queue pair, as switches may hash it: 24 bits.
inline std::uint32_t queue_pair_number(std::uint64_t flow) {
  return static_cast<std::uint32_t>(draw(0, Stream::kPathChoice, flow, 1, 0)) & 0xFFFFFFU;
}

/// The hash of a flow's queue pair that policies and detours see: 62 bits.
inline std::int64_t queue_pair_hash(std::uint64_t seed, std::uint64_t flow) {
  return static_cast<std::int64_t>(draw(seed, Stream::kQueuePair, flow, 0, 0) >> 2U);
}

}  // namespace weftwork
