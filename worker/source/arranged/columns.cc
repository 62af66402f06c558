// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/columns.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "core/cluster/fault.h"
#include "core/edit_distance.h"
#include "core/status.h"
#include "core/tensor/tensor.h"
#include "core/utf8.h"
#include "fmt/ranges.h"
#include "worker/source/arranged/element_value.h"

namespace leat::worker {
namespace {

ColumnValue NumberOf(DType dtype, std::span<const std::byte> bytes) {
  if (bytes.size() != SizeOf(dtype)) return {};
  if (const auto whole = WholeNumber(dtype, bytes.data())) return *whole;
  if (const auto number = Fraction(dtype, bytes.data())) return *number;
  return {};
}

bool IsNumber(const ValueType& type) {
  return type.kind == ValueType::Kind::kTensor && type.shape.empty();
}
// Bytes of any number are text, too, as readers call strings "bytes".
bool IsText(const ValueType& type) {
  return type.kind == ValueType::Kind::kEncoded ||
         (type.dtype == DType::kUint8 && type.shape == Shape{-1});
}

}  // namespace

// A record's values, which are read when a column first wants them.
struct Columns::Record {
  const absl::StatusOr<StoredSample>* stored = nullptr;
  std::optional<RecordPlace> place;
  std::string name;
  std::optional<absl::StatusOr<ImageSize>> size;
  std::vector<ColumnValue> columns;  // stored ones
  std::vector<std::shared_ptr<const void>> owners;
};

Columns::Columns(std::string_view field, std::optional<Condition> condition,
                 const ColumnSource& from)
    : field_(field),
      condition_(std::move(condition)),
      from_(from),
      names_(from.reader),
      outputs_(OutputNames(from.reader, from.types.size())) {
  image_ = static_cast<size_t>(std::ranges::find(from.types,
                                                 ValueType::Kind::kEncoded,
                                                 &ValueType::kind) -
                               from.types.begin());
}

absl::StatusOr<Columns> Columns::Bind(const Condition& condition,
                                      const ColumnSource& from) {
  Columns bound("where", condition, from);
  for (size_t i = 0; i < condition.columns().size(); ++i)
    RETURN_IF_ERROR(bound.Add(condition.columns()[i], condition.uses()[i]));
  RETURN_IF_ERROR(bound.OpenStored());
  return bound;
}

absl::StatusOr<Columns> Columns::BindOne(std::string_view field,
                                         const ColumnName& name,
                                         const ColumnSource& from) {
  Columns bound(field, std::nullopt, from);
  RETURN_IF_ERROR(bound.Add(name, {}));
  RETURN_IF_ERROR(bound.OpenStored());
  return bound;
}

absl::Status Columns::Add(const ColumnName& name, const Condition::Use& use) {
  std::string why;
  std::optional<Column> column;
  ASSIGN_OR_RETURN(const bool indexed, HasIndexed(name.name));
  if (name.length || !indexed) {
    ASSIGN_OR_RETURN(column, FindStored(name, &why));
  }
  if (!column) {
    ASSIGN_OR_RETURN(column, Find(name));
  }
  if (!column) return Unknown(name, why);
  RETURN_IF_ERROR(CheckUse(name, *column, use));
  reads_records_ = reads_records_ || column->kind >= Kind::kNumber;
  columns_.push_back(*std::move(column));
  return absl::OkStatus();
}

absl::StatusOr<std::optional<Columns::Column>> Columns::FindStored(
    const ColumnName& name, std::string* why) const {
  const auto opened = from_.source.OpenColumns({&name.name, 1});
  if (opened.ok()) {
    if (!name.length)
      return Column{
          .kind = (*opened)->IsText(0) ? Kind::kStoredText : Kind::kStored,
          .name = name.name};
    if ((*opened)->IsText(0))
      return Column{.kind = Kind::kStoredLength, .name = name.name};
    return std::nullopt;
  }
  if (!absl::IsUnimplemented(opened.status()) &&
      !absl::IsInvalidArgument(opened.status()))
    return opened.status();
  if (absl::IsInvalidArgument(opened.status())) *why = Message(opened.status());
  return std::nullopt;
}

// All of them are opened together, so that a row group is looked at once.
absl::Status Columns::OpenStored() {
  std::vector<std::string> names;
  for (Column& column : columns_) {
    if (!IsStored(column.kind)) continue;
    column.output = names.size();
    names.push_back(column.name);
  }
  num_stored_ = names.size();
  if (names.empty()) return absl::OkStatus();
  ASSIGN_OR_RETURN(stored_, from_.source.OpenColumns(names));
  return absl::OkStatus();
}

absl::StatusOr<bool> Columns::HasIndexed(std::string_view column) const {
  const absl::Status status = from_.source.IndexedColumn(column, 0).status();
  if (status.ok() || absl::IsUnimplemented(status)) return status.ok();
  return status;
}

absl::StatusOr<bool> Columns::HasPlacesWithBytes() const {
  const absl::StatusOr<RecordPlace> place = from_.source.Locate(0);
  if (place.ok()) return place->bytes.has_value();
  if (absl::IsFailedPrecondition(place.status())) return false;  // no storage
  return place.status();
}

absl::StatusOr<std::optional<Columns::Column>> Columns::Find(
    const ColumnName& name) const {
  const auto found = std::ranges::find(outputs_, name.name);
  const auto output = static_cast<size_t>(found - outputs_.begin());
  const bool is_output = output < outputs_.size() && !name.name.empty();
  if (name.length) {
    if (is_output && !IsNumber(from_.types[output]))
      return Column{.kind = Kind::kLength, .name = {}, .output = output};
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(const bool indexed, HasIndexed(name.name));
  if (indexed) return Column{.kind = Kind::kIndexed, .name = name.name};
  if (name.name == "length" && !is_output && from_.types.size() == 1 &&
      !IsNumber(from_.types[0]))
    return Column{.kind = Kind::kLength, .name = {}, .output = 0};
  if (is_output && IsNumber(from_.types[output]))
    return Column{.kind = Kind::kNumber, .name = {}, .output = output};
  if (is_output && IsText(from_.types[output]))
    return Column{.kind = Kind::kText, .name = {}, .output = output};
  if (name.name == "name") return Column{.kind = Kind::kName, .name = {}};
  if (name.name == "bytes") {
    ASSIGN_OR_RETURN(const bool known, HasPlacesWithBytes());
    if (known) return Column{.kind = Kind::kBytes, .name = {}};
  }
  if (image_ < outputs_.size() && from_.image_size != nullptr) {
    if (name.name == "width")
      return Column{.kind = Kind::kWidth, .name = {}, .output = image_};
    if (name.name == "height")
      return Column{.kind = Kind::kHeight, .name = {}, .output = image_};
  }
  return std::nullopt;
}

std::vector<std::string> Columns::Known() const {
  std::vector<std::string> known;
  for (const char* name :
       {"name", "bytes", "length", "label", "objects", "width", "height"})
    if (std::ranges::find(outputs_, name) == outputs_.end() &&
        Find({.name = name, .length = false}).value_or(std::nullopt))
      known.emplace_back(name);
  for (size_t i = 0; i < outputs_.size(); ++i) {
    if (outputs_[i].empty()) continue;
    const ColumnName name{.name = outputs_[i], .length = false};
    if (IsNumber(from_.types[i]) || IsText(from_.types[i]))
      known.push_back(TextOf(name));
    if (!IsNumber(from_.types[i]))
      known.push_back(TextOf({.name = outputs_[i], .length = true}));
  }
  return known;
}

absl::Status Columns::Unknown(const ColumnName& name,
                              const std::string& why) const {
  constexpr size_t kMostTypos = 2;
  const std::vector<std::string> known = Known();
  const std::string text = TextOf(name);
  const auto nearest = NearestWord(known, text);
  const bool near =
      nearest != known.end() && EditDistance(*nearest, text) <= kMostTypos;
  const bool array =
      !name.length && std::ranges::find(outputs_, name.name) != outputs_.end();
  const std::string_view word =
      near ? std::string_view(*nearest) : condition::MeantAt(text, 0);
  const std::string meant =
      !word.empty() ? fmt::format(", did you mean {}?", word)
      : name.length || field_ != "where" || !why.empty()
          ? ""
          : fmt::format(" (a text is between quotes: \"{}\")", name.name);
  return InvalidArgument(
      "{}: {}; the columns of {} are {}{}", field_,
      array ? fmt::format("{} is an array, want one number or text", text)
            : fmt::format("unknown column {}{}", text, meant),
      from_.reader.op, fmt::join(known, ", "),
      why.empty() ? "" : "; of the files: " + why);
}

absl::Status Columns::CheckUse(const ColumnName& name, const Column& column,
                               const Condition::Use& use) const {
  const bool text = column.kind == Kind::kName || column.kind == Kind::kText ||
                    column.kind == Kind::kStoredText;
  const std::optional<std::string>& wrong = text ? use.number : use.text;
  if (!wrong) return absl::OkStatus();
  const std::string shown = TextOf(name);
  if (text)
    return InvalidArgument(
        "where: column {} is a text, and is compared with the number {}; write "
        "{} == \"{}\"",
        shown, *wrong, shown, *wrong);
  const std::string compared = ToUtf8(std::string_view(*wrong).substr(0, 100));
  const auto same = std::ranges::find(from_.classes, *wrong);
  const std::string meant =
      column.kind == Kind::kIndexed && same != from_.classes.end()
          ? fmt::format("{} == {}, the label of this class", shown,
                        same - from_.classes.begin())
          : "a number without quotes";
  return InvalidArgument(
      "where: column {} is {}, and is compared with the text \"{}\"; write {}",
      shown, TypeOf(column), compared, meant);
}

std::string Columns::TypeOf(const Column& column) const {
  if (column.kind == Kind::kNumber)
    return fmt::format("of {}", Name(from_.types[column.output].dtype));
  return column.kind == Kind::kStored ? "a number" : "an integer";
}

ColumnValue Columns::OfOutput(const Column& column,
                              const StoredSample& stored) const {
  if (column.output >= stored.fields.size()) return {};
  const StoredField& field = stored.fields[column.output];
  const ValueType& type = from_.types[column.output];
  if (column.kind == Kind::kNumber) return NumberOf(type.dtype, field.bytes);
  if (column.kind == Kind::kText)
    return std::string_view(reinterpret_cast<const char*>(field.bytes.data()),
                            field.bytes.size());
  if (type.kind == ValueType::Kind::kEncoded)
    return static_cast<int64_t>(field.bytes.size());
  const Shape& shape = field.shape.empty() ? type.shape : field.shape;
  if (shape.empty()) return {};
  return int64_t{shape[0]};
}

absl::StatusOr<ColumnValue> Columns::ValueOf(const Column& column,
                                             uint64_t sample,
                                             Record* record) const {
  if (column.kind == Kind::kIndexed) {
    ASSIGN_OR_RETURN(const int64_t value,
                     from_.source.IndexedColumn(column.name, sample));
    return value;
  }
  if (column.kind == Kind::kName || column.kind == Kind::kBytes) {
    if (!record->place) {
      ASSIGN_OR_RETURN(record->place, from_.source.Locate(sample));
    }
    if (column.kind == Kind::kBytes)
      return record->place->bytes
                 ? ColumnValue(static_cast<int64_t>(*record->place->bytes))
                 : ColumnValue();
    record->name = names_.NameOf(*record->place);
    return std::string_view(record->name);
  }
  if (IsStored(column.kind)) {
    const ColumnValue& value = record->columns[column.output];
    const auto* text = std::get_if<std::string_view>(&value);
    if (column.kind != Kind::kStoredLength) return value;
    return text == nullptr ? ColumnValue()
                           : ColumnValue(static_cast<int64_t>(text->size()));
  }
  const absl::StatusOr<StoredSample>& stored = *record->stored;
  if (!stored.ok()) return ColumnValue();
  if (column.kind != Kind::kWidth && column.kind != Kind::kHeight)
    return OfOutput(column, *stored);
  if (column.output >= stored->fields.size()) return ColumnValue();
  if (!record->size)
    record->size = from_.image_size(stored->fields[column.output].bytes);
  if (!record->size->ok()) return ColumnValue();
  const ImageSize& size = **record->size;
  return int64_t{column.kind == Kind::kWidth ? size.width : size.height};
}

// Only the record itself may be at fault: then it has no values.
bool Columns::EndsListing(const absl::Status& status) {
  const std::optional<Fault> fault = FaultOf(status);
  return !status.ok() && fault && *fault != Fault::kSample;
}

absl::StatusOr<std::vector<size_t>> Columns::Undecided(
    std::span<const uint64_t> samples, std::span<uint8_t> holds) const {
  std::vector<size_t> undecided;
  uint64_t begin = 0, end = 0;  // of the samples that `outcomes` are of
  Outcomes outcomes;
  for (size_t i = 0; i < samples.size(); ++i) {
    if (stored_ != nullptr && (samples[i] < begin || samples[i] >= end)) {
      begin = samples[i];
      end = begin + 1;
      outcomes = {};
      const auto run = stored_->RunAt(begin);
      if (EndsListing(run.status()))
        return Annotate(run.status(), from_.source.Describe(begin));
      if (run.ok()) {
        end = run->end;
        std::vector<ColumnRange> ranges(columns_.size());
        for (size_t c = 0; c < columns_.size(); ++c)
          if (IsStored(columns_[c].kind) &&
              columns_[c].kind != Kind::kStoredLength)
            ranges[c] = run->ranges[columns_[c].output];
        outcomes = condition_->Within(ranges);
      }
    }
    holds[i] = outcomes.may_hold ? 1 : 0;
    if (outcomes.may_hold && outcomes.may_fail) undecided.push_back(i);
  }
  return undecided;
}

absl::Status Columns::ReadStored(uint64_t sample, Record* record) const {
  if (stored_ == nullptr) return absl::OkStatus();
  record->columns.resize(num_stored_);
  const absl::Status read =
      stored_->Read(sample, record->columns, &record->owners);
  if (EndsListing(read)) return Annotate(read, from_.source.Describe(sample));
  if (!read.ok()) std::ranges::fill(record->columns, ColumnValue());
  return absl::OkStatus();
}

absl::Status Columns::Evaluate(std::span<const uint64_t> samples,
                               std::span<uint8_t> holds) const {
  ASSIGN_OR_RETURN(const std::vector<size_t> undecided,
                   Undecided(samples, holds));
  std::vector<uint64_t> wanted;
  for (const size_t i : undecided) wanted.push_back(samples[i]);
  return ForEachRecord(wanted,
                       [&](size_t i, std::span<const ColumnValue> values) {
                         holds[undecided[i]] = condition_->Holds(values);
                         return absl::OkStatus();
                       });
}

absl::Status Columns::ForEachValue(
    std::span<const uint64_t> samples,
    const std::function<absl::Status(size_t, const ColumnValue&)>& use) const {
  return ForEachRecord(samples,
                       [&](size_t i, std::span<const ColumnValue> values) {
                         return use(i, values[0]);
                       });
}

absl::Status Columns::ForEachRecord(
    std::span<const uint64_t> samples,
    const std::function<absl::Status(size_t, std::span<const ColumnValue>)>&
        use) const {
  std::vector<absl::StatusOr<StoredSample>> stored;
  if (reads_records_) stored = from_.source.ReadMany(samples);
  std::vector<ColumnValue> values(columns_.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    Record record;
    if (reads_records_) {
      record.stored = &stored[i];
      if (EndsListing(stored[i].status()))
        return Annotate(stored[i].status(), from_.source.Describe(samples[i]));
    }
    RETURN_IF_ERROR(ReadStored(samples[i], &record));
    for (size_t c = 0; c < columns_.size(); ++c) {
      ASSIGN_OR_RETURN(values[c], ValueOf(columns_[c], samples[i], &record));
    }
    RETURN_IF_ERROR(use(i, values));
  }
  return absl::OkStatus();
}

}  // namespace leat::worker
