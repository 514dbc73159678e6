/// The links of a job: the ports of the fabric, then what is inside servers. A link is one direction.
///   0 .. P - 1                  ports, by the sending port
///   P + 2 r, P + 2 r + 1        NVLink of rank r, out and in; PCIe where its server has none
///   P + 2 R + 2 r, .. + 1       PCIe of rank r, out and in, where it has NVLink as well
///   P + 4 R + port              host interface behind a NIC port, for what arrives; only where it is slower than the
///   port
/// Source: docs/models/packet-engine.md, "Inside a server" and "Host interface".
#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/ids.hpp"
#include "flow/ids.hpp"
#include "flow/job.hpp"
#include "rows/job.hpp"

namespace weftwork::flow {

inline constexpr double kBytesPerPs = 1.0 / 8e12;  // of one bit per second

struct Links {
  std::int32_t ports = 0, ranks = 0;  // how many
  IdVector<LinkId, double> capacity;  // bytes per ps

  [[nodiscard]] bool is_port(LinkId link) const { return link.value < ports; }
  /// The first link of a rank inside its server: NVLink, or PCIe where its server has none.
  [[nodiscard]] LinkId inside(RankId rank) const { return LinkId(ports + 2 * rank.value); }
  /// The first PCIe link of a rank that has NVLink as well.
  [[nodiscard]] LinkId pcie(RankId rank) const { return inside(rank) + 2 * ranks; }
  [[nodiscard]] LinkId host_interface(PortId port) const { return LinkId(ports + 4 * ranks + port.value); }
  /// Whether what arrives at a NIC port goes on over a link of its own.
  [[nodiscard]] bool has_host_interface(PortId port) const {
    return host_interface(port) < capacity.next_id() && capacity[host_interface(port)] > 0;
  }
};

/// Whether two ranks of one server have NVLink between them.
inline bool share_nvlink(const GpuRow& a, const GpuRow& b) {
  return a.nvlink_domain >= 0 && a.nvlink_domain == b.nvlink_domain;
}

/// The link by which `rank` sends to (or, `in`, receives from) a rank of its server.
inline LinkId inside_link(const Links& links, const Job& job, RankId rank, bool nvlink, bool in) {
  const bool second = !nvlink && job.rank_gpu[rank].nvlink_domain >= 0;
  return (second ? links.pcie(rank) : links.inside(rank)) + (in ? 1 : 0);
}

/// Links of a job on a fabric; `host_rate_bps` by port, that of the host interface behind a NIC port, 0 for none, is
/// empty where no port has one that is slower than it.
inline Links links_of(const Job& job, IdSpan<PortId, const std::int64_t> port_rate_bps,
                      IdSpan<PortId, const std::int64_t> host_rate_bps) {
  Links links;
  links.ports = static_cast<std::int32_t>(port_rate_bps.size());
  links.ranks = static_cast<std::int32_t>(job.rank_count());
  links.capacity.assign(port_rate_bps.size() + 4 * job.rank_count() + host_rate_bps.size(), 0.0);
  for (const PortId port : port_rate_bps.ids())
    links.capacity[link_of(port)] = static_cast<double>(port_rate_bps[port]) * kBytesPerPs;
  for (const RankId rank : job.ranks()) {
    const GpuRow& gpu = job.rank_gpu[rank];
    const double nvlink = static_cast<double>(gpu.nvlink_domain >= 0 ? gpu.nvlink_rate_bps : gpu.pcie_rate_bps);
    const LinkId first = links.inside(rank);
    links.capacity[first] = links.capacity[first + 1] = nvlink * kBytesPerPs;
    if (gpu.nvlink_domain < 0) continue;
    const LinkId pcie = links.pcie(rank);
    links.capacity[pcie] = links.capacity[pcie + 1] = static_cast<double>(gpu.pcie_rate_bps) * kBytesPerPs;
  }
  for (const PortId port : host_rate_bps.ids())
    if (host_rate_bps[port] > 0 && host_rate_bps[port] < port_rate_bps[port])
      links.capacity[links.host_interface(port)] = static_cast<double>(host_rate_bps[port]) * kBytesPerPs;
  return links;
}

}  // namespace weftwork::flow
