#include "packet/calendar.hpp"

#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>

using namespace weftwork;

namespace {

std::vector<std::int32_t> nodes_of(Calendar& calendar) {
  std::vector<std::int32_t> nodes;
  calendar.each([&](NodeId node) { nodes.push_back(node.value); });
  return nodes;
}

}  // namespace

TEST_CASE("an empty calendar has nothing ahead") {
  const Calendar calendar(10, 100);
  CHECK(calendar.next_ps() == kNeverPs);
  CHECK(calendar.start_ps() == 0);
  CHECK(calendar.end_ps() == 100);
}

TEST_CASE("schedule tells the end of the window, whose first instant belongs to it") {
  Calendar calendar(10, 100);
  CHECK(calendar.schedule(NodeId(1), 0) == 100);
  CHECK(calendar.schedule(NodeId(1), 99) == 100);
  CHECK(calendar.schedule(NodeId(1), 100) == 200);
  CHECK(calendar.schedule(NodeId(1), 399) == 400);
  CHECK(calendar.schedule(NodeId(1), 400) == 500);          // further ahead it is divided
  CHECK(calendar.schedule(NodeId(1), 102'400) == 102'500);  // behind the ring
}

TEST_CASE("a window has each node once, in order, and clearing it leaves the others") {
  Calendar calendar(200, 100);
  for (const int node : {130, 3, 64, 3, 63}) calendar.schedule(NodeId(node), 50);
  calendar.schedule(NodeId(7), 150);
  CHECK(nodes_of(calendar) == std::vector<std::int32_t>{3, 63, 64, 130});
  calendar.clear();
  CHECK(nodes_of(calendar).empty());
  CHECK(calendar.next_ps() == 100);
  calendar.go_to(160);
  CHECK(calendar.start_ps() == 100);
  CHECK(nodes_of(calendar) == std::vector<std::int32_t>{7});
}

TEST_CASE("an instant after the end of simulated time is never due") {
  Calendar calendar(2, 100);
  calendar.schedule(NodeId(0), kNeverPs);
  CHECK(calendar.next_ps() == kNeverPs);
}

TEST_CASE("generated events come in order, each in its window and none twice") {
  // A test repeats itself. NOLINTNEXTLINE(bugprone-random-generator-seed,cert-msc32-c,cert-msc51-cpp)
  std::mt19937_64 random(7);
  for (int round = 0; round < 20; ++round) {
    const Ps window_ps = 1 + static_cast<Ps>(random() % 1'000);
    Calendar calendar(150, window_ps);
    std::map<Ps, std::set<std::int32_t>> expected;  // by start of window
    const auto add = [&](Ps from_ps) {
      // near, in the ring, and up to four rings ahead
      const Ps ahead_ps = static_cast<Ps>(random() % static_cast<std::uint64_t>(window_ps * (1 << (random() % 13))));
      const auto node = static_cast<std::int32_t>(random() % 150);
      const Ps at_ps = from_ps + ahead_ps;
      CHECK(calendar.schedule(NodeId(node), at_ps) == (at_ps / window_ps + 1) * window_ps);
      expected[at_ps / window_ps * window_ps].insert(node);
    };
    for (int i = 0; i < 200; ++i) add(0);
    int more = 200;
    while (!expected.empty()) {
      const auto& [start_ps, nodes] = *expected.begin();
      REQUIRE(calendar.next_ps() == start_ps);
      calendar.go_to(start_ps);
      const std::vector<std::int32_t> wanted(nodes.begin(), nodes.end());
      REQUIRE(nodes_of(calendar) == wanted);
      calendar.clear();
      expected.erase(expected.begin());
      for (int i = 0; i < 2 && more > 0; ++i, --more) add(calendar.end_ps());
    }
    CHECK(calendar.next_ps() == kNeverPs);
  }
}
