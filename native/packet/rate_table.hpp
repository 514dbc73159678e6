/// Numbers for the rates that links have in a run, so that a packet carries a number of a rate beside that of its port.
#pragma once
#include <cstddef>
#include <cstdint>
#include <unordered_map>

#include "base/ids.hpp"
#include "base/limit_error.hpp"
#include "packet/failures.hpp"
#include "packet/ids.hpp"
#include "packet/packet.hpp"

namespace weftwork {

class RateTable {
 public:
  /// Room for `ports` ports, none of which has a rate yet.
  void open(std::size_t ports) {
    if (ports > static_cast<std::size_t>(Hop::kMostPorts))
      throw LimitError("in-band telemetry tells ports apart in fabrics of at most 16,777,216 ports");
    of_port_.assign(ports, RateId::none());
  }

  /// From now on `port` sends at `rate_bps`.
  void set(PortId port, std::int64_t rate_bps) {
    const auto fresh = RateId(static_cast<std::int32_t>(rates_bps_.size()));
    const auto [known, is_fresh] = numbers_.try_emplace(rate_bps, fresh);
    if (is_fresh) {
      if (rates_bps_.size() == Hop::kMostRates)
        throw LimitError("in-band telemetry tells at most 1,048,576 rates of links apart");
      rates_bps_.push_back(rate_bps);
    }
    of_port_[port] = known->second;
  }

  [[nodiscard]] RateId of(PortId port) const { return of_port_[port]; }
  [[nodiscard]] std::int64_t rate_bps(RateId rate) const { return rates_bps_[rate]; }

 private:
  IdVector<PortId, RateId> of_port_;
  IdVector<RateId, std::int64_t> rates_bps_;
  std::unordered_map<std::int64_t, RateId> numbers_;
};

}  // namespace weftwork
