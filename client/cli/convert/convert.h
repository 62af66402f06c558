// SPDX-License-Identifier: Apache-2.0
//
// `leat convert`: converts idx files or an image folder to Caffe2's LMDB,
// TFRecord or WebDataset, in the same order, without a service. One record is
// in memory at a time.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/statusor.h"

namespace leat::cli {

struct ConvertOptions {
  std::string input;         // an image folder, an idx file, or MNIST's folder
  std::string output;        // a folder, which is created
  std::string to;            // "caffe2", "tfrecord" or "webdataset"
  std::string labels;        // idx; "": found beside the images by its name
  std::string encoding;      // of idx's images: "png" or "jpeg"; "": png
  int quality = 0;           // of a JPEG; 0: 95
  uint64_t shard_bytes = 0;  // not caffe2; 0: 256 MiB
  bool force = false;
};

struct Converted {
  uint64_t records = 0;
  uint64_t files = 0;
  uint64_t bytes = 0;
};

// A folder with MNIST's four files (train-images-idx3-ubyte, ..., also .gz)
// becomes two: output/training and output/testing. kInvalidArgument: an option
// that does not fit the input or the format. Others: of inputs, outputs and
// NewFolder. After an error there is no output.
absl::StatusOr<Converted> Convert(const ConvertOptions& options);

}  // namespace leat::cli
