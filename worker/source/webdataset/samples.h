// SPDX-License-Identifier: Apache-2.0
//
// WebDataset's samples: which members of an archive belong together, and which
// of them are a reader's outputs.
//
// DALI's index (of its tool wds2idx) is text: "v1.2 N", then a line for each of
// N samples that has, for each of its components, "extension offset size name"
// (v1.1: no name). Offsets are those of the component's bytes.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/plan/passed_over.h"
#include "worker/source/storage/storage.h"
#include "worker/source/webdataset/tar.h"

namespace leat::worker {

// "dir/a.seg.png" is the component "seg.png" of the sample "dir/a".
struct ComponentName {
  std::string_view sample;
  std::string_view extension;
};
// Refers to `path`. Both are empty if it is not a component: a name without a
// dot, or that begins with one.
ComponentName ComponentNameOf(std::string_view path);

enum class MissingComponent : uint8_t { kError, kSkip, kEmpty };

// Where the components of samples are, as in the index blob.
struct ComponentPlaces {
  std::vector<uint32_t> blocks;  // of 512 bytes; 0: there is no component
  std::vector<uint32_t> sizes;
  PassedOverCounts passed_over;  // samples and components; not in the blob
};

// Assembles samples from components in the archive's order.
class SampleCollector {
 public:
  // `ext`: for each output, alternatives separated by semicolons. Must outlive
  // it.
  SampleCollector(const std::vector<std::string>& ext, MissingComponent missing,
                  uint64_t max_samples);

  // Adds the next component. Begins a new sample if `sample` differs from the
  // previous one. Among several that fit an output the first counts.
  // kFailedPrecondition: the previous sample lacks a component, or this one has
  // that extension already (kError). kUnimplemented: 4 GiB or more, or beyond 2
  // TiB. kResourceExhausted: more than `max_samples`.
  absl::Status Add(std::string_view sample, std::string_view extension,
                   uint64_t offset, uint64_t size);
  // Ends the last sample.
  absl::Status Finish();
  ComponentPlaces Take() { return std::move(places_); }

 private:
  const std::vector<std::string>& ext_;
  const MissingComponent missing_;
  const uint64_t max_samples_;
  std::map<std::string, std::vector<size_t>, std::less<>> outputs_;
  bool begun_ = false;
  std::string sample_;  // the current one
  // Its components that were wanted.
  std::vector<std::pair<std::string, uint64_t>> seen_;
  uint64_t first_ = 0;                    // offset of its first component
  std::vector<std::string> others_;       // extensions that nothing takes
  std::vector<uint32_t> blocks_, sizes_;  // its outputs
  uint64_t samples_ = 0;
  ComponentPlaces places_;
};

// Reads the archive's headers. Errors are those of WalkTar and SampleCollector;
// they name the file.
absl::StatusOr<ComponentPlaces> SamplesOfTar(
    const StorageFile& file, const std::vector<std::string>& ext,
    MissingComponent missing, uint64_t max_samples,
    const std::atomic<bool>* cancelled);

// Reads an index of DALI's. kFailedPrecondition: it is not of that file,
// according to its size, and the headers of the first, the last and some more
// components. kInvalidArgument: not such an index; names the line.
absl::StatusOr<ComponentPlaces> SamplesOfDaliIndex(
    std::string_view text, const StorageFile& file,
    const std::vector<std::string>& ext, MissingComponent missing,
    uint64_t max_samples);

}  // namespace leat::worker
