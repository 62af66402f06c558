// SPDX-License-Identifier: Apache-2.0
//
// Columns: where the values of a condition's columns come from, or of the column
// whose values are groups, for the samples of a dataset.
//
//   name           the record's key in its archive; or its file's place, below
//                  the reader's folder
//   bytes          the record's size, if the index has it
//   label          a class, if the reader has classes
//   objects        how many of a COCO file's objects are in the image
//   width, height  of the image, as it is shown: from the index or its header
//   OUTPUT         a reader's output of one number, or of bytes, which are text
//   COLUMN         of a format with columns: one of one number or text, whether
//                  or not it is an output; comes before all others but label
//   length(OUTPUT) the first axis of an output, or its bytes; of a column its
//                  bytes
//   length         the same of a reader with one output that has no name, if
//                  the index has it
//
// Columns that the index does not hold are read from the records; stored columns
// without the others, and only where their statistics do not decide. A value
// that a record does not have, or a record that cannot be decoded, is nothing.
//
// Immutable; thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "core/pipeline/graph.h"
#include "core/pipeline/operators.h"
#include "core/selection/condition.h"
#include "core/tensor/image_size.h"
#include "worker/source/record_names.h"
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
  std::span<const std::string> classes{};  // their names, by label
};

class Columns {
 public:
  // kInvalidArgument: a column is unknown (the text lists the known ones), or
  // compared with values of another type (the text says how to write it).
  // Others: the index cannot be looked at now.
  static absl::StatusOr<Columns> Bind(const Condition& condition,
                                      const ColumnSource& from);

  // Binds one column, which `field` names. Then ForEachValue is called, and
  // Evaluate is not. Errors: as Bind.
  static absl::StatusOr<Columns> BindOne(std::string_view field,
                                         const ColumnName& name,
                                         const ColumnSource& from);

  // True if storage has to be read.
  bool reads_storage() const { return reads_records_ || stored_ != nullptr; }
  // Sets holds[i] to whether the condition holds for samples[i]. Reads the
  // records together. Errors: storage's, with the record's name.
  absl::Status Evaluate(std::span<const uint64_t> samples,
                        std::span<uint8_t> holds) const;
  // Gives `use` the value of the column for each sample, by its place in
  // `samples`, in their order, and ends with its error. Reads and errors: as
  // Evaluate.
  absl::Status ForEachValue(
      std::span<const uint64_t> samples,
      const std::function<absl::Status(size_t, const ColumnValue&)>& use) const;

 private:
  enum class Kind : uint8_t {
    kName,
    kBytes,
    kIndexed,
    kStored,  // a number
    kStoredText,
    kStoredLength,
    kNumber,
    kText,
    kLength,
    kWidth,
    kHeight
  };
  struct Column {
    Kind kind = Kind::kName;
    std::string name;   // of kIndexed, kStored
    size_t output = 0;  // of the reader; of kStored: in stored_
  };
  struct Record;

  static bool IsStored(Kind kind) {
    return kind >= Kind::kStored && kind <= Kind::kStoredLength;
  }
  static bool EndsListing(const absl::Status& status);

  Columns(std::string_view field, std::optional<Condition> condition,
          const ColumnSource& from);

  absl::Status Add(const ColumnName& name, const Condition::Use& use);
  // Returns nullopt if there is no such column. Errors: the index's.
  absl::StatusOr<std::optional<Column>> Find(const ColumnName& name) const;
  absl::StatusOr<bool> HasIndexed(std::string_view column) const;
  absl::StatusOr<bool> HasPlacesWithBytes() const;
  // Does the same for a column of the stored records; `why` says why there is
  // none. Errors: storage's.
  absl::StatusOr<std::optional<Column>> FindStored(const ColumnName& name,
                                                   std::string* why) const;
  absl::Status OpenStored();
  absl::Status CheckUse(const ColumnName& name, const Column& column,
                        const Condition::Use& use) const;
  std::string TypeOf(const Column& column) const;  // of numbers
  absl::Status Unknown(const ColumnName& name, const std::string& why) const;
  std::vector<std::string> Known() const;
  absl::StatusOr<ColumnValue> ValueOf(const Column& column, uint64_t sample,
                                      Record* record) const;
  ColumnValue OfOutput(const Column& column, const StoredSample& stored) const;
  // Decides for the samples that ranges are enough for. Returns the places of
  // the others.
  absl::StatusOr<std::vector<size_t>> Undecided(
      std::span<const uint64_t> samples, std::span<uint8_t> holds) const;
  absl::Status ReadStored(uint64_t sample, Record* record) const;
  // Gives `use` the values of all columns, as ForEachValue does.
  absl::Status ForEachRecord(
      std::span<const uint64_t> samples,
      const std::function<absl::Status(size_t, std::span<const ColumnValue>)>&
          use) const;

  const std::string field_;  // "where" or "by", for messages
  const std::optional<Condition> condition_;
  const ColumnSource from_;
  const RecordNames names_;
  const std::vector<std::string> outputs_;  // their names
  std::vector<Column> columns_;             // as the condition's
  bool reads_records_ = false;
  std::shared_ptr<const StoredColumns> stored_;  // nullptr: none is named
  size_t num_stored_ = 0;
  size_t image_ = 0;  // the output of encoded images; outputs_.size(): none
};

}  // namespace leat::worker
