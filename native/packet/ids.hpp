/// Ids that only the packet engine has.
#pragma once
#include <bit>
#include <cstdint>

#include "base/ids.hpp"

namespace weftwork {

using TrafficClass = Id<struct TrafficClassKind>;    // ascending priority
using QueueId = Id<struct QueueKind>;                // one traffic class at one port (`Setup::at`)
using LocalPort = Id<struct LocalPortKind>;          // a port among those of its node
using LocalQueueId = Id<struct LocalQueueKind>;      // one traffic class at one port, among those of its node
using NicId = Id<struct NicKind>;                    // a NIC port among the NIC ports
using SlotId = Id<struct SlotKind>;                  // of a queue pair that sends, at its NIC port
using ReceiverSlotId = Id<struct ReceiverSlotKind>;  // of a queue pair that receives, at its NIC port
using LaneSlotId = Id<struct LaneSlotKind>;          // of a lane at its egress
using GroupId = Id<struct GroupKind>;                // ports among which a switch chooses
using CandidateId = Id<struct CandidateKind>;        // a port of a group
using RouteTableId = Id<struct RouteTableKind>;
using ColumnId = Id<struct ColumnKind>;  // a NIC port among those of its rank
using RateId = Id<struct RateKind>;      // a rate that some link has at some time
using ClaimId = Id<struct ClaimKind>;    // a receive of one mailbox, in the order of posting

/// Which of the two links inside a server.
enum class Link : std::uint8_t { kNvlink, kPcie };

constexpr std::uint32_t bit_of(TrafficClass klass) {
  return 1U << static_cast<unsigned>(klass.value);
}
constexpr bool contains(std::uint32_t classes, TrafficClass klass) {
  return (classes & bit_of(klass)) != 0;
}
/// The lowest class of a set that is not empty.
constexpr TrafficClass lowest(std::uint32_t classes) {
  return TrafficClass(std::countr_zero(classes));
}

constexpr PortId operator+(PortId first, LocalPort local) {
  return PortId(first.value + local.value);
}

}  // namespace weftwork
