// SPDX-License-Identifier: Apache-2.0
//
// Shared by the tests of loaders' readers: stored values as text, and damaged
// bytes.
#pragma once

#include <algorithm>
#include <cstring>
#include <functional>
#include <memory>
#include <random>
#include <string>
#include <string_view>
#include <vector>

#include "tests/worker/image/base/damaged_files.h"
#include "worker/source/source.h"

namespace leat::worker {

inline std::string TextOf(const StoredField& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()),
          field.bytes.size()};
}

template <class T>
std::vector<T> ValuesOf(const StoredField& field) {
  std::vector<T> values(field.bytes.size() / sizeof(T));
  if (!values.empty())
    std::memcpy(values.data(), field.bytes.data(), values.size() * sizeof(T));
  return values;
}

template <class T>
std::string BytesOfValues(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()),
          values.size() * sizeof(T)};
}

// Returns the value's bytes, least significant first.
template <class T>
std::string Little(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

// Calls `use` with `good` cut at every byte, and with some bits or bytes
// changed, `changes` times.
inline void Damage(const std::string& good, int changes,
                   const std::function<void(const std::string&)>& use) {
  for (size_t size = 0; size < good.size(); ++size) use(good.substr(0, size));
  std::minstd_rand random(1);
  for (int i = 0; i < changes; ++i) {
    std::string bytes = good;
    for (int j = 0; j <= i % 3; ++j) {
      char& at = bytes[random() % bytes.size()];
      at = i % 2 ? static_cast<char>(at ^ (1 << random() % 8))
                 : static_cast<char>(random());
    }
    use(bytes);
  }
}

}  // namespace leat::worker
