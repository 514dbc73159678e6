/// The flows of a workload file on SimGrid's max-min model: CM02 without TCP windows, cross traffic or latency, so that
/// nothing but sharing is left. One actor starts the flows and waits for them. Prints the CPU seconds of the run,
/// without the set-up of the platform; writes the completion times in seconds. g++ -O2 -std=c++17 simgrid_max_min.cpp
/// -o simgrid_max_min -lsimgrid; simgrid_max_min WORKLOAD COMPLETIONS
#include <cstdint>
#include <cstdio>
#include <ctime>
#include <fstream>
#include <simgrid/s4u.hpp>
#include <string>
#include <vector>

namespace sg = simgrid::s4u;

namespace {

struct Flow {
  double at_s;
  std::size_t path;
  std::uint64_t size_bytes;
};

double cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

int main(int argc, char** argv) {
  sg::Engine engine(&argc, argv);
  if (argc != 3) return 2;
  for (const char* item : {"network/model:CM02", "network/TCP-gamma:0", "network/crosstraffic:0"})
    sg::Engine::set_config(item);
  std::ifstream in(argv[1]);
  std::size_t host_count = 0, link_count = 0, path_count = 0, flow_count = 0;
  double rate = 0;  // bytes per second
  in >> host_count >> link_count >> rate >> path_count >> flow_count;
  auto* zone = sg::create_full_zone("zone");
  std::vector<sg::Host*> hosts;
  std::vector<const sg::Link*> links;
  for (std::size_t i = 0; i < host_count; ++i) hosts.push_back(zone->create_host("host" + std::to_string(i), 1e9));
  for (std::size_t i = 0; i < link_count; ++i)
    links.push_back(zone->create_link("link" + std::to_string(i), rate)
                        ->set_latency(0)
                        ->set_sharing_policy(sg::Link::SharingPolicy::SHARED)
                        ->seal());
  std::vector<std::pair<std::size_t, std::size_t>> pairs;
  for (std::size_t i = 0; i < path_count; ++i) {
    std::size_t source = 0, destination = 0, length = 0, link = 0;
    in >> source >> destination >> length;
    std::vector<sg::LinkInRoute> path;
    for (std::size_t hop = 0; hop < length; ++hop) {
      in >> link;
      path.emplace_back(links[link]);
    }
    zone->add_route(hosts[source]->get_netpoint(), hosts[destination]->get_netpoint(), nullptr, nullptr, path, false);
    pairs.emplace_back(source, destination);
  }
  zone->seal();
  std::vector<Flow> flows(flow_count);
  for (Flow& flow : flows) in >> flow.at_s >> flow.path >> flow.size_bytes;
  if (!in) return 3;
  std::vector<double> completed_s(flow_count);
  sg::Actor::create("driver", hosts[0], [&] {
    std::vector<sg::CommPtr> transfers;
    for (const Flow& flow : flows) {
      if (flow.at_s > sg::Engine::get_clock()) sg::this_actor::sleep_until(flow.at_s);
      transfers.push_back(
          sg::Comm::sendto_async(hosts[pairs[flow.path].first], hosts[pairs[flow.path].second], flow.size_bytes));
    }
    for (std::size_t i = 0; i < flow_count; ++i) {
      transfers[i]->wait();
      completed_s[i] = transfers[i]->get_finish_time();
    }
  });
  const double begin_s = cpu_s();
  engine.run();
  std::printf("{\"cpu_s\": %.9g}\n", cpu_s() - begin_s);
  std::ofstream out(argv[2]);
  out.precision(17);
  for (const double at_s : completed_s) out << at_s << '\n';
  return 0;
}
