// SPDX-License-Identifier: Apache-2.0
//
// LabelledFiles: a source whose records are whole files, in any storage, each
// with a label: file i is record i. A format fills it when it loads its index.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/statusor.h"
#include "core/status.h"
#include "worker/source/file_set.h"
#include "worker/source/images/image_folder.h"
#include "worker/source/record_file.h"
#include "worker/source/source.h"
#include "worker/source/source_storage.h"

namespace leat::worker {

class LabelledFiles : public FormatSource {
 public:
  std::string Describe(uint64_t sample) const override {
    return files_.Shown(RecordOf(sample));
  }
  absl::StatusOr<int64_t> IndexedColumn(std::string_view column,
                                        uint64_t sample) const override {
    if (column != "label") return FormatSource::IndexedColumn(column, sample);
    return LabelOf(RecordOf(sample));
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    const uint64_t file = RecordOf(sample);
    return RecordPlace{.file = files_.Shown(file), .bytes = files_.size(file)};
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    const uint64_t index = RecordOf(sample);
    const uint64_t size = files_.size(index);
    if (size > max_file_bytes_)
      return ResourceExhausted("{} has {} bytes: the limit is {}",
                               files_.Shown(index), size, max_file_bytes_);
    ASSIGN_OR_RETURN(const auto file, files_.Open(storage_, index));
    SampleBytes bytes = NewSampleBytes(size + sizeof(int32_t));
    RETURN_IF_ERROR(file->ReadAt(0, std::span(bytes.get(), size)));
    return WithLabel(std::move(bytes), size, LabelOf(index));
  }

 protected:
  LabelledFiles(FileSet files, const SourceLimits& limits)
      : files_(std::move(files)),
        storage_(StorageOf(limits)),
        max_file_bytes_(limits.max_file_bytes) {}

  virtual int32_t LabelOf(uint64_t file) const = 0;

  FileSet files_;

 private:
  const Storage& storage_;
  const uint64_t max_file_bytes_;
};

}  // namespace leat::worker
