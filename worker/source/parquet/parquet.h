// SPDX-License-Identifier: Apache-2.0
//
// Parquet: files of row groups, which have a chunk of pages per column.
//
// Arrow's C++ library reads them, in libleat_parquet-*.so (arrow/library.h),
// which is loaded when the first such dataset is listed or opened. The index
// has for each file its identity and the rows of its row groups, from the
// footer. A sample is a row. To read one, the page with it is decoded in each
// column, and the most recently read pages are kept
// (SourceLimits::max_unpacked_bytes): read such datasets in the order of
// shards, which are parts of row groups.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/selection/column_value.h"
#include "worker/source/parquet/arrow/library.h"
#include "worker/source/source.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

struct ParquetOptions {
  std::vector<std::string> paths;
  std::vector<std::string> columns;
  std::vector<ValueType> types;  // one per column
};
// kInvalidArgument: names the argument.
absl::StatusOr<ParquetOptions> ParquetOptionsOf(const Node& reader);

// --- The library ------------------------------------------------------------

// Loads LEAT_PARQUET_LIBRARY's file; or among the libleat_parquet-*.so beside
// this program, in lib/ there or beside there, the first whose Arrow is found.
// Loads it once; thread-safe. kFailedPrecondition: says what was tried and what
// to install.
absl::StatusOr<const ParquetLibrary*> LoadParquetLibrary();

ParquetBounds BoundsOf(const SourceLimits& limits);

// A stored file for one call of the library.
class StoredParquet final : public ParquetInput {
 public:
  explicit StoredParquet(const StorageFile& file) : file_(file) {}
  uint64_t size() const override { return file_.size(); }
  bool ReadAt(uint64_t offset, std::span<uint8_t> into) const override;
  // Converts the library's error: storage's own error if that was the reason;
  // otherwise kDataLoss, kUnimplemented or kResourceExhausted, without the
  // file's name.
  absl::Status StatusOf(const ParquetError& error) const;

 private:
  const StorageFile& file_;
  mutable absl::Status failed_;
};

// --- Columns ----------------------------------------------------------------

// Returns the index of a column, by the dotted path of its leaf, or its list's.
// kNotFound: names the existing ones.
absl::StatusOr<size_t> FindParquetColumn(const ParquetFooter& footer,
                                         std::string_view name);
// Checks that its values can have `type`. kInvalidArgument; kUnimplemented: no
// type would do.
absl::Status CheckParquetType(const ParquetColumn& column,
                              const ValueType& type);

// Returns the bytes of a row's value. kInvalidArgument: null, or another number
// of elements than `type` has. REQUIRES: CheckParquetType; row < unit.rows.
absl::StatusOr<uint64_t> ParquetBytes(const ParquetUnit& unit, uint64_t row,
                                      const ParquetColumn& column,
                                      const ValueType& type);
// REQUIRES: `to` has ParquetBytes.
void ConvertParquet(const ParquetUnit& unit, uint64_t row,
                    const ParquetColumn& column, const ValueType& type,
                    std::span<std::byte> to);

// Returns the value of a row as a condition compares it; nothing: null. Texts
// refer to the unit. REQUIRES: the column is in no list, and not kOther; row <
// unit.rows.
ColumnValue ParquetValue(const ParquetUnit& unit, uint64_t row,
                         const ParquetColumn& column);

// --- The source -------------------------------------------------------------

struct ParquetGroups;
// Has the contract of Source::OpenColumns, for a source with these groups and
// options. A column that is an output has the output's values: a float64 is
// rounded.
absl::StatusOr<std::unique_ptr<StoredColumns>> OpenParquetColumns(
    const ParquetGroups& groups, const ParquetOptions& options,
    std::span<const std::string> names, const ParquetLibrary& library,
    const SourceLimits& limits);

// Have the contracts of SourceFormat. kNotFound: no rows, or no such column.
absl::StatusOr<BuiltIndex> BuildParquetIndex(const Node& reader,
                                             const SourceLimits& limits);
absl::StatusOr<std::unique_ptr<Source>> OpenParquet(const Node& reader,
                                                    std::string_view blob,
                                                    const SourceLimits& limits);

}  // namespace leat::worker
