#include "flow/fluid_run.hpp"

#include <algorithm>
#include <ctime>
#include <stdexcept>

#include "flow/fluid.hpp"

namespace weftwork::flow {

namespace {

double thread_cpu_s() {
  timespec time{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

}  // namespace

FluidReport run_fluid(const FluidInput& input) {
  Fluid fluid(input.capacity, input.tolerance);
  std::vector<ConstraintHop> hops;
  for (std::size_t variable = 0; variable + 1 < input.variable_ptr.size(); ++variable) {
    hops.clear();
    for (std::int64_t i = input.variable_ptr[variable]; i < input.variable_ptr[variable + 1]; ++i)
      hops.push_back({input.hop_constraint[i], input.hop_weight[i]});
    fluid.add_variable(hops);
  }
  const std::size_t count = input.start_at_ps.size();
  FluidReport report;
  report.completed_at_ps.assign(count, kInfinity);
  std::vector<std::int64_t> finished;
  std::size_t next = 0;
  std::size_t done = 0;
  const double begin_s = thread_cpu_s();
  while (done < count) {
    double now = fluid.next();
    if (next < count) now = std::min(now, input.start_at_ps[next]);
    if (now == kInfinity) throw std::runtime_error("the activities that are left get nothing, for ever");
    finished.clear();
    fluid.advance(now, finished);
    for (const std::int64_t activity : finished) report.completed_at_ps[activity] = now;
    done += finished.size();
    for (; next < count && input.start_at_ps[next] <= now; ++next)
      fluid.start(input.start_variable[next], static_cast<std::int64_t>(next), input.start_amount[next], now);
    fluid.solve(now);
    report.most_alive = std::max(report.most_alive, static_cast<std::int64_t>(next - done));
    if (input.check_every > 0 && fluid.stats().events % input.check_every == 0)
      report.worst_rate_error = std::max(report.worst_rate_error, fluid.worst_error());
  }
  report.cpu_s = thread_cpu_s() - begin_s;
  for (const ConstraintId constraint : id_range(ConstraintId(0), ConstraintId(input.capacity.size())))
    report.carried_units.push_back(fluid.carried(constraint, fluid.now()));
  report.stats = fluid.stats();
  return report;
}

}  // namespace weftwork::flow
