/// Weighted max-min sharing by progressive filling, from scratch: what rates are at one instant. The engine itself
/// keeps rates up to date (flow/fluid.hpp); this serves to choose a critical core and to check. Source: Bertsekas and
/// Gallager, Data Networks, 1992, section 6.5.2, with weights.
#pragma once
#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>
#include <utility>
#include <vector>

namespace weftwork::flow {

/// Activities by links in compressed rows. Links are dense numbers.
struct Shares {
  std::vector<std::int64_t> ptr{0};
  std::vector<std::int32_t> link;
  std::vector<double> weight;
  std::vector<double> capacity;  // by link

  [[nodiscard]] std::size_t size() const { return ptr.size() - 1; }
  void close() { ptr.push_back(static_cast<std::int64_t>(link.size())); }
};

/// What filling gives every activity.
struct Filled {
  std::vector<double> rate;              // infinite for those without links
  std::vector<std::int32_t> bottleneck;  // the link that was full when it got its rate; -1: none
};

/// Rates with all activities active.
inline Filled fill(const Shares& shares) {
  const std::size_t links = shares.capacity.size();
  std::vector<std::int64_t> first(links + 1, 0);  // the transpose
  for (const std::int32_t link : shares.link) ++first[static_cast<std::size_t>(link) + 1];
  for (std::size_t l = 0; l < links; ++l) first[l + 1] += first[l];
  std::vector<std::int32_t> activity(shares.link.size());
  {
    std::vector<std::int64_t> next(first.begin(), first.end() - 1);
    for (std::size_t a = 0; a < shares.size(); ++a)
      for (std::int64_t i = shares.ptr[a]; i < shares.ptr[a + 1]; ++i)
        activity[static_cast<std::size_t>(next[static_cast<std::size_t>(shares.link[static_cast<std::size_t>(i)])]++)] =
            static_cast<std::int32_t>(a);
  }
  std::vector<double> rest = shares.capacity, open(links, 0.0);
  std::vector<std::int32_t> live(links, 0);  // activities without a rate: sums of weights leave dust
  for (std::size_t i = 0; i < shares.link.size(); ++i) {
    open[static_cast<std::size_t>(shares.link[i])] += shares.weight[i];
    ++live[static_cast<std::size_t>(shares.link[i])];
  }
  Filled filled{std::vector<double>(shares.size(), std::numeric_limits<double>::infinity()),
                std::vector<std::int32_t>(shares.size(), -1)};
  std::vector<char> done(shares.size(), 0);
  using Level = std::pair<double, std::int32_t>;
  std::vector<Level> heap;
  for (std::size_t l = 0; l < links; ++l)
    if (live[l] > 0) heap.emplace_back(rest[l] / open[l], static_cast<std::int32_t>(l));
  const auto later = [](const Level& a, const Level& b) { return a > b; };
  std::make_heap(heap.begin(), heap.end(), later);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), later);
    const auto [old, link] = heap.back();
    const auto l = static_cast<std::size_t>(link);
    heap.pop_back();
    if (live[l] == 0) continue;
    const double level = std::max(0.0, rest[l] / open[l]);
    if (!heap.empty() && level > heap.front().first && level > old) {
      heap.emplace_back(level, link);
      std::push_heap(heap.begin(), heap.end(), later);
      continue;
    }
    for (std::int64_t j = first[l]; j < first[l + 1]; ++j) {
      const auto a = static_cast<std::size_t>(activity[static_cast<std::size_t>(j)]);
      if (done[a] != 0) continue;
      done[a] = 1;
      filled.rate[a] = level;
      filled.bottleneck[a] = link;
      for (std::int64_t i = shares.ptr[a]; i < shares.ptr[a + 1]; ++i) {
        const auto m = static_cast<std::size_t>(shares.link[static_cast<std::size_t>(i)]);
        const double weight = shares.weight[static_cast<std::size_t>(i)];
        rest[m] -= level * weight;
        open[m] -= weight;
        --live[m];
      }
    }
  }
  return filled;
}

/// Bytes per ps on every link at given rates.
inline std::vector<double> loads(const Shares& shares, std::span<const double> rate) {
  std::vector<double> load(shares.capacity.size(), 0.0);
  for (std::size_t a = 0; a < shares.size(); ++a)
    for (std::int64_t i = shares.ptr[a]; i < shares.ptr[a + 1]; ++i)
      load[static_cast<std::size_t>(shares.link[static_cast<std::size_t>(i)])] +=
          rate[a] * shares.weight[static_cast<std::size_t>(i)];
  return load;
}

}  // namespace weftwork::flow
