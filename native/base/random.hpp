/// Randomness that belongs to an identity; the same bits as weftwork.base.random.
/// Source: the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014, doi:10.1145/2660193.2660195).
#pragma once
#include <cstdint>

namespace weftwork {

/// What a draw is for: weftwork.base.random.Stream.
enum class Stream : std::uint64_t {
  kLinkLoss = 3,
  kLinkCorruption = 4,
  kEcnMark = 5,
  kPortChoice = 6,
  kPathChoice = 7,
  kQueuePair = 10,
  kPathLoad = 11
};

inline std::uint64_t mix(std::uint64_t a, std::uint64_t b, std::uint64_t c) {
  std::uint64_t x = a * 0x9E3779B97F4A7C15ULL + b * 0xBF58476D1CE4E5B9ULL + c * 0x94D049BB133111EBULL;
  x ^= x >> 30;
  x *= 0xBF58476D1CE4E5B9ULL;
  x ^= x >> 27;
  x *= 0x94D049BB133111EBULL;
  return x ^ (x >> 31);
}

inline std::uint64_t draw(std::uint64_t seed, Stream stream, std::uint64_t flow, std::uint64_t packet,
                          std::uint64_t place) {
  return mix(flow, packet | (static_cast<std::uint64_t>(stream) << 56), (seed << 32) + place);
}

/// A float in [0, 1) from 64 random bits.
inline double uniform(std::uint64_t bits) {
  return static_cast<double>(bits >> 11) * (1.0 / 9007199254740992.0);
}

}  // namespace weftwork
