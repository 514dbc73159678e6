/// Cyclic redundancy checks as switches use them to hash: any initial value, no final XOR.
/// Source: polynomials of IEEE 802.3 (CRC-32), RFC 3720 appendix B.4 (CRC-32C) and ITU-T V.41 (CRC-CCITT).
#pragma once
#include <array>
#include <cstddef>
#include <cstdint>

namespace weftwork {

namespace detail {

constexpr std::array<std::uint32_t, 256> reflected_table(std::uint32_t polynomial) {
  std::array<std::uint32_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte;
    for (int bit = 0; bit < 8; ++bit) value = (value & 1U) != 0 ? (value >> 1U) ^ polynomial : value >> 1U;
    table[byte] = value;
  }
  return table;
}

constexpr std::array<std::uint16_t, 256> ccitt_table() {
  std::array<std::uint16_t, 256> table{};
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    std::uint32_t value = byte << 8U;
    for (int bit = 0; bit < 8; ++bit) value = (value & 0x8000U) != 0 ? (value << 1U) ^ 0x1021U : value << 1U;
    table[byte] = static_cast<std::uint16_t>(value);
  }
  return table;
}

inline constexpr auto kCrc32 = reflected_table(0xEDB88320U);
inline constexpr auto kCrc32c = reflected_table(0x82F63B78U);
inline constexpr auto kCcitt = ccitt_table();

}  // namespace detail

inline std::uint32_t crc_reflected(const std::array<std::uint32_t, 256>& table, std::uint32_t value,
                                   const std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) value = (value >> 8U) ^ table[(value ^ bytes[i]) & 0xFFU];
  return value;
}

inline std::uint32_t crc_ccitt(std::uint32_t value, const std::uint8_t* bytes, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i)
    value = ((value << 8U) ^ detail::kCcitt[((value >> 8U) ^ bytes[i]) & 0xFFU]) & 0xFFFFU;
  return value;
}

}  // namespace weftwork
