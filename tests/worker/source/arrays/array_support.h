// SPDX-License-Identifier: Apache-2.0
//
// Helpers for tests of readers: indexing, opening, fields as values.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/image/base/damaged_files.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/source.h"

namespace leat::worker {

template <class T>
std::vector<T> ValuesOf(const StoredField& field) {
  std::vector<T> values(field.bytes.size() / sizeof(T));
  std::memcpy(values.data(), field.bytes.data(), values.size() * sizeof(T));
  return values;
}

inline std::string TextOf(const StoredField& field) {
  return {reinterpret_cast<const char*>(field.bytes.data()),
          field.bytes.size()};
}

inline int32_t IntOf(const StoredField& field) {
  return ValuesOf<int32_t>(field).at(0);
}

// Returns a label as it is stored.
inline std::string BytesOfInt(int32_t value) {
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

class ReaderTest : public testing::Test {
 protected:
  absl::StatusOr<std::unique_ptr<Source>> TryOpen(const Node& reader) {
    ASSIGN_OR_RETURN(index_, BuildIndex(reader, limits_));
    return OpenSource(reader, index_.blob, limits_);
  }
  std::unique_ptr<Source> Open(const Node& reader) {
    auto source = TryOpen(reader);
    EXPECT_TRUE(source.ok()) << source.status();
    if (!source.ok()) return nullptr;
    EXPECT_EQ((*source)->fingerprint(), index_.fingerprint);
    EXPECT_EQ((*source)->num_samples(), index_.shards.num_samples());
    return *std::move(source);
  }
  static StoredSample Get(const Source& source, uint64_t sample) {
    auto stored = source.Read(sample);
    EXPECT_TRUE(stored.ok()) << stored.status();
    return stored.ok() ? *std::move(stored) : StoredSample{};
  }
  absl::Status ErrorOf(const Node& reader) { return TryOpen(reader).status(); }
  // Reads everything that can be read of damaged files.
  void Survive(const Node& reader) { ReadDamaged(TryOpen(reader)); }

  TempDir dir_;
  SourceLimits limits_;
  BuiltIndex index_;
};

}  // namespace leat::worker
