/// What the engine is given: the arrays of weftwork.engine.packet_input.PacketInput, borrowed. The owner (Python) keeps
/// them alive as long as the engine.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "base/clock.hpp"
#include "base/ids.hpp"
#include "base/job.hpp"
#include "packet/ids.hpp"
#include "packet/policy.hpp"
#include "paths/detours.hpp"
#include "rows/fabric.hpp"
#include "rows/packet_run.hpp"
#include "rows/transport.hpp"

namespace weftwork {

struct Input : PacketInputRows {
  ChannelRule channels;
  Detours detours;
  IdVector<RouteTableId, RouteTable> routes;
  TransportRow transport{};
  CongestionPolicy congestion;
  PathPolicy path;
  PortPolicy port;
  SeriesRequest series;
  CaptureRequest capture;

  [[nodiscard]] JobTables job_tables() const { return {tables, digits, rank_program.size()}; }
  [[nodiscard]] std::size_t columns() const {
    return rank_program.empty() ? 1 : rank_ports.size() / rank_program.size();
  }
  /// A NIC port of a rank; the first column has the one that it usually uses.
  [[nodiscard]] PortId rank_port(RankId rank, ColumnId column = ColumnId(0)) const {
    return rank_ports[rank.index() * columns() + column.index()];
  }
};

}  // namespace weftwork
