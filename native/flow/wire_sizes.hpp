/// How many bytes a message puts on links.
#pragma once
#include <cstdint>

#include "rows/transport.hpp"

namespace weftwork::flow {

/// Sizes of a packet on the wire, and what follows from them.
struct WireSizes : WireSizesRow {
  [[nodiscard]] std::int64_t packets(std::int64_t size_bytes) const {
    return size_bytes <= mtu_bytes ? 1 : (size_bytes + mtu_bytes - 1) / mtu_bytes;
  }
  /// All bytes of a message on a link, headers and gaps included.
  [[nodiscard]] std::int64_t message_bytes(std::int64_t size_bytes) const {
    return size_bytes + packets(size_bytes) * (overhead_bytes + gap_bytes) + first_extra_bytes;
  }
  /// Bytes on a host interface, which has no gaps, for each byte of payload in full packets.
  [[nodiscard]] double host_factor() const {
    return static_cast<double>(mtu_bytes + overhead_bytes) / static_cast<double>(mtu_bytes);
  }
  /// Bytes on a link for each byte of payload in full packets.
  [[nodiscard]] double factor() const {
    return static_cast<double>(mtu_bytes + overhead_bytes + gap_bytes) / static_cast<double>(mtu_bytes);
  }
};

}  // namespace weftwork::flow
