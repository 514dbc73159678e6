/// The path of a message: its shared links, and the time of a lone message.
/// Source: docs/models/flow-engine.md, "Time of a message".
#pragma once
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "flow/input.hpp"
#include "flow/links.hpp"
#include "flow/losses.hpp"
#include "flow/wire_sizes.hpp"
#include "rows/flow_outcome.hpp"

namespace weftwork::flow {

/// One step of store and forward: all links that carry the message side by side.
struct Stage {
  double spread_ps_per_byte;  // of the message: the slowest of the links with its share
  double packet_ps_per_byte;  // of one packet, on one of them
  double delay_ps;
  bool counts_gaps;
};

struct MessagePath {
  std::vector<Hop> hops;        // weight: bytes on the link for each byte of payload in full packets
  std::vector<Stage> stages;    // of packets between servers
  double flow_ps_per_byte = 0;  // of payload, over the slowest hop, by the rates that `stages` were told from
  double ack_ps = 0;            // of an acknowledgement that meets nobody
  PathLoss loss;                // of packets between servers
  bool is_up = true;            // false: no route leads there
};

/// Time of a message between servers that meets nobody: the longest monotone walk through (packet, stage), as
/// weftwork.study.results.ideal has it, where a stage of several links takes a message at their joint rate.
inline double alone_ps(const MessagePath& path, const WireSizes& wire, std::int64_t size_bytes) {
  const std::int64_t packets = wire.packets(size_bytes);
  const auto gap = [&](const Stage& stage) { return stage.counts_gaps ? static_cast<double>(wire.gap_bytes) : 0.0; };
  const auto header = static_cast<double>(wire.overhead_bytes);
  const auto full = static_cast<double>(wire.mtu_bytes);
  const auto tail = static_cast<double>(size_bytes - (packets - 1) * wire.mtu_bytes);
  const auto first_extra = static_cast<double>(wire.first_extra_bytes);
  double delay = 0;
  for (const Stage& stage : path.stages) delay += stage.delay_ps;
  const auto one = [&](const Stage& stage, double payload, double extra) {
    return (payload + header + extra + gap(stage)) * stage.packet_ps_per_byte;
  };
  if (packets == 1) {
    double total = delay;
    for (const Stage& stage : path.stages) total += one(stage, tail, first_extra);
    return total;
  }
  const std::size_t count = path.stages.size();
  std::vector<double> last(count + 1, 0.0);  // the last packet, from stage i on
  for (std::size_t i = count; i-- > 0;) last[i] = last[i + 1] + one(path.stages[i], tail, 0);
  const auto middle = static_cast<double>(packets - 2);
  double longest = 0, first = 0;
  for (std::size_t a = 0; a < count; ++a) {  // the walk leaves the first packet at a and joins the last at b
    first += one(path.stages[a], full, first_extra);
    if (packets == 2) longest = std::max(longest, first + last[a]);
    double between = 0, slowest = 0;
    for (std::size_t b = a; b < count && packets > 2; ++b) {
      const Stage& stage = path.stages[b];
      between += one(stage, full, 0);
      slowest = std::max(slowest, (full + header + gap(stage)) * stage.spread_ps_per_byte);
      longest = std::max(longest, first + between + (middle - 1) * slowest + last[b]);
    }
  }
  return delay + longest;
}

}  // namespace weftwork::flow
