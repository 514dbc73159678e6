/// The smoothed load of a switch's port, and the byte in which a packet carries the largest one of its path.
/// Source: docs/models/packet-engine.md, Path load; Ben Basat et al., PINT, SIGCOMM 2020,
/// doi:10.1145/3387514.3405894. Leaves out: a switch's approximate logarithms.
#pragma once
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "base/clock.hpp"
#include "base/random.hpp"

namespace weftwork {

/// What a port keeps: the load, and when and behind how many bytes it was measured last.
struct PortLoad {
  double load = 0;
  Ps at_ps = 0;
  std::int64_t sent_bytes = 0;

  /// Smooth the load, when a data packet starts, over a round trip.
  void measure(Ps now_ps, std::int64_t queue_bytes, std::int64_t bytes, std::int64_t rate_bps, Ps round_ps) {
    if (now_ps <= at_ps) return;
    const auto gap_ps = static_cast<double>(now_ps - at_ps);
    const auto whole_ps = static_cast<double>(round_ps);
    const double share = std::min(gap_ps / whole_ps, 1.0);
    const double now =
        (static_cast<double>(queue_bytes) / whole_ps + static_cast<double>(bytes - sent_bytes) / gap_ps) *
        (8e12 / static_cast<double>(rate_bps));
    load = (1.0 - share) * load + share * now;
    at_ps = now_ps;
    sent_bytes = bytes;
  }
};

inline constexpr double kLoadUnits = 512;  // HPCC-ns3, pint.h, max_concurrent
/// What each code stands for, in units; its base is that of HPCC-ns3, pint.cc, log_base.
inline constexpr std::array<double, 256> kCodedLoads = [] {
  std::array<double, 256> coded{1.0};
  for (std::size_t i = 1; i < coded.size(); ++i) coded[i] = coded[i - 1] * 1.05;
  return coded;
}();

/// A load in the units of `kCodedLoads`, of which there is one at least.
inline double units_of(double load) {
  return std::max(std::ceil(load * kLoadUnits), 1.0);
}

/// Round a load in units to a code, up or down by a draw.
inline std::uint8_t code_of(double units, std::uint64_t bits) {
  const auto above = std::upper_bound(kCodedLoads.begin(), kCodedLoads.end(), units);
  const auto code = static_cast<std::uint8_t>(above - kCodedLoads.begin() - 1);
  if (above == kCodedLoads.end()) return code;
  const double chance = (units - kCodedLoads[code]) / (*above - kCodedLoads[code]);
  return static_cast<std::uint8_t>(code + (uniform(bits) < chance ? 1 : 0));
}

/// The load that a code stands for.
inline double load_of(std::uint8_t code) {
  return kCodedLoads[code] / kLoadUnits;
}

}  // namespace weftwork
