// SPDX-License-Identifier: Apache-2.0
//
// Columns that a condition names: their pages are read alone, whatever the
// reader's outputs are, and a row group is not read if its statistics say
// enough.
#include <algorithm>
#include <utility>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/source/parquet/pages.h"
#include "worker/source/parquet/parquet.h"

namespace leat::worker {
namespace {

absl::Status CheckStoredColumn(const ParquetColumn& column) {
  if (column.lists == 0 && column.element != ParquetElement::kOther)
    return absl::OkStatus();
  return InvalidArgument("column \"{}\" holds {}{}: want one text or number",
                         column.name, column.lists > 0 ? "lists of " : "",
                         column.type);
}

ColumnValue Rounded(const ColumnValue& value) {
  const auto* number = std::get_if<double>(&value);
  return number == nullptr ? value
                           : ColumnValue(double{static_cast<float>(*number)});
}

ColumnValue BoundOf(
    const std::variant<std::monostate, int64_t, double, std::string>& bound) {
  if (const auto* text = std::get_if<std::string>(&bound))
    return std::string_view(*text);
  if (const auto* whole = std::get_if<int64_t>(&bound)) return *whole;
  if (const auto* number = std::get_if<double>(&bound)) return *number;
  return {};
}

class ParquetColumns final : public StoredColumns {
 public:
  ParquetColumns(const ParquetGroups& groups, const ParquetOptions& options,
                 std::span<const std::string> names,
                 const ParquetLibrary& library, const SourceLimits& limits)
      : groups_(groups),
        texts_(names.size()),
        rounded_(names.size()),
        pages_(
            &groups, {names.begin(), names.end()},
            [](size_t, const ParquetColumn& column) {
              return CheckStoredColumn(column);
            },
            library, limits) {
    for (size_t i = 0; i < names.size(); ++i) {
      const auto output = std::ranges::find(options.columns, names[i]);
      rounded_[i] =
          output != options.columns.end() &&
          options.types[static_cast<size_t>(output - options.columns.begin())]
                  .dtype == DType::kFloat32;
    }
  }

  // The first file says whether a column has texts.
  absl::Status Begin() {
    ASSIGN_OR_RETURN(const auto file, pages_.Open(0));
    for (size_t i = 0; i < texts_.size(); ++i)
      texts_[i] = file->footer->columns[file->columns[i]].element ==
                  ParquetElement::kBytes;
    return absl::OkStatus();
  }

  bool IsText(size_t column) const override { return texts_[column]; }

  absl::StatusOr<Run> RunAt(uint64_t sample) const override {
    const size_t group = groups_.GroupOf(sample);
    ASSIGN_OR_RETURN(const auto file, pages_.Open(group));
    const auto known = std::make_shared<std::vector<ParquetStatistics>>();
    Run run{.end = groups_.groups[group].end, .ranges = {}, .owner = known};
    known->reserve(texts_.size());
    for (size_t i = 0; i < texts_.size(); ++i) {
      known->push_back(file->footer->Statistics(groups_.groups[group].ordinal,
                                                file->columns[i]));
      run.ranges.push_back(RangeOf(known->back(), i,
                                   file->footer->columns[file->columns[i]],
                                   run.end - groups_.Begin(group)));
    }
    return run;
  }

  absl::Status Read(
      uint64_t sample, std::span<ColumnValue> values,
      std::vector<std::shared_ptr<const void>>* owners) const override {
    const size_t group = groups_.GroupOf(sample);
    ASSIGN_OR_RETURN(const auto file, pages_.Open(group));
    for (size_t i = 0; i < values.size(); ++i) {
      ASSIGN_OR_RETURN(
          ParquetPages::Place place,
          pages_.Find(*file, group, i, sample - groups_.Begin(group)));
      const ColumnValue value =
          ParquetValue(*place.unit->unit, place.row, *place.column);
      values[i] = rounded_[i] ? Rounded(value) : value;
      // The first file may have numbers, and this one texts.
      if (std::holds_alternative<std::string_view>(value))
        owners->push_back(std::move(place.unit));
    }
    return absl::OkStatus();
  }

 private:
  ColumnRange RangeOf(const ParquetStatistics& known, size_t column,
                      const ParquetColumn& stored, uint64_t rows) const {
    ColumnRange range;
    if (known.nulls) {
      range.may_be_there = *known.nulls < rows;
      // Statistics leave out what is not a number.
      const bool may_be_nan = stored.element == ParquetElement::kFloat16 ||
                              stored.element == ParquetElement::kFloat32 ||
                              stored.element == ParquetElement::kFloat64;
      range.may_be_missing = *known.nulls > 0 || may_be_nan;
    }
    range.least = BoundOf(known.least);
    range.most = BoundOf(known.most);
    if (rounded_[column]) {
      range.least = Rounded(range.least);
      range.most = Rounded(range.most);
    }
    const Ordering ordering = Compare(range.least, range.most);
    if (ordering == Ordering::kGreater || ordering == Ordering::kNone)
      range.least = range.most = {};
    return range;
  }

  const ParquetGroups& groups_;
  std::vector<bool> texts_;
  std::vector<bool> rounded_;
  const ParquetPages pages_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<StoredColumns>> OpenParquetColumns(
    const ParquetGroups& groups, const ParquetOptions& options,
    std::span<const std::string> names, const ParquetLibrary& library,
    const SourceLimits& limits) {
  auto columns =
      std::make_unique<ParquetColumns>(groups, options, names, library, limits);
  const absl::Status begun = columns->Begin();
  // The file has no such column, or one of another kind.
  if (!FaultOf(begun) &&
      (absl::IsNotFound(begun) || absl::IsUnimplemented(begun)))
    return InvalidArgument("{}", Message(begun));
  RETURN_IF_ERROR(begun);
  return columns;
}

}  // namespace leat::worker
