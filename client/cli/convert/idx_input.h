// SPDX-License-Identifier: Apache-2.0
//
// Records out of idx files, as MNIST's: gray images of uint8 and their labels,
// plain or gzipped. Images are encoded on the way, one at a time.
#pragma once

#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/convert/record.h"

namespace leat::cli {

struct IdxEncoding {
  bool jpeg = false;  // else PNG, which loses nothing
  int quality = 95;   // of a JPEG
};

// kNotFound: no such file. kDataLoss: no idx file, cut off, or with something
// behind its records. kInvalidArgument: idx files of other things than images
// and their labels, or of different numbers of them. All name the file.
absl::StatusOr<std::unique_ptr<RecordInput>> OpenIdx(
    const std::string& images, const std::string& labels,
    const IdxEncoding& encoding);

}  // namespace leat::cli
