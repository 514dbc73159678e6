/// NIC ports, and the queue pairs that send and receive by them.
/// Invariants: a queue pair has one slot at its source port and, from its first packet on, one at its destination port;
/// `una` <= `nxt` <= `end` of every sender, and its bytes follow its numbers; a slot is ready, paced or blocked, as the
/// sender's `standing` says.
#pragma once
#include <cstdint>
#include <unordered_map>

#include "base/ids.hpp"
#include "base/pins.hpp"
#include "packet/containers.hpp"
#include "packet/ids.hpp"
#include "packet/input.hpp"
#include "packet/queue_pair_records.hpp"

namespace weftwork {

struct Hosts {
  IdVector<NicId, NicPort> nics;
  IdVector<PortId, NicId> nic_of_port;      // none at switches
  IdVector<PortId, bool> down_at_failover;  // empty before the first one
  StableVector<QueuePairId, QueuePair> queue_pairs;
  std::unordered_map<std::uint64_t, QueuePairId> queue_pair_of_flow;
  Pins pins;

  explicit Hosts(const Input& input) : pins(input.pins) {}
};

}  // namespace weftwork
