// SPDX-License-Identifier: Apache-2.0
//
// CocoTable: an opened index of readers.coco. Holds the values of all samples
// one after the other, and the end of each sample's values.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "core/hash.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/coco/coco.h"
#include "worker/source/file_set.h"

namespace leat::worker {

class CocoTable {
 public:
  explicit CocoTable(std::string root) : files_(std::move(root)) {}

  // kDataLoss: counts that do not match, a name outside root, a polygon or runs
  // that cannot be drawn. kResourceExhausted: over `max_samples`.
  absl::Status Add(const stored::v1::CocoImages& part,
                   const CocoOptions& options, uint64_t max_samples);
  void ShrinkToFit();

  uint64_t num_samples() const { return samples_.size(); }
  const FileSet& files() const { return files_; }
  Digest Fingerprint() const;
  Digest Annotations() const;  // the fingerprint's part without the files

  struct Sample {
    int64_t id = 0;
    uint32_t height = 0, width = 0;
    std::span<const float> boxes;           // x, y, width, height per object
    std::span<const int32_t> labels;        // per object
    std::span<const uint32_t> polygons;     // number of vertices of each
    std::span<const uint32_t> polygons_of;  // number of polygons per object
    std::span<const float> vertices;        // x, y of each
    std::span<const uint32_t> runs_of;      // number of runs per object
    std::span<const uint32_t> runs;
  };
  Sample at(uint64_t sample) const;

 private:
  // One sample; its values end at these positions in the members.
  struct Entry {
    int64_t id = 0;
    uint32_t height = 0, width = 0;
    uint64_t objects = 0, polygons = 0, vertices = 0, runs = 0;
  };

  void HashAnnotations(Sha256* hash) const;

  FileSet files_;
  std::vector<Entry> samples_;
  std::vector<float> boxes_;
  std::vector<int32_t> labels_;
  std::vector<uint32_t> polygons_of_, polygons_, runs_of_, runs_;
  std::vector<float> vertices_;
};

}  // namespace leat::worker
