// SPDX-License-Identifier: Apache-2.0
//
// Record: the unit of `leat convert`. Records go from an input to an output,
// one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace leat::cli {

struct Record {
  std::string image;      // the bytes of an image file
  std::string extension;  // for its type: "jpg", "png", ...
  int32_t label = 0;
  std::string class_name;  // "": its class has none
  std::string file_name;   // below the input; "": it was not a file
};

class RecordInput {
 public:
  virtual ~RecordInput() = default;
  // Reads the next record in order; returns false at the end. Errors name the
  // file, and the record if a file has several.
  virtual absl::StatusOr<bool> Next(Record* record) = 0;
};

class RecordOutput {
 public:
  virtual ~RecordOutput() = default;
  // Errors name the file.
  virtual absl::Status Add(const Record& record) = 0;
  // Called after the last Add: puts everything on the disk.
  virtual absl::Status Finish() = 0;
};

}  // namespace leat::cli
