#include "flow/fluid.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <random>
#include <stdexcept>

using namespace weftwork::flow;

namespace {

ConstraintHop on(int constraint, double weight = 1.0) {
  return {ConstraintId(constraint), weight};
}

VariableId add(Fluid& fluid, std::vector<ConstraintHop> hops) {
  return fluid.add_variable(hops);
}

/// Run to the next completion; its instant, and what ends there.
std::pair<double, std::vector<std::int64_t>> step(Fluid& fluid) {
  const double now = fluid.next();
  std::vector<std::int64_t> finished;
  fluid.advance(now, finished);
  fluid.solve(now);
  std::sort(finished.begin(), finished.end());
  return {now, finished};
}

using Finished = std::vector<std::int64_t>;

}  // namespace

TEST_CASE("one activity takes the whole of its narrowest constraint") {
  const std::vector<double> capacity{4.0, 2.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId v = add(fluid, {on(0), on(1)});
  fluid.start(v, 7, 100.0, 10.0);
  fluid.solve(10.0);
  CHECK(fluid.rate(v) == 2.0);
  CHECK(fluid.load(ConstraintId(0)) == 2.0);
  CHECK(fluid.next() == 60.0);
  const auto [now, finished] = step(fluid);
  CHECK(now == 60.0);
  CHECK(finished == Finished{7});
  CHECK(fluid.next() == kInfinity);
}

TEST_CASE("the textbook example: a long flow over two links, each with a flow of its own") {
  // Bertsekas and Gallager, section 6.5.2: the scarce link binds the long flow, and the other one has the rest.
  const std::vector<double> capacity{1.0, 4.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId both = add(fluid, {on(0), on(1)});
  const VariableId first = add(fluid, {on(0)}), second = add(fluid, {on(1)});
  for (const VariableId v : {both, first, second}) fluid.start(v, v.value, 1e9, 0.0);
  fluid.solve(0.0);
  CHECK(fluid.rate(both) == doctest::Approx(0.5));
  CHECK(fluid.rate(first) == doctest::Approx(0.5));
  CHECK(fluid.rate(second) == doctest::Approx(3.5));
  CHECK(fluid.worst_error() < 1e-9);
}

TEST_CASE("weights: an activity that needs twice the capacity has the same rate and takes twice as much") {
  const std::vector<double> capacity{3.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId light = add(fluid, {on(0)}), heavy = add(fluid, {on(0, 2.0)});
  fluid.start(light, 1, 30.0, 0.0);
  fluid.start(heavy, 2, 60.0, 0.0);
  fluid.solve(0.0);
  CHECK(fluid.rate(light) == doctest::Approx(1.0));
  CHECK(fluid.rate(heavy) == doctest::Approx(1.0));
  CHECK(fluid.carried(ConstraintId(0), 15.0) == doctest::Approx(45.0));  // 15 and twice 15, nothing of it done yet
  CHECK(step(fluid) == std::pair{30.0, Finished{1}});
  CHECK(fluid.rate(heavy) == doctest::Approx(1.5));
  CHECK(step(fluid) == std::pair{50.0, Finished{2}});
  CHECK(fluid.carried(ConstraintId(0), 50.0) == doctest::Approx(150.0));
}

TEST_CASE("hops of one constraint add up, and those of weight 0 are none") {
  const std::vector<double> capacity{4.0, 1.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId v = add(fluid, {on(0), on(1, 0.0), on(0)});
  fluid.start(v, 1, 10.0, 0.0);
  fluid.solve(0.0);
  CHECK(fluid.rate(v) == doctest::Approx(2.0));
  CHECK(fluid.load(ConstraintId(0)) == doctest::Approx(4.0));
  CHECK(fluid.load(ConstraintId(1)) == 0.0);
}

TEST_CASE("an activity without hops is done at once, before time passes") {
  const std::vector<double> capacity{1.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId nothing = add(fluid, {});
  fluid.start(nothing, 5, 1e12, 3.0);
  fluid.solve(3.0);
  CHECK(step(fluid) == std::pair{3.0, Finished{5}});
}

TEST_CASE("activities of one variable share its constraint and end in the order of their amounts") {
  const std::vector<double> capacity{1.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId v = add(fluid, {on(0)});
  fluid.start(v, 1, 10.0, 0.0);
  fluid.start(v, 2, 30.0, 0.0);
  fluid.solve(0.0);
  CHECK(fluid.activities(v) == 2);
  CHECK(step(fluid) == std::pair{20.0, Finished{1}});
  CHECK(step(fluid) == std::pair{40.0, Finished{2}});
}

TEST_CASE("stop tells what is left, and gives the others their share") {
  const std::vector<double> capacity{2.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId a = add(fluid, {on(0)}), b = add(fluid, {on(0)});
  fluid.start(a, 1, 100.0, 0.0);
  fluid.start(b, 2, 100.0, 0.0);
  fluid.solve(0.0);
  CHECK(fluid.stop(a, 1, 40.0) == doctest::Approx(60.0));
  fluid.solve(40.0);
  CHECK(fluid.rate(b) == doctest::Approx(2.0));
  CHECK(step(fluid) == std::pair{70.0, Finished{2}});
  CHECK_THROWS_AS(fluid.stop(a, 1, 70.0), std::invalid_argument);
}

TEST_CASE("without capacity activities stall, and go on when it comes back") {
  const std::vector<double> capacity{1.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId v = add(fluid, {on(0)});
  fluid.start(v, 1, 10.0, 0.0);
  fluid.solve(0.0);
  fluid.set_capacity(ConstraintId(0), 0.0, 4.0);
  fluid.solve(4.0);
  CHECK(fluid.rate(v) == 0.0);
  CHECK(fluid.next() == kInfinity);
  fluid.set_capacity(ConstraintId(0), 2.0, 100.0);
  fluid.solve(100.0);
  CHECK(step(fluid) == std::pair{103.0, Finished{1}});
}

TEST_CASE("other constraints from now on: what was served stays served") {
  const std::vector<double> capacity{1.0, 4.0};
  Fluid fluid(capacity, 1e-9);
  const VariableId v = add(fluid, {on(0)});
  fluid.start(v, 1, 10.0, 0.0);
  fluid.solve(0.0);
  const std::vector<ConstraintHop> other{on(1)};
  fluid.set_hops(v, other, 2.0);
  fluid.solve(2.0);
  CHECK(step(fluid) == std::pair{4.0, Finished{1}});
  CHECK(fluid.carried(ConstraintId(0), 4.0) == doctest::Approx(2.0));
  CHECK(fluid.carried(ConstraintId(1), 4.0) == doctest::Approx(8.0));
}

TEST_CASE("a hop names a link that exists, with a weight above 0") {
  const std::vector<double> capacity{1.0};
  Fluid fluid(capacity, 1e-9);
  CHECK_THROWS_AS(add(fluid, {on(1)}), std::invalid_argument);
  CHECK_THROWS_AS(add(fluid, {on(-1)}), std::invalid_argument);
  CHECK_THROWS_AS(add(fluid, {on(0, -1.0)}), std::invalid_argument);
}

TEST_CASE(
    "generated runs: rates are textbook max-min, no constraint is overloaded, and all that was asked is carried") {
  // A test repeats itself. NOLINTNEXTLINE(bugprone-random-generator-seed,cert-msc32-c,cert-msc51-cpp)
  std::mt19937_64 random(3);
  for (int round = 0; round < 15; ++round) {
    std::vector<double> capacity;
    capacity.reserve(12);
    for (int i = 0; i < 12; ++i) capacity.push_back(1.0 + static_cast<double>(random() % 8));
    Fluid fluid(capacity, 1e-9);
    std::vector<VariableId> variables;
    std::vector<std::vector<ConstraintHop>> hops;
    for (int i = 0; i < 20; ++i) {
      hops.emplace_back();
      for (int c = 0; c < 12; ++c)
        if (random() % 4 == 0) hops.back().push_back(on(c, 1.0 + static_cast<double>(random() % 3)));
      if (hops.back().empty()) hops.back().push_back(on(i % 12));
      variables.push_back(fluid.add_variable(hops.back()));
    }
    std::vector<double> wanted(12, 0.0);
    std::int64_t started = 0, ended = 0;
    double now = 0.0;
    while (started < 200 || fluid.next() < kInfinity) {
      if (started < 200) {
        const auto which = static_cast<std::size_t>(random() % variables.size());
        const double amount = 1.0 + static_cast<double>(random() % 100);
        fluid.start(variables[which], started++, amount, now);
        for (const ConstraintHop& hop : hops[which]) wanted[hop.constraint.index()] += amount * hop.weight;
        fluid.solve(now);
      }
      if (started == 200 || random() % 2 == 0) {
        const auto [at, finished] = step(fluid);
        REQUIRE(at >= now);
        now = at;
        ended += static_cast<std::int64_t>(finished.size());
      }
      REQUIRE(fluid.worst_error() < 1e-6);
      for (std::size_t c = 0; c < capacity.size(); ++c)
        REQUIRE(fluid.load(ConstraintId(c)) <= capacity[c] * (1.0 + 1e-6));
    }
    CHECK(ended == 200);
    for (std::size_t c = 0; c < capacity.size(); ++c)
      CHECK(fluid.carried(ConstraintId(c), now) == doctest::Approx(wanted[c]).epsilon(1e-6));
  }
}
