/// The hash by which a switch spreads flows (paths/hash_function.hpp), of a packet.
/// A packet carries the digest of the fabric's first hash function; other functions of the same polynomial and fields
/// follow from it by one XOR, since a CRC is affine in its initial value. Anything else is computed where it is needed.
#pragma once
#include <algorithm>
#include <cstdint>

#include "base/flow_identity.hpp"
#include "base/ids.hpp"
#include "packet/hosts.hpp"
#include "packet/packet.hpp"
#include "packet/queue_pair_records.hpp"
#include "packet/routing_tables.hpp"
#include "packet/setup.hpp"
#include "paths/digest.hpp"
#include "paths/hash_function.hpp"
#include "rows/fabric.hpp"

namespace weftwork {

inline void prepare_hash_functions(const Setup& setup, RoutingTables& routing) {
  for (const SwitchRow& row : setup.in.switches) {
    HashFunction function = hash_function_of(row);
    if (!routing.hash_functions.empty() || (function.fields & kInPort) == 0) {
      const HashFunction& first = routing.hash_functions.empty() ? function : routing.hash_functions[DeviceId(0)];
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
    routing.hash_functions.push_back(function);
  }
}

inline HashInput hash_input(const QueuePair& qp, PortId from_port, PortId to_port, std::uint16_t entropy,
                            std::uint16_t in_port) {
  return {address_of(from_port), address_of(to_port), entropy, in_port, queue_pair_number(qp.flow)};
}

/// What a packet with this entropy carries in `Packet::hash`.
inline std::uint32_t carried_hash(const RoutingTables& routing, const QueuePair& qp, bool forward,
                                  std::uint16_t entropy) {
  if (routing.hash_functions.empty() || !routing.hash_functions[DeviceId(0)].carried) return 0;
  const HashFunction& first = routing.hash_functions[DeviceId(0)];
  const PortId from_port = forward ? qp.source_port : qp.destination_port;
  const PortId to_port = forward ? qp.destination_port : qp.source_port;
  return digest(first.algorithm, 0, field_bytes(first.fields, hash_input(qp, from_port, to_port, entropy, 0)));
}

/// The NIC port that has sent a packet.
inline PortId origin_port(const Setup& setup, const QueuePair& qp, Packet* packet) {
  if (setup.moves) return extension(packet).origin_port;
  return has(packet->flags, kForward) ? qp.source_port : qp.destination_port;
}

/// Whether a packet has an entropy that differs from its queue pair's: data, and a reply that follows what it echoes.
inline bool has_entropy(const Setup& setup, const Packet* packet) {
  if (!setup.entropy_per_packet) return false;
  if (packet->kind == PacketKind::kData) return true;
  return setup.in.transport.replies_follow != 0 && has(packet->flags, kHasEcho);
}

/// The UDP source port of a packet.
inline std::uint16_t entropy_of(const Setup& setup, const QueuePair& qp, Packet* packet) {
  return has_entropy(setup, packet) ? extension(packet).entropy : qp.own_entropy;
}

/// The digest of the fields of a packet that does not carry it.
[[gnu::noinline]] inline std::uint32_t hash_of_fields(const Setup& setup, const Hosts& hosts,
                                                      const HashFunction& function, Packet* packet) {
  const QueuePair& qp = hosts.queue_pairs[packet->queue_pair];
  const PortId from_port = origin_port(setup, qp, packet);
  const std::uint16_t entropy = entropy_of(setup, qp, packet);
  const auto in_port = static_cast<std::uint16_t>(setup.ingress_port(*packet).value);
  return digest_of(function, hash_input(qp, from_port, packet->destination_port, entropy, in_port));
}

/// The hash of a packet at a switch.
[[gnu::always_inline]] inline std::uint32_t switch_hash(const Setup& setup, const Hosts& hosts,
                                                        const HashFunction& function, Packet* packet) {
  return hash_of(function, function.carried ? packet->hash ^ function.seed_effect
                                            : hash_of_fields(setup, hosts, function, packet));
}

}  // namespace weftwork
