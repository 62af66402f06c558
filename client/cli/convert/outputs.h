// SPDX-License-Identifier: Apache-2.0
//
// The formats that `leat convert` writes, each into an existing folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "absl/status/statusor.h"
#include "client/cli/convert/record.h"

namespace leat::cli {

// part-00000.tfrecord, ...: one tf.Example per record, with image/encoded,
// image/class/label (from 0), image/format, and, if known, image/class/text and
// image/filename.
std::unique_ptr<RecordOutput> NewTfrecordOutput(const std::string& folder,
                                                uint64_t max_file_bytes);

// part-00000.tar, ...: for each record 000000042.jpg (or .png, ...) and
// 000000042.cls, its label in decimal.
std::unique_ptr<RecordOutput> NewWebdatasetOutput(const std::string& folder,
                                                  uint64_t max_file_bytes);

// data.mdb: caffe2.TensorProtos of an encoded image and an int32 label, by keys
// "00000042", as Caffe2's tools write them. kFailedPrecondition: LMDB's reason.
absl::StatusOr<std::unique_ptr<RecordOutput>> NewCaffe2Output(
    const std::string& folder);

}  // namespace leat::cli
