// SPDX-License-Identifier: Apache-2.0
//
// Columns: where the values of a condition's columns come from, for the samples
// of a dataset.
//
//   name           the record's key in its archive; or its file's place, below
//                  the reader's folder
//   bytes          the record's size, if the index has it
//   label          a class, if the reader has classes
//   width, height  of the image, as it is shown: from the index or its header
//   OUTPUT         a reader's output of one number, or of bytes, which are text
//   length(OUTPUT) the first axis of an output, or its bytes
//   length         the same of a reader with one output that has no name, if
//                  the index has it
//
// Columns that the index does not hold are read from the records. A value that
// a record does not have, or a record that cannot be decoded, is nothing.
//
// Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/selection/condition.h"
#include "core/tensor/image_size.h"
#include "worker/source/source.h"

namespace leat::worker {

// Reads the size of an encoded image, as it is shown, from its header.
using ImageSizeOf =
    absl::StatusOr<ImageSize> (*)(std::span<const std::byte> file);

// The dataset whose columns are bound. All outlive the Columns.
struct ColumnSource {
  const Node& reader;
  std::span<const ValueType> types;  // of the reader's outputs
  const Source& source;
  ImageSizeOf image_size;
};

class Columns {
 public:
  // kInvalidArgument: an unknown column (says which there are, and the nearest),
  // or one that is compared with values of another kind.
  static absl::StatusOr<Columns> Bind(const Condition& condition,
                                      const ColumnSource& from);

  // True if the records have to be read.
  bool reads_records() const { return reads_records_; }
  // Sets holds[i] to whether the condition holds for samples[i]. Reads the
  // records together. Errors: storage's, with the record's name.
  absl::Status Evaluate(std::span<const uint64_t> samples,
                        std::span<uint8_t> holds) const;

 private:
  enum class Kind : uint8_t {
    kName,
    kBytes,
    kIndexed,
    kNumber,
    kText,
    kLength,
    kWidth,
    kHeight
  };
  struct Column {
    Kind kind = Kind::kName;
    std::string name;   // of kIndexed
    size_t output = 0;  // of the reader
  };
  struct Record;

  Columns(const Condition& condition, const ColumnSource& from);

  // Returns nullopt if there is no such column.
  std::optional<Column> Find(const ColumnName& name) const;
  absl::Status CheckUse(const ColumnName& name, const Column& column,
                        Condition::Use use) const;
  absl::Status Unknown(const ColumnName& name) const;
  std::vector<std::string> Known() const;
  bool HasIndexed(std::string_view column) const;
  absl::StatusOr<ColumnValue> ValueOf(const Column& column, uint64_t sample,
                                      Record* record) const;
  ColumnValue OfOutput(const Column& column, const StoredSample& stored) const;

  const Condition condition_;
  const ColumnSource from_;
  const std::string folder_;                // with a slash at the end
  const std::vector<std::string> outputs_;  // their names
  std::vector<Column> columns_;             // as the condition's
  bool reads_records_ = false;
  size_t image_ = 0;  // the output of encoded images; outputs_.size(): none
};

}  // namespace leat::worker
