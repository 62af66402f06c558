// SPDX-License-Identifier: Apache-2.0
//
// The oracle's selections: it reads all records, one after the other.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <fstream>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/plan/arrangement.h"
#include "core/plan/selection.h"
#include "core/selection/condition.h"
#include "core/status.h"
#include "worker/image/jpeg/decode/decoder.h"
#include "worker/source/source.h"

namespace leat::worker {

// The records that a selection takes, by the plain list of their numbers.
class SelectedSource final : public FormatSource {
 public:
  SelectedSource(std::unique_ptr<Source> all, std::vector<uint64_t> chosen)
      : all_(std::move(all)), chosen_(std::move(chosen)) {}

  uint64_t num_samples() const override { return chosen_.size(); }
  uint64_t RecordOf(uint64_t sample) const override {
    return all_->RecordOf(chosen_[sample]);
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return all_->Read(chosen_[sample]);
  }
  const Digest& fingerprint() const override { return all_->fingerprint(); }
  std::string Describe(uint64_t sample) const override {
    return all_->Describe(chosen_[sample]);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return all_->Locate(chosen_[sample]);
  }

 private:
  const std::unique_ptr<Source> all_;
  const std::vector<uint64_t> chosen_;
};

// Returns the elements of a local .npy file of version 1, of 8 bytes each.
template <class T>
std::vector<T> ElementsOf(std::string_view uri) {
  if (uri.starts_with("file://")) uri.remove_prefix(7);
  std::ifstream file{std::string(uri), std::ios::binary};
  const std::string bytes{std::istreambuf_iterator<char>(file),
                          std::istreambuf_iterator<char>()};
  const size_t header = 10 + static_cast<uint8_t>(bytes[8]) +
                        256 * static_cast<uint8_t>(bytes[9]);
  std::vector<T> numbers((bytes.size() - header) / 8);
  std::memcpy(numbers.data(), bytes.data() + header, 8 * numbers.size());
  return numbers;
}

inline std::vector<uint64_t> ChosenBy(const Arrangement& arrangement,
                                      uint64_t samples) {
  const Numbers& numbers = arrangement.samples;
  if (!numbers.list.empty()) return numbers.list;
  if (!numbers.uri.empty()) return ElementsOf<uint64_t>(numbers.uri);
  std::vector<uint64_t> chosen;
  for (uint64_t sample = 0; sample < samples; ++sample)
    if (numbers.step == 0 || (sample >= numbers.begin && sample < numbers.end &&
                              (sample - numbers.begin) % numbers.step == 0))
      chosen.push_back(sample);
  return chosen;
}

// Returns the value of a column of an image folder: of its record, and of
// nothing that a listing knows.
inline ColumnValue ValueOf(const std::string& column,
                           const StoredSample& stored, std::string_view name) {
  const std::span<const std::byte> file = stored.fields[0].bytes;
  if (column == "name") return name;
  if (column == "bytes") return static_cast<int64_t>(file.size());
  if (column == "length") return stored.fields[0].shape[0];
  if (column == "label") {
    int32_t label = 0;
    std::memcpy(&label, stored.fields[1].bytes.data(), sizeof label);
    return int64_t{label};
  }
  JpegDecoder decoder{ImageLimits{}};
  if (!decoder.Open(file).ok()) return {};
  const ImageSize size = decoder.header().size;
  const bool turned = decoder.header().orientation >= 5;
  return (column == "width") != turned ? size.width : size.height;
}

// A column of Parquet, which is read alone, by a reader of its own.
class ParquetColumnByHand {
 public:
  // Tries which type the reader takes for the column.
  static absl::StatusOr<ParquetColumnByHand> Of(Node reader,
                                                const std::string& column) {
    absl::Status refused;
    for (const char* type : {"int64", "float32", "uint8[?]"}) {
      reader.args["columns"] = std::vector<std::string>{column};
      reader.args["types"] = std::vector<std::string>{type};
      const absl::StatusOr<BuiltIndex> index =
          BuildIndex(reader, SourceLimits{});
      refused = index.status();
      if (!index.ok()) continue;
      ParquetColumnByHand made;
      made.type_ = type;
      ASSIGN_OR_RETURN(made.source_,
                       OpenSource(reader, index->blob, SourceLimits{}));
      return made;
    }
    return refused;
  }

  // Nothing: null.
  ColumnValue At(uint64_t row) {
    const auto stored = source_->Read(row);
    if (!stored.ok()) return {};
    const std::span<const std::byte> bytes = stored->fields[0].bytes;
    if (type_ == "uint8[?]") {
      text_.assign(reinterpret_cast<const char*>(bytes.data()), bytes.size());
      return std::string_view(text_);
    }
    if (type_ == "int64") return NumberOf<int64_t>(bytes);
    return double{NumberOf<float>(bytes)};
  }

 private:
  template <class T>
  static T NumberOf(std::span<const std::byte> bytes) {
    T number;
    std::memcpy(&number, bytes.data(), sizeof number);
    return number;
  }

