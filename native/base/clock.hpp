/// Simulated time: int64 picoseconds, and the one rule by which bytes become time (weftwork.base.clock).
#pragma once
#include <cstdint>

namespace weftwork {

using Ps = std::int64_t;

inline constexpr Ps kNeverPs = INT64_MAX / 4;  // weftwork.base.clock.NEVER_PS
inline constexpr Ps kSecondPs = 1'000'000'000'000;
inline constexpr Ps kOff = -1;  // weftwork.policies.interface.OFF

/// Time that `size_bytes` occupy a line of `rate_bps`, rounded up.
inline Ps serialisation_ps(std::int64_t size_bytes, std::int64_t rate_bps) {
  const __int128 product = static_cast<__int128>(size_bytes) * 8 * kSecondPs;
  return static_cast<Ps>((product + rate_bps - 1) / rate_bps);
}

}  // namespace weftwork
