/// The hash by which a switch spreads flows: digest of chosen header fields, then seed and offset. Both engines take a
/// port of several by it, so that a flow of one path goes where its packets go.
/// Source: docs/models/packet-engine.md, "Hash". Leaves out: which port the hash names (routing of each engine).
#pragma once
#include <cstdint>

#include "base/random.hpp"
#include "paths/digest.hpp"
#include "rows/fabric.hpp"

namespace weftwork {

/// A hash function of some switches, and how its digest follows from the one that packets carry.
struct HashFunction {
  HashAlgorithm algorithm = HashAlgorithm::kCrc32;
  std::uint32_t seed = 0;
  std::uint32_t offset = 0;
  std::uint32_t fields = 0;
  std::uint32_t seed_effect = 0;  // XORed into the digest; a CRC is affine in its initial value
  bool carried = false;           // the packet's `hash` is this function's digest
};

/// The hash function that switches of one kind are set to; no packet carries its digest yet.
inline HashFunction hash_function_of(const SwitchRow& row) {
  HashFunction function;
  function.algorithm = static_cast<HashAlgorithm>(row.hash_algorithm);
  function.seed = static_cast<std::uint32_t>(row.hash_seed);
  function.offset = static_cast<std::uint32_t>(row.hash_offset);
  function.fields = static_cast<std::uint32_t>(row.hash_fields);
  return function;
}

/// The digest of a packet's headers, begun with the seed of the function.
inline std::uint32_t digest_of(const HashFunction& function, const HashInput& input) {
  return digest(function.algorithm, function.seed, field_bytes(function.fields, input));
}

/// The hash that follows from a digest, shifted by the switch's offset.
[[gnu::always_inline]] inline std::uint32_t hash_of(const HashFunction& function, std::uint32_t digest) {
  if (function.algorithm == HashAlgorithm::kMix)
    digest = static_cast<std::uint32_t>(mix(digest, function.seed, 0) >> 32U);
  return digest >> function.offset;
}

}  // namespace weftwork
