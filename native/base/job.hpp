/// A job as both engines are given it: rows of rows/job.hpp, and the rules that say who the other end
/// of an operation is and how much goes there. Source: weftwork.spec.job.
#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

#include "rows/job.hpp"

namespace weftwork {

/// What the rules of operations look things up in, borrowed.
struct JobTables {
  std::span<const std::int64_t> tables;
  std::span<const DigitRow> digits;
  std::size_t ranks;
};

inline std::int64_t floor_mod(std::int64_t value, std::int64_t modulus) {
  const std::int64_t rest = value % modulus;
  return rest < 0 ? rest + modulus : rest;
}

/// Coordinate of a rank in the group of an operation or of a digit.
template <typename Row>
std::int64_t coordinate(const JobTables& job, const Row& row, std::int64_t rank) {
  return row.members >= 0 ? job.tables[row.members + rank] : rank / row.stride % row.size;
}

/// The other rank of an operation, or -1 to skip it.
inline std::int64_t peer_rank(const JobTables& job, const OpRow& op, std::int64_t rank, std::int64_t i) {
  switch (static_cast<PeerRule>(op.rule)) {
    case PeerRule::kTable:
      return job.tables[op.table + rank];
    case PeerRule::kRank:
      return op.shift;
    case PeerRule::kShift:
    case PeerRule::kXor:
      break;
  }
  const std::int64_t own = coordinate(job, op, rank);
  const std::int64_t member = static_cast<PeerRule>(op.rule) == PeerRule::kShift
                                  ? floor_mod(own + op.shift + op.step * i, op.size)
                                  : own ^ (op.shift << (op.step * i));
  if (op.members >= 0) return job.tables[op.members + static_cast<std::int64_t>(job.ranks) + member];
  return rank + (member - own) * op.stride;
}

inline std::int64_t message_size(const JobTables& job, const OpRow& op, std::int64_t rank, std::int64_t i) {
  if (op.parts <= 0) return op.total_bytes * op.copies;
  std::int64_t part = op.part_offset;
  for (std::int64_t k = 0; k < op.digits; ++k) {
    const DigitRow& digit = job.digits[op.first_digit + k];
    const std::int64_t own = coordinate(job, digit, rank);
    part += digit.weight * (static_cast<PeerRule>(digit.rule) == PeerRule::kShift
                                ? floor_mod(own + digit.shift + digit.step * i, digit.size)
                                : own ^ (digit.shift << (digit.step * i)));
  }
  const std::int64_t longer = op.total_bytes % op.parts;
  std::int64_t bytes = op.total_bytes / op.parts * op.span;
  if (longer > 0)
    for (std::int64_t j = 0; j < op.span; ++j) bytes += floor_mod(part + j * op.span_stride, op.parts) < longer ? 1 : 0;
  return bytes * op.copies;
}

}  // namespace weftwork
