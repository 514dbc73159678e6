/// Amounts over time in bins that double in length when there are too many. The end of the run is not known beforehand.
/// What is spread evenly over some time is split among the bins that it touches.
#pragma once
#include <algorithm>
#include <cstddef>
#include <vector>

#include "base/clock.hpp"

namespace weftwork::flow {

class Bins {
 public:
  /// At most `bins` of `columns` amounts each; 0: nothing is kept.
  Bins(std::size_t bins, std::size_t columns) : most_(bins + (bins & 1U)), columns_(columns) {}

  [[nodiscard]] bool is_on() const { return most_ > 0 && columns_ > 0; }
  [[nodiscard]] Ps bin_ps() const { return bin_ps_; }
  [[nodiscard]] std::size_t count() const { return columns_ == 0 ? 0 : amount_.size() / columns_; }
  [[nodiscard]] double at(std::size_t bin, std::size_t column) const { return amount_[bin * columns_ + column]; }

  /// Call `add(bin, share)` for every bin between two instants, with the share of the time that lies in it; all of it
  /// in one bin where the two are one.
  template <typename Add>
  void each(Ps from_ps, Ps to_ps, Add&& add) {
    while (to_ps > bin_ps_ * static_cast<Ps>(most_)) halve();
    const auto last = static_cast<std::size_t>(std::max(from_ps, to_ps - 1) / bin_ps_);
    if (amount_.size() < (last + 1) * columns_) amount_.resize((last + 1) * columns_, 0.0);
    const double whole = static_cast<double>(std::max<Ps>(1, to_ps - from_ps));
    for (auto bin = static_cast<std::size_t>(from_ps / bin_ps_); bin <= last; ++bin) {
      const Ps begin = std::max(from_ps, static_cast<Ps>(bin) * bin_ps_);
      const Ps end = std::min(to_ps, static_cast<Ps>(bin + 1) * bin_ps_);
      add(bin, to_ps == from_ps ? 1.0 : static_cast<double>(end - begin) / whole);
    }
  }

  void add(std::size_t bin, std::size_t column, double amount) { amount_[bin * columns_ + column] += amount; }

 private:
  static constexpr Ps kFirstBinPs = 1'000'000;  // chosen: a microsecond, as the packet engine's timeline begins

  void halve() {
    const std::size_t bins = count();
    for (std::size_t bin = 0; bin < (bins + 1) / 2; ++bin)
      for (std::size_t column = 0; column < columns_; ++column) {
        const double second = 2 * bin + 1 < bins ? amount_[(2 * bin + 1) * columns_ + column] : 0.0;
        amount_[bin * columns_ + column] = amount_[2 * bin * columns_ + column] + second;
      }
    amount_.resize((bins + 1) / 2 * columns_);
    bin_ps_ *= 2;
  }

  std::size_t most_, columns_;
  Ps bin_ps_ = kFirstBinPs;
  std::vector<double> amount_;
};

}  // namespace weftwork::flow