  std::string_view type_;
  std::unique_ptr<Source> source_;
  std::string text_;  // of the row that was read last
};

inline absl::StatusOr<std::vector<uint64_t>> RowsWhere(
    const Condition& condition, const Node& reader,
    const std::vector<uint64_t>& samples) {
  std::vector<ParquetColumnByHand> columns;
  for (const ColumnName& column : condition.columns()) {
    ASSIGN_OR_RETURN(columns.emplace_back(),
                     ParquetColumnByHand::Of(reader, column.name));
  }
  std::vector<uint64_t> chosen;
  for (const uint64_t sample : samples) {
    std::vector<ColumnValue> values;
    for (ParquetColumnByHand& column : columns)
      values.push_back(column.At(sample));
    if (condition.Holds(values)) chosen.push_back(sample);
  }
  return chosen;
}

// Reads all records, one after the other.
inline absl::StatusOr<std::vector<uint64_t>> ThoseWhere(
    const std::string& where, const Node& reader, const Source& source,
    const std::vector<uint64_t>& samples) {
  ASSIGN_OR_RETURN(const Condition condition, Condition::Parse(where));
  if (reader.op == "readers.parquet")
    return RowsWhere(condition, reader, samples);
  const std::string root = RootOf(reader);
  std::vector<uint64_t> chosen;
  for (const uint64_t sample : samples) {
    ASSIGN_OR_RETURN(const StoredSample stored, source.Read(sample));
    const std::string name = source.Describe(sample).substr(root.size() + 1);
    std::vector<ColumnValue> values;
    for (const ColumnName& column : condition.columns())
      values.push_back(ValueOf(column.name, stored, name));
    if (condition.Holds(values)) chosen.push_back(sample);
  }
  return chosen;
}

// Samples group by group.
struct GroupedSamples {
  std::vector<uint64_t> samples;
  std::vector<Group> groups;
};

// A class, a value of a column, or a weight; groups stand in their order.
using GroupMark = std::pair<double, std::string>;

inline double TenBitsOf(double weight) {
  int exponent = 0;
  const double half_to_one = std::frexp(weight, &exponent);
  return std::ldexp(std::floor(half_to_one * 1024 + 0.5), exponent - 10);
}

// Returns the marks of all samples of an image folder, or of rows of Parquet
// that all have a value.
inline absl::StatusOr<std::vector<GroupMark>> MarksOf(
    const Arrangement& arrangement, const Node& reader, const Source& source,
    const std::vector<Group>& classes) {
  std::vector<GroupMark> marks;
  if (arrangement.by_class) {
    for (size_t i = 0; i < classes.size(); ++i)
      marks.resize(marks.size() + classes[i].samples, {i, ""});
    return marks;
  }
  if (IsSet(arrangement.weights)) {
    const SampleWeights& weights = arrangement.weights;
    for (const double weight :
         weights.uri.empty() ? weights.list : ElementsOf<double>(weights.uri))
      marks.emplace_back(TenBitsOf(weight), "");
    return marks;
  }
  std::optional<ParquetColumnByHand> column;
  if (reader.op == "readers.parquet") {
    ASSIGN_OR_RETURN(column, ParquetColumnByHand::Of(reader, arrangement.by));
  }
  const size_t root = RootOf(reader).size() + 1;
  for (uint64_t sample = 0; sample < source.num_samples(); ++sample) {
    ASSIGN_OR_RETURN(const StoredSample stored, source.Read(sample));
    const std::string name = column ? "" : source.Describe(sample).substr(root);
    const ColumnValue value =
        column ? column->At(sample) : ValueOf(arrangement.by, stored, name);
    if (const auto* text = std::get_if<std::string_view>(&value))
      marks.emplace_back(0, *text);
    else
      marks.emplace_back(static_cast<double>(std::get<int64_t>(value)), "");
  }
  return marks;
}

inline absl::StatusOr<GroupedSamples> InGroups(
    const Arrangement& arrangement, const Node& reader, const Source& source,
    const std::vector<Group>& classes, const std::vector<uint64_t>& chosen) {
  ASSIGN_OR_RETURN(const std::vector<GroupMark> marks,
                   MarksOf(arrangement, reader, source, classes));
  std::map<GroupMark, std::vector<uint64_t>> by_mark;
  if (arrangement.by_class)  // also those of which nothing is chosen
    for (size_t i = 0; i < classes.size(); ++i) by_mark[{i, ""}];
  const bool weighed = IsSet(arrangement.weights);
  for (const uint64_t sample : chosen)
    if (!weighed || marks[sample].first > 0)
      by_mark[marks[sample]].push_back(sample);
  GroupedSamples grouped;
  int least = 0;
  if (weighed && !by_mark.empty())
    std::frexp(by_mark.begin()->first.first, &least);
  for (const auto& [mark, samples] : by_mark) {
    const size_t number = grouped.groups.size();
    grouped.groups.push_back(
        {.name = arrangement.by_class  ? classes[number].name
                 : mark.second.empty() ? fmt::format("{}", mark.first)
                                       : mark.second,
         .samples = samples.size(),
         .weight =
             weighed ? static_cast<uint64_t>(std::ldexp(mark.first, 10 - least))
                     : 0});
    grouped.samples.insert(grouped.samples.end(), samples.begin(),
                           samples.end());
  }
  return grouped;
}

}  // namespace leat::worker
