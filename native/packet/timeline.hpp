/// Activity of every port in bins of time, from counters at the end of each bin. Only counters that moved are kept.
/// Bins begin short and double whenever more than asked for would be kept, so that a run of any length has a timeline
/// of a fixed size. Not part of the model: nothing here is read back. Leaves out: what happens inside a bin;
/// `queue_bytes` is the queue at its end, the larger one where bins were merged.
#pragma once
#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/invariant.hpp"
#include "packet/fabric.hpp"
#include "packet/ids.hpp"
#include "packet/port_records.hpp"
#include "packet/recordings.hpp"
#include "packet/setup.hpp"
#include "rows/outcome.hpp"

namespace weftwork {

class Timeline {
 public:
  struct Row {
    std::int64_t bin;
    std::int64_t port;
    std::int64_t bytes, queue_bytes, marks, drops, pauses, paused_ps;
  };

  /// `bins` is the most that is kept; 0: no timeline.
  Timeline(std::int64_t bins, std::size_t nodes, std::size_t ports) : bins_(bins), before_(bins > 0 ? ports : 0) {
    if (bins <= 0) return;
    touched_.resize(nodes);
    next_at_ps_ = bin_ps_;
  }

  [[nodiscard]] bool is_on() const { return bins_ > 0; }
  /// Where the open bin ends; never, if there is no timeline.
  [[nodiscard]] Ps next_ps() const { return next_at_ps_; }
  [[nodiscard]] Ps bin_ps() const { return is_on() ? bin_ps_ : 0; }
  [[nodiscard]] const std::vector<Row>& rows() const { return rows_; }
  /// Where the last bin ends, once it is closed.
  [[nodiscard]] Ps last_at_ps() const { return last_at_ps_; }

  /// A node has done something in the open bin.
  void touch(NodeId node) {
    touched_.set(node);
    is_quiet_ = false;
  }

  /// Nothing happens before `at_ps`: if nothing has happened in the open bin either, go on with the one that holds it.
  void pass_quiet(Ps at_ps) {
    if (is_quiet_ && at_ps < kNeverPs && at_ps >= next_at_ps_) next_at_ps_ = (at_ps / bin_ps_ + 1) * bin_ps_;
  }

  /// The open bin ends here.
  void end_bin(const Setup& setup, const Fabric& fabric, const Recordings& recordings) {
    must_hold(next_at_ps_ > last_bin_at_ps_, Invariant::recordings_in_order_of_time, "at_ps last_bin_at_ps",
              next_at_ps_, last_bin_at_ps_);
    last_bin_at_ps_ = next_at_ps_;
    record(setup, fabric, recordings, next_at_ps_);
    must_hold(rows_.empty() || rows_.back().bin < bins_, Invariant::recordings_in_order_of_time, "at_ps rows bins",
              next_at_ps_, rows_.size(), bins_);
    next_at_ps_ = (next_at_ps_ / bin_ps_ + 1) * bin_ps_;
  }

  /// The run ends at `at_ps`, inside the open bin or before it. All nodes are done up to there; beyond it only if
  /// `is_done`, and then nothing but pauses can still have gone on.
  void close(const Setup& setup, const Fabric& fabric, const Recordings& recordings, Ps at_ps, bool is_done) {
    if (!is_on() || last_at_ps_ != kOff) return;
    const bool is_inside = at_ps > next_at_ps_ - bin_ps_;
    if (is_inside || is_done) record(setup, fabric, recordings, is_inside ? std::min(at_ps, next_at_ps_) : next_at_ps_);
    last_at_ps_ = rows_.empty() ? 0 : (rows_.back().bin + 1) * bin_ps_;
    if (at_ps > last_at_ps_ - bin_ps_) last_at_ps_ = std::min(last_at_ps_, at_ps);
  }

 private:
  static constexpr Ps kFirstBinPs = 1'000'000;  // chosen: a microsecond, about the shortest round trip in a data centre

  struct Totals {
    std::int64_t bytes = 0, marks = 0, drops = 0, pauses = 0, paused_ps = 0;
  };

