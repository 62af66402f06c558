// SPDX-License-Identifier: Apache-2.0
//
// ParquetPages: the footers of the most recently read files of a dataset, the
// positions of pages in their chunks, and decoded pages of some of their
// columns.
//
// Thread-safe.
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "worker/source/file_set.h"
#include "worker/source/packed/shard_cache.h"
#include "worker/source/parquet/parquet.h"
#include "worker/source/source_storage.h"

namespace leat::worker {

// The row groups of a dataset that have rows: 16 bytes each.
struct ParquetGroups {
  struct Group {
    uint64_t end = 0;  // samples up to and including it
    uint32_t file = 0;
    uint32_t ordinal = 0;  // in the file
  };

  size_t GroupOf(uint64_t sample) const {
    return static_cast<size_t>(
        std::upper_bound(
            groups.begin(), groups.end(), sample,
            [](uint64_t s, const Group& each) { return s < each.end; }) -
        groups.begin());
  }
  uint64_t Begin(size_t group) const {
    return group == 0 ? 0 : groups[group - 1].end;
  }

  FileSet files;
  std::vector<Group> groups;
};

class ParquetPages {
 public:
  // A file that is being read.
  struct OpenFile {
    std::shared_ptr<const StorageFile> file;
    std::shared_ptr<const ParquetFooter> footer;
    std::vector<size_t> columns;  // of the footer; one for each of ours
    uint64_t bytes() const { return footer->bytes; }
  };
  struct Unit {
    std::unique_ptr<const ParquetUnit> unit;
    uint64_t bytes() const { return unit->bytes; }
  };
  // The place of a value in a page.
  struct Place {
    std::shared_ptr<const Unit> unit;
    const ParquetColumn* column = nullptr;  // of the file's footer
    uint64_t row = 0;                       // of the unit
  };
  // Checks that a file's column is what the `output`th of ours shall be.
  using Check =
      std::function<absl::Status(size_t output, const ParquetColumn& column)>;

  // `groups` and the limits' objects outlive it.
  ParquetPages(const ParquetGroups* groups, std::vector<std::string> columns,
               Check check, const ParquetLibrary& library,
               const SourceLimits& limits)
      : groups_(groups),
        columns_(std::move(columns)),
        check_(std::move(check)),
        library_(library),
        storage_(StorageOf(limits)),
        bounds_(BoundsOf(limits)),
        open_(limits.max_unpacked_bytes / 4, kOpenFiles, limits.unpacked),
        chunks_(limits.max_unpacked_bytes / 4, kOpenChunks, limits.unpacked),
        units_(limits.max_unpacked_bytes / 2, kKeptUnits, limits.unpacked) {}

  const std::vector<std::string>& columns() const { return columns_; }

  // Errors: storage's, the library's, those of the check, and kDataLoss: the
  // index may be of another file.
  absl::StatusOr<std::shared_ptr<const OpenFile>> Open(size_t group) const {
    const ParquetGroups::Group& wanted = groups_->groups[group];
    const auto open = [&]() -> absl::StatusOr<std::shared_ptr<const OpenFile>> {
      auto made = std::make_shared<OpenFile>();
      ASSIGN_OR_RETURN(made->file, groups_->files.Open(storage_, wanted.file));
      const StoredParquet input(*made->file);
      ParquetError error;
      made->footer = library_.open(input, bounds_, &error);
      if (made->footer == nullptr) return input.StatusOf(error);
      for (size_t i = 0; i < columns_.size(); ++i) {
        ASSIGN_OR_RETURN(const size_t column,
                         FindParquetColumn(*made->footer, columns_[i]));
        RETURN_IF_ERROR(check_(i, made->footer->columns[column]));
        made->columns.push_back(column);
      }
      return made;
    };
    ASSIGN_OR_RETURN(const auto opened, open_.Get(wanted.file, open));
    const auto& rows = opened->footer->group_rows;
    if (wanted.ordinal >= rows.size() ||
        rows[wanted.ordinal] != wanted.end - groups_->Begin(group))
      return DataLoss("row group {} is not as the index has it",
                      wanted.ordinal);
    return opened;
  }

  // Returns the place of one of our columns' values in a row of a group.
  absl::StatusOr<Place> Find(const OpenFile& file, size_t group, size_t output,
                             uint64_t row) const {
    const StoredParquet input(*file.file);
    const uint64_t key = group * columns_.size() + output;
    ParquetError error;
    const auto open =
        [&]() -> absl::StatusOr<std::shared_ptr<const OpenChunk>> {
      auto made = std::make_shared<OpenChunk>();
      made->chunk = file.footer->OpenChunk(
          input, groups_->groups[group].ordinal, file.columns[output], &error);
      if (made->chunk == nullptr) return input.StatusOf(error);
      return made;
    };
    ASSIGN_OR_RETURN(const auto opened, chunks_.Get(key, open));
    const std::vector<uint64_t>& ends = opened->chunk->ends;
    const auto unit = static_cast<size_t>(
        std::upper_bound(ends.begin(), ends.end(), row) - ends.begin());
    const auto decode = [&]() -> absl::StatusOr<std::shared_ptr<const Unit>> {
      auto made = std::make_shared<Unit>();
      made->unit = opened->chunk->Decode(input, unit, &error);
      if (made->unit == nullptr) return input.StatusOf(error);
      return made;
    };
    Place place;
    ASSIGN_OR_RETURN(place.unit, units_.Get(key << kUnitBits | unit, decode));
    place.column = &file.footer->columns[file.columns[output]];
    place.row = row - (unit == 0 ? 0 : ends[unit - 1]);
    return place;
  }

 private:
  static constexpr size_t kOpenFiles = 256;
  static constexpr size_t kOpenChunks = 4096;
  static constexpr size_t kKeptUnits = 65536;
  static constexpr uint64_t kUnitBits = 20;  // of a cache's key

  struct OpenChunk {
    std::unique_ptr<const ParquetChunk> chunk;
    uint64_t bytes() const { return chunk->bytes; }
  };

  const ParquetGroups* const groups_;
  const std::vector<std::string> columns_;
  const Check check_;
  const ParquetLibrary& library_;
  const Storage& storage_;
  const ParquetBounds bounds_;
  // The keys: files; groups, then columns; and then units.
  mutable ShardCache<OpenFile> open_;
  mutable ShardCache<OpenChunk> chunks_;
  mutable ShardCache<Unit> units_;
};

}  // namespace leat::worker
