// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/status.h"

namespace leat::worker {

// Returns a .npy file of version 1. `descr`: as '<f4', or a list of fields.
template <class T>
std::string NpyBytes(const std::string& descr, const std::string& shape,
                     const std::vector<T>& values) {
  const char* const quote = descr.starts_with('[') ? "" : "'";
  std::string header =
      fmt::format("{{'descr': {}{}{}, 'fortran_order': False, 'shape': {}, }}",
                  quote, descr, quote, shape);
  header.resize((header.size() + 10 + 64) / 64 * 64 - 11, ' ');
  header += '\n';
  const auto size = static_cast<uint16_t>(header.size());
  std::string file("\x93NUMPY\x01\x00", 8);
  file.append(reinterpret_cast<const char*>(&size), sizeof size);
  file += header;
  file.append(reinterpret_cast<const char*>(values.data()),
              values.size() * sizeof(T));
  return file;
}

}  // namespace leat::worker
