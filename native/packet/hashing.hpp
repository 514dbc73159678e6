/// The hash by which a switch spreads flows: digest of chosen header fields, then seed and offset.
/// A packet carries the digest of the fabric's first hash function; other functions of the same polynomial and fields
/// follow from it by one XOR, since a CRC is affine in its initial value. Anything else is computed where it is needed.
#pragma once
#include <algorithm>

#include "base/flow_identity.hpp"
#include "base/random.hpp"
#include "packet/digest.hpp"
#include "packet/state.hpp"

namespace weftwork {

inline void prepare_hash_functions(State& s) {
  for (const SwitchRow& row : s.in.switches) {
    HashFunction function;
    function.algorithm = static_cast<HashAlgorithm>(row.hash_algorithm);
    function.seed = static_cast<std::uint32_t>(row.hash_seed);
    function.offset = static_cast<std::uint32_t>(row.hash_offset);
    function.fields = static_cast<std::uint32_t>(row.hash_fields);
    if (!s.hash_functions.empty() || (function.fields & kInPort) == 0) {
      const HashFunction& first = s.hash_functions.empty() ? function : s.hash_functions[DeviceId(0)];
      const auto polynomial = [](HashAlgorithm a) { return a == HashAlgorithm::kMix ? HashAlgorithm::kCrc32 : a; };
      function.carried = polynomial(function.algorithm) == polynomial(first.algorithm) &&
                         function.fields == first.fields && (function.fields & kInPort) == 0;
    }
    if (function.carried && function.algorithm != HashAlgorithm::kMix) {
      const FieldBytes zeros = [&] {
        FieldBytes bytes = field_bytes(function.fields, HashInput{});
        bytes.data.fill(0);
        return bytes;
      }();
      function.seed_effect = digest(function.algorithm, function.seed, zeros) ^ digest(function.algorithm, 0, zeros);
    }
    s.hash_functions.push_back(function);
  }
}

inline HashInput hash_input(const QueuePair& qp, PortId from_port, PortId to_port, std::uint16_t entropy,
                            std::uint16_t in_port) {
  return {kFirstAddress + static_cast<std::uint32_t>(from_port.value),
          kFirstAddress + static_cast<std::uint32_t>(to_port.value), entropy, in_port, queue_pair_number(qp.flow)};
}

/// What a packet with this entropy carries in `Packet::hash`.
inline std::uint32_t carried_hash(const State& s, const QueuePair& qp, bool forward, std::uint16_t entropy) {
  if (s.hash_functions.empty() || !s.hash_functions[DeviceId(0)].carried) return 0;
  const HashFunction& first = s.hash_functions[DeviceId(0)];
  const PortId from_port = forward ? qp.source_port : qp.destination_port;
  const PortId to_port = forward ? qp.destination_port : qp.source_port;
  return digest(first.algorithm, 0, field_bytes(first.fields, hash_input(qp, from_port, to_port, entropy, 0)));
}

/// The NIC port that has sent a packet.
inline PortId origin_port(const State& s, const QueuePair& qp, Packet* packet) {
  if (s.moves) return extension(packet).origin_port;
  return has(packet->flags, kForward) ? qp.source_port : qp.destination_port;
}

/// Whether a packet has an entropy that differs from its queue pair's: data, and a reply that follows what it echoes.
inline bool has_entropy(const State& s, const Packet* packet) {
  if (!s.entropy_per_packet) return false;
  if (packet->kind == PacketKind::kData) return true;
  return s.in.transport.replies_follow != 0 && has(packet->flags, kHasEcho);
}

/// The UDP source port of a packet.
inline std::uint16_t entropy_of(const State& s, const QueuePair& qp, Packet* packet) {
  return has_entropy(s, packet) ? extension(packet).entropy : qp.own_entropy;
}

/// The digest of the fields of a packet that does not carry it.
[[gnu::noinline]] inline std::uint32_t hash_of_fields(const State& s, const HashFunction& function, Packet* packet) {
  const QueuePair& qp = s.queue_pairs[packet->queue_pair];
  const PortId from_port = origin_port(s, qp, packet);
  const std::uint16_t entropy = entropy_of(s, qp, packet);
  const auto in_port = static_cast<std::uint16_t>(s.ingress_port(*packet).value);
  const FieldBytes bytes =
      field_bytes(function.fields, hash_input(qp, from_port, packet->destination_port, entropy, in_port));
  return digest(function.algorithm, function.algorithm == HashAlgorithm::kMix ? 0 : function.seed, bytes);
}

/// The hash of a packet at a switch, shifted by the switch's offset.
[[gnu::always_inline]] inline std::uint32_t switch_hash(const State& s, const HashFunction& function, Packet* packet) {
  std::uint32_t value = function.carried ? packet->hash ^ function.seed_effect : hash_of_fields(s, function, packet);
  if (function.algorithm == HashAlgorithm::kMix)
    value = static_cast<std::uint32_t>(mix(value, function.seed, 0) >> 32U);
  return value >> function.offset;
}

}  // namespace weftwork