  /// Compare the counters of what was touched with those before, and keep what moved. All that departs before `at_ps`
  /// has departed: it is where a window ends or was cut.
  void record(const Setup& setup, const Fabric& fabric, const Recordings& recordings, Ps at_ps) {
    const std::size_t begin = rows_.size();
    const std::int64_t bin = (at_ps - 1) / bin_ps_;
    is_quiet_ = true;
    touched_.any([&](NodeId node) {
      if (record_node(setup, fabric, recordings, node, at_ps, bin))
        is_quiet_ = false;
      else
        touched_.clear(node);
      return false;
    });
    if (rows_.size() == begin) return;
    std::size_t same = begin;  // the first row of this bin, which may have been half of a shorter one before
    while (same > 0 && rows_[same - 1].bin == bin) --same;
    if (same < begin) join(same);
    while (rows_.back().bin >= bins_) {
      bin_ps_ *= 2;
      for (Row& row : rows_) row.bin /= 2;
      join(0);
    }
  }

  /// True if the node goes into the next bin with something: a queue, or a pause that runs.
  bool record_node(const Setup& setup, const Fabric& fabric, const Recordings& recordings, NodeId node, Ps at_ps,
                   std::int64_t bin) {
    bool goes_on = false;
    for (const PortId port : setup.ports_of(node)) {
      const Port& out = fabric.ports[port];
      const PortCounters& counters = recordings.port_counters[port];
      const std::int64_t queue_bytes = out.pending == 0 ? 0 : queued_bytes(setup, fabric, port);
      Ps ahead_ps = 0;  // counted already, and not over yet
      for (std::uint32_t rest = out.paused; rest != 0; rest &= rest - 1)
        ahead_ps += std::max<Ps>(0, fabric.queue_controls[setup.at(port, lowest(rest))].paused_until_ps - at_ps);
      Totals& was = before_[port];
      const Totals is{out.bytes, counters.marks, counters.drops, counters.pauses_sent, counters.paused_ps - ahead_ps};
      goes_on = goes_on || queue_bytes != 0 || ahead_ps != 0;
      const Row row{bin,
                    port.value,
                    is.bytes - was.bytes,
                    queue_bytes,
                    is.marks - was.marks,
                    is.drops - was.drops,
                    is.pauses - was.pauses,
                    is.paused_ps - was.paused_ps};
      must_hold(row.bytes >= 0 && row.drops >= 0 && row.marks >= 0 && row.queue_bytes >= 0,
                Invariant::recordings_in_order_of_time, "at_ps port bytes queue_bytes", at_ps, port, row.bytes,
                row.queue_bytes);
      must_hold(row.pauses >= 0, Invariant::recordings_in_order_of_time, "at_ps port pauses bin", at_ps, port,
                row.pauses, bin);
      if ((row.bytes | row.queue_bytes | row.marks | row.drops | row.pauses | row.paused_ps) == 0) continue;
      was = is;
      rows_.push_back(row);
    }
    return goes_on;
  }

  /// From row `from` on each bin is in order of port, or two such runs one behind the other: make one run of them, and
  /// one row of two of a port.
  void join(std::size_t from) {
    joined_.clear();
    for (std::size_t begin = from, end = from; begin < rows_.size(); begin = end) {
      std::size_t second = 0;
      for (end = begin + 1; end < rows_.size() && rows_[end].bin == rows_[begin].bin; ++end)
        if (rows_[end].port <= rows_[end - 1].port) second = end;
      if (second == 0) second = end;
      for (std::size_t a = begin, b = second; a < second || b < end;) {
        const bool takes_b = a == second || (b < end && rows_[b].port < rows_[a].port);
        joined_.push_back(rows_[takes_b ? b++ : a++]);
        if (!takes_b && b < end && rows_[b].port == joined_.back().port) add(joined_.back(), rows_[b++]);
      }
    }
    rows_.resize(from);
    rows_.insert(rows_.end(), joined_.begin(), joined_.end());
  }

  static void add(Row& into, const Row& row) {
    into.bytes += row.bytes;
    into.queue_bytes = std::max(into.queue_bytes, row.queue_bytes);
    into.marks += row.marks;
    into.drops += row.drops;
    into.pauses += row.pauses;
    into.paused_ps += row.paused_ps;
  }

  std::int64_t bins_;
  Ps bin_ps_ = kFirstBinPs;
  Ps next_at_ps_ = kNeverPs;
  Ps last_at_ps_ = kOff;
  Ps last_bin_at_ps_ = 0;  // where the bin before ended
  bool is_quiet_ = true;   // nothing has happened since the bin began, and nothing waits
  IdBitmap<NodeId> touched_;
  IdVector<PortId, Totals> before_;  // at the beginning of the open bin
  std::vector<Row> rows_, joined_;
};

}  // namespace weftwork
