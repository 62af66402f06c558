// SPDX-License-Identifier: Apache-2.0
//
// WriteSeekFile: makes the seek indexes of a dataset's JPEG files, for `leat
// index --seek`, and writes them beside it (seek_file.h).
//
// Every record is read once, and its file's Huffman codes are parsed, on all
// cores; only one pixel is computed. A record's index is that of its first
// field that is a JPEG. Records that cannot be read, and files that no index
// can be made of (progressive, damaged, other formats), have none.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "worker/source/source.h"

namespace leat::worker {

struct WrittenSeekFile {
  std::string path;
  uint64_t bytes = 0;
  uint64_t indexes = 0;  // records that have one
};

// `built` is the result of listing `reader`, which is listed again here, block
// by block. Increments `*records_read`. kInvalidArgument: the dataset is not on
// a file system, so there is no place beside it. kFailedPrecondition: it has
// changed since it was listed. Others: as BuildIndex, OpenSource and
// SeekFileWriter.
absl::StatusOr<WrittenSeekFile> WriteSeekFile(
    const Node& reader, const BuiltIndex& built, const SourceLimits& limits,
    std::atomic<uint64_t>* records_read);

}  // namespace leat::worker
