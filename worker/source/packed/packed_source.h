// SPDX-License-Identifier: Apache-2.0
//
// PackedSource: a source whose records are in files that hold many, each in one
// or several ranges of one file. A format locates the ranges, and makes samples
// of the bytes.
#pragma once

#include <span>
#include <vector>

#include "absl/container/inlined_vector.h"
#include "absl/status/statusor.h"
#include "worker/source/file_set.h"
#include "worker/source/packed/packed_reader.h"
#include "worker/source/record_file.h"
#include "worker/source/source.h"
#include "worker/source/source_storage.h"

namespace leat::worker {

class PackedSource : public FormatSource {
 public:
  absl::StatusOr<StoredSample> Read(uint64_t sample) const final;
  std::vector<absl::StatusOr<StoredSample>> ReadMany(
      std::span<const uint64_t> samples) const final;
  // Reads parts if the format does (BeginPart).
  std::vector<absl::StatusOr<StoredPart>> ReadParts(
      std::span<const RecordPart> parts) const final;
  size_t Nearby(std::span<const uint64_t> samples,
                const NearbyLimits& limits) const final;

 protected:
  struct Extent {
    size_t file = 0;
    uint64_t begin = 0, end = 0;  // equal: nothing is read
  };
  // A record before it is read: memory, and the ranges that fill it.
  struct Pending {
    size_t file = 0;
    absl::InlinedVector<ReadRange, 1> ranges;
    SampleBytes memory;
  };

  explicit PackedSource(const SourceLimits& limits)
      : reader_(&files_, &StorageOf(limits), limits.one_of_many) {}

  // Returns the span of the record's ranges. Cheap.
  virtual Extent ExtentOf(uint64_t sample) const = 0;
  // kResourceExhausted: larger than a record may be.
  virtual absl::StatusOr<Pending> Begin(uint64_t sample) const = 0;
  // `memory` is that of Begin, filled.
  virtual absl::StatusOr<StoredSample> End(uint64_t sample,
                                           SampleBytes memory) const = 0;

  // The same for a part of a record. A format overrides both or neither.
  // kUnimplemented: records are read whole.
  virtual absl::StatusOr<Pending> BeginPart(const RecordPart& part) const;
  virtual absl::StatusOr<StoredPart> EndPart(const RecordPart& part,
                                             SampleBytes memory) const;

  FileSet files_;  // filled by the format's Load

 private:
  // Fills the memory of all that are ok; an error takes its place.
  void Fill(std::span<absl::StatusOr<Pending>> pending) const;

  PackedReader reader_;
};

}  // namespace leat::worker
