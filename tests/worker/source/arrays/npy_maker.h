// SPDX-License-Identifier: Apache-2.0
//
// Makes NumPy's .npy files.
#pragma once

#include <string>
#include <string_view>

#include "fmt/format.h"
#include "tests/worker/source/loader_support.h"

namespace leat::worker {

inline std::string Npy(const std::string& dictionary, std::string_view data,
                       int version = 1) {
  std::string header = dictionary;
  const size_t prefix = version == 1 ? 10 : 12;
  while ((prefix + header.size() + 1) % 64 != 0) header += ' ';
  header += '\n';
  std::string file = "\x93NUMPY";
  file += static_cast<char>(version);
  file += '\0';
  file += version == 1 ? Little(static_cast<uint16_t>(header.size()))
                       : Little(static_cast<uint32_t>(header.size()));
  return file + header + std::string(data);
}

inline std::string Npy(const std::string& descr, const std::string& shape,
                       std::string_view data, bool fortran = false) {
  return Npy(
      fmt::format("{{'descr': '{}', 'fortran_order': {}, 'shape': {}, }}",
                  descr, fortran ? "True" : "False", shape),
      data);
}

}  // namespace leat::worker
