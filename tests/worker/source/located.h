// SPDX-License-Identifier: Apache-2.0
//
// Reads the bytes of a record at the place that its source returns.
#pragma once

#include <fstream>
#include <string>

#include "gtest/gtest.h"
#include "worker/source/source.h"

namespace leat::worker {

// REQUIRES: its size is known. Fails the test if the file ends before.
inline std::string BytesAt(const absl::StatusOr<RecordPlace>& place) {
  if (!place.ok() || !place->bytes) {
    ADD_FAILURE() << "no bytes: " << place.status();
    return "";
  }
  std::ifstream file(place->file, std::ios::binary);
  file.seekg(static_cast<std::streamoff>(place->offset.value_or(0)));
  std::string bytes(*place->bytes, '\0');
  file.read(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  EXPECT_TRUE(file.good()) << place->file;
  return bytes;
}

}  // namespace leat::worker
