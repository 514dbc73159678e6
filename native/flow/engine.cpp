#include "flow/engine.hpp"

#include <time.h>

#include <algorithm>
#include <cmath>
#include <utility>

#include "flow/instants.hpp"
#include "flow/streams.hpp"

namespace weft::flow {

namespace {

double cpu_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

void build_links(State& s) {
  const std::size_t ports = s.in.fabric.port_rate_bps.size();
  std::vector<std::int64_t> host_rate_bps(ports, 0);
  bool any = false;
  const auto slower = [&](std::size_t port, std::int64_t rate_bps) {
    if (rate_bps <= 0 || rate_bps >= s.in.fabric.port_rate_bps[port]) return;
    host_rate_bps[port] = rate_bps;
    any = true;
  };
  for (std::size_t port = 0; port < ports; ++port)
    if (!s.in.fabric.is_switch(s.in.fabric.owner(static_cast<std::int32_t>(port))))
      slower(port, s.in.nic_behind(static_cast<std::int32_t>(port)).pcie_rate_bps);
  std::vector<std::int32_t> later;  // a link from the beginning where a fault makes one
  for (const InstantRow& row : s.in.instants)
    if (static_cast<InstantCode>(row.code) == InstantCode::kHostRate) {
      later.push_back(static_cast<std::int32_t>(row.port));
      any = true;
    }
  if (!any) host_rate_bps.clear();
  s.links = links_of(s.in.job, s.in.fabric.port_rate_bps, host_rate_bps);
  for (const std::int32_t port : later) {
    double& capacity = s.links.capacity[static_cast<std::size_t>(s.links.host_interface(port))];
    if (capacity == 0)
      capacity = static_cast<double>(s.in.fabric.port_rate_bps[static_cast<std::size_t>(port)]) * kBytesPerPs;
  }
  s.is_down.assign(ports, false);
  s.carried_bytes.assign(ports, 0.0);
  s.seen_bytes.assign(ports, 0.0);
  s.router = std::make_unique<Router>(s.in.fabric, s.in.mode);
}

void build_fluid(State& s) {
  std::vector<double> capacity = s.has_network ? s.network.capacity : s.links.capacity;
  capacity.push_back(0.0);  // behind the last: the way of what has no route
  s.fluid = std::make_unique<Fluid>(capacity, s.in.tolerance);
  for (std::int32_t i = 0; s.has_network && i < s.network.activities(); ++i)
    s.class_of_activity.push_back(s.fluid->add_class(s.network.hops_of(i)));
}

void build_streams(State& s) {
  const auto actors = s.has_network ? s.network.actors() : static_cast<std::int32_t>(s.in.job.ranks());
  s.first_stream.push_back(0);
  for (std::int32_t actor = 0; actor < actors; ++actor) {
    const std::int64_t program = s.has_network ? s.network.actor_program[static_cast<std::size_t>(actor)]
                                               : s.in.job.rank_class[static_cast<std::size_t>(actor)];
    const auto begin = std::lower_bound(s.in.job.streams.begin(), s.in.job.streams.end(), program,
                                        [](const StreamRow& row, std::int64_t key) { return row.rank_class < key; });
    std::int32_t number = 0;
    for (auto row = begin; row != s.in.job.streams.end() && row->rank_class == program; ++row) {
      const auto index = static_cast<std::int32_t>(s.streams.size());
      Stream& stream = s.streams.emplace_back();
      stream.actor = actor;
      stream.number = number++;
      stream.op = row->first_op;
      s.open_work += 1;
      wake(s, index, 0);
    }
    s.first_stream.push_back(static_cast<std::int32_t>(s.streams.size()));
  }
  s.tokens.assign(static_cast<std::size_t>(actors * s.in.tokens), 0);
  s.token_causes.resize(s.tokens.size());
  s.last_segment.assign(static_cast<std::size_t>(actors), -1);
}

void handle(State& s, const AgendaRow& row) {
  const auto what = static_cast<std::int32_t>(row.what);
  switch (row.event) {
    case Event::kDelivery:
      deliver(s, what);
      break;
    case Event::kAck:
      acknowledge(s, what);
      break;
    case Event::kCallBegins:
      begin_call(s, what);
      break;
    case Event::kCallEnds:
      end_call(s, what);
      break;
    case Event::kSignal: {
      const std::int64_t token = row.detail & ((1 << 20) - 1);
      raise_token(s, what, token, s.streams[static_cast<std::size_t>(row.detail >> 20)].cause);
      break;
    }
    case Event::kStream:
      s.streams[static_cast<std::size_t>(what)].queued = false;
      run_stream(s, what);
      break;
  }
}

/// All that flows ends, then faults, then the agenda; what these begin or end at the same instant too.
void handle_instant(State& s) {
  const auto now = static_cast<double>(s.now_ps);
  s.finished.clear();
  s.fluid->advance(now, s.finished);
  std::sort(s.finished.begin(), s.finished.end());  // the order of identity, not of the fluid
  for (const std::int64_t activity : s.finished) {
    const auto index = static_cast<std::int32_t>(activity >> 1);
    if ((activity & 1) == kOfMessage)
      end_flow(s, index);
    else
      end_part(s, index);
  }
  while (s.next_instant < s.in.instants.size() && s.in.instants[s.next_instant].at_ps <= s.now_ps)
    apply_instant(s, s.in.instants[s.next_instant++]);
  while (!s.agenda.empty() && s.agenda.top().at_ps <= s.now_ps) {
    const AgendaRow row = s.agenda.top();
    s.agenda.pop();
    s.events += 1;
    handle(s, row);
  }
  s.fluid->solve(now);
  s.solves += 1;
}

}  // namespace

Engine::Engine(Input input) : state_(std::make_unique<State>()) {
  State& s = *state_;
  s.in = std::move(input);
  build_links(s);
  build_fluid(s);
  build_streams(s);
}

bool Engine::advance(double budget_s) {
  State& s = *state_;
  const double stop_s = cpu_seconds() + budget_s;
  for (std::uint32_t rounds = 1;; ++rounds) {
    const double flows_until = s.fluid->next();
    Ps next_ps = kNeverPs;
    if (flows_until < static_cast<double>(kNeverPs))
      next_ps = std::max(s.now_ps, static_cast<Ps>(std::llround(flows_until)));
    if (!s.agenda.empty()) next_ps = std::min(next_ps, s.agenda.top().at_ps);
    if (s.next_instant < s.in.instants.size()) next_ps = std::min(next_ps, s.in.instants[s.next_instant].at_ps);
    if (next_ps >= s.in.until_ps) {
      if (s.in.until_ps < kNeverPs) s.now_ps = s.in.until_ps;
      return true;
    }
    s.now_ps = next_ps;
    handle_instant(s);
    if ((rounds & 63U) == 0 && cpu_seconds() > stop_s) return false;
  }
}

std::vector<Carried> Engine::carried() {
  State& s = *state_;
  settle_carried(s);
  std::vector<Carried> found(s.carried_bytes.size());
  std::vector<double> packets(found.size());
  for (const SharedWay& way : s.ways)
    for (const Hop& hop : way.way.hops)
      if (std::cmp_less(hop.link, found.size()))
        packets[static_cast<std::size_t>(hop.link)] += way.packets * hop.weight / s.in.wire.factor();
  for (std::size_t port = 0; port < found.size(); ++port) {
    const auto bundle = static_cast<std::size_t>(s.router->bundle_of_port(static_cast<std::int32_t>(port)));
    found[port] = {s.carried_bytes[port], packets[bundle]};
  }
  return found;
}

}  // namespace weft::flow
