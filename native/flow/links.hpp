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

#include "flow/job.hpp"

namespace weftwork::flow {

inline constexpr double kBytesPerPs = 1.0 / 8e12;  // of one bit per second

struct Links {
  std::int32_t ports = 0, ranks = 0;
  std::vector<double> capacity;  // bytes per ps

  [[nodiscard]] std::int32_t count() const { return static_cast<std::int32_t>(capacity.size()); }
  [[nodiscard]] std::int32_t host_interface(std::int32_t port) const { return ports + 4 * ranks + port; }
  /// Whether what arrives at a NIC port goes on over a link of its own.
  [[nodiscard]] bool has_host_interface(std::int32_t port) const {
    return host_interface(port) < count() && capacity[static_cast<std::size_t>(host_interface(port))] > 0;
  }
};

/// Whether two ranks of one server have NVLink between them.
inline bool share_nvlink(const GpuRow& a, const GpuRow& b) {
  return a.domain >= 0 && a.domain == b.domain;
}

/// The link by which `rank` sends to (or, `in`, receives from) a rank of its server.
inline std::int32_t inside_link(const Links& links, const Job& job, std::int64_t rank, bool nvlink, bool in) {
  const bool second = !nvlink && job.rank_gpu[static_cast<std::size_t>(rank)].domain >= 0;
  return links.ports + static_cast<std::int32_t>(2 * rank) + (second ? 2 * links.ranks : 0) + (in ? 1 : 0);
}

/// Links of a job on a fabric; `host_rate_bps` by port, that of the host interface behind a NIC port, 0 for none, is
/// empty where no port has one that is slower than it.
inline Links links_of(const Job& job, std::span<const std::int64_t> port_rate_bps,
                      std::span<const std::int64_t> host_rate_bps) {
  Links links;
  links.ports = static_cast<std::int32_t>(port_rate_bps.size());
  links.ranks = static_cast<std::int32_t>(job.ranks());
  const auto ports = port_rate_bps.size();
  const auto ranks = static_cast<std::size_t>(job.ranks());
  links.capacity.assign(ports + 4 * ranks + host_rate_bps.size(), 0.0);
  for (std::size_t p = 0; p < ports; ++p) links.capacity[p] = static_cast<double>(port_rate_bps[p]) * kBytesPerPs;
  for (std::size_t r = 0; r < ranks; ++r) {
    const GpuRow& gpu = job.rank_gpu[r];
    const double nvlink = static_cast<double>(gpu.domain >= 0 ? gpu.nvlink_rate_bps : gpu.pcie_rate_bps);
    links.capacity[ports + 2 * r] = links.capacity[ports + 2 * r + 1] = nvlink * kBytesPerPs;
    if (gpu.domain < 0) continue;
    const std::size_t pcie = ports + 2 * ranks + 2 * r;
    links.capacity[pcie] = links.capacity[pcie + 1] = static_cast<double>(gpu.pcie_rate_bps) * kBytesPerPs;
  }
  for (std::size_t p = 0; p < host_rate_bps.size(); ++p)
    if (host_rate_bps[p] > 0 && host_rate_bps[p] < port_rate_bps[p])
      links.capacity[ports + 4 * ranks + p] = static_cast<double>(host_rate_bps[p]) * kBytesPerPs;
  return links;
}

}  // namespace weftwork::flow
