// SPDX-License-Identifier: Apache-2.0
//
// Reads records from idx files like MNIST's: gray images of uint8 and their
// labels, plain or gzipped. Images are encoded on the way, one at a time.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/convert/record.h"

namespace leat::cli {

struct IdxEncoding {
  bool jpeg = false;  // otherwise PNG, which is lossless
  int quality = 95;   // of a JPEG
};

// kNotFound: no such file. kDataLoss: not an idx file, cut off, or with data
// after its records. kInvalidArgument: idx files other than images and their
// labels, or with different numbers of them. All name the file.
absl::StatusOr<std::unique_ptr<RecordInput>> OpenIdx(
    const std::string& images, const std::string& labels,
    const IdxEncoding& encoding);

}  // namespace leat::cli
