/// Records of the links inside a server: lanes of messages, and both ends of NVLink and PCIe.
#pragma once
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "packet/ids.hpp"

namespace weftwork {

/// Messages of one (source, destination, channel) inside a server.
struct Lane {
  std::uint64_t flow = 0;
  RankId destination_rank;
  LaneSlotId slot;
  MessageId head, last;  // the first that has a slice left, and the last one
  std::int32_t messages = 0;
  std::int64_t started_bytes = 0;  // of `head`
};

/// One end of a rank's NVLink or PCIe inside its server.
struct ServerLink {
  IdVector<LaneSlotId, LaneId> lanes;  // in the order in which they were opened
  IdBitmap<LaneSlotId> ready;          // have a slice
  LaneSlotId turn{0};                  // that is asked first
  bool busy = false;
  Ps ingress_free_at_ps = 0;
};

struct ServerRank {
  struct Arrival {
    Ps at_ps;
    std::int64_t order;  // in which last slices for this rank started
    MessageId message;
  };
  ServerLink nvlink, pcie;
  std::vector<Arrival> arrivals;  // heap
  std::int64_t started = 0;       // last slices

  [[nodiscard]] ServerLink& link(Link link) { return link == Link::kNvlink ? nvlink : pcie; }
};

}  // namespace weftwork
