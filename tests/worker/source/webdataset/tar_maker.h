// SPDX-License-Identifier: Apache-2.0
//
// Tar archives put together by hand, and DALI's indexes of them.
#pragma once

#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

#include "fmt/format.h"

namespace leat::worker {

struct TarFields {
  char type = '0';
  std::string magic = std::string("ustar\00000", 8);
  std::string prefix;
  std::string size;  // the field; empty: octal
};

inline void SealTarHeader(std::string* header) {
  header->replace(148, 8, 8, ' ');
  unsigned sum = 0;
  for (const char c : *header) sum += static_cast<uint8_t>(c);
  header->replace(148, 8, fmt::format("{:06o}", sum) + std::string("\0 ", 2));
}

inline std::string TarHeaderOf(std::string_view name, uint64_t size,
                               const TarFields& fields = {}) {
  std::string header(512, '\0');
  header.replace(0, name.size(), name);
  header.replace(100, 7, "0000644");
  header.replace(124, 11, fmt::format("{:011o}", size));
  if (!fields.size.empty()) header.replace(124, 12, fields.size);
  header[156] = fields.type;
  header.replace(257, fields.magic.size(), fields.magic);
  header.replace(345, fields.prefix.size(), fields.prefix);
  SealTarHeader(&header);
  return header;
}

inline std::string Padded(std::string bytes) {
  bytes.resize((bytes.size() + 511) / 512 * 512, '\0');
  return bytes;
}

inline std::string TarMemberOf(std::string_view name, std::string_view bytes,
                               const TarFields& fields = {}) {
  return TarHeaderOf(name, bytes.size(), fields) + Padded(std::string(bytes));
}

inline std::string TarEnd() { return std::string(1024, '\0'); }

inline std::string LongName(std::string_view name) {
  return TarMemberOf("././@LongLink", std::string(name) + '\0',
                     {.type = 'L', .magic = std::string("ustar  \0", 8)});
}

inline std::string PaxRecord(std::string_view key, std::string_view value) {
  const size_t rest = key.size() + value.size() + 3;
  size_t length = rest + 1;
  while (std::to_string(length).size() + rest != length) ++length;
  return fmt::format("{} {}={}\n", length, key, value);
}

inline std::string Pax(std::string_view records, char type = 'x') {
  return TarMemberOf("PaxHeaders/x", records, {.type = type});
}

}  // namespace leat::worker
