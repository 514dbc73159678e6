#include "base/invariant.hpp"

#include <doctest/doctest.h>

#include <set>

using namespace weftwork;

namespace {

std::string text_of(bool holds) {
  try {
    must_hold(holds, Invariant::time_never_runs_back, "at_ps node", std::int64_t{7}, NodeId(3));
  } catch (const BrokenInvariant& broken) {
    return broken.what();
  }
  return "";
}

}  // namespace

TEST_CASE("an invariant that holds says nothing") {
  CHECK(text_of(true).empty());
}

TEST_CASE("a broken invariant tells its name, its sentence and the numbers at fault") {
  const std::string text = text_of(false);
  CHECK(text.starts_with("time_never_runs_back: nothing is set to"));
  CHECK(text.ends_with("; at_ps 7, node 3"));
}

TEST_CASE("an assertion without numbers has none") {
  CHECK_THROWS_WITH_AS(must_hold(false, Invariant::packets_conserved, ""),
                       (std::string(kInvariants[static_cast<std::size_t>(Invariant::packets_conserved)].name) + ": " +
                        std::string(kInvariants[static_cast<std::size_t>(Invariant::packets_conserved)].sentence))
                           .c_str(),
                       BrokenInvariant);
}

TEST_CASE("every invariant has a name of its own and a sentence") {
  std::set<std::string_view> names;
  for (const InvariantRow& row : kInvariants) {
    CHECK(names.insert(row.name).second);
    CHECK(row.sentence.size() > 20);
    CHECK(row.sentence.back() != '.');
  }
}
