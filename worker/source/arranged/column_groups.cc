// SPDX-License-Identifier: Apache-2.0
//
// The trail has for each sample a byte, and what follows it:
//
//   0    no value
//   1    a varint: the bits of a whole number
//   2    a varint: how many bytes a text has; and these
#include "worker/source/arranged/column_groups.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/status.h"
#include "core/utf8.h"
#include "worker/source/each_file.h"
#include "worker/source/varint.h"

namespace leat::worker {
namespace {

constexpr size_t kValuesTogether = 64;  // that a thread reads

enum class Stored : uint8_t { kNone, kNumber, kText };

bool IsNothing(const ColumnValue& value) {
  const auto* number = std::get_if<double>(&value);
  return std::holds_alternative<std::monostate>(value) ||
         (number != nullptr && std::isnan(*number));
}

void AppendKey(const std::optional<GroupKey>& key, std::string* bytes) {
  if (!key) {
    *bytes += static_cast<char>(Stored::kNone);
  } else if (const auto* number = std::get_if<int64_t>(&*key)) {
    *bytes += static_cast<char>(Stored::kNumber);
    AppendVarint(static_cast<uint64_t>(*number), bytes);
  } else {
    const std::string& text = std::get<std::string>(*key);
    *bytes += static_cast<char>(Stored::kText);
    AppendVarint(text.size(), bytes);
    *bytes += text;
  }
}

// Returns false if the bytes are malformed.
bool TakeKey(std::string_view* bytes, std::optional<GroupKey>* key) {
  if (bytes->empty()) return false;
  const auto kind = static_cast<Stored>(bytes->front());
  bytes->remove_prefix(1);
  if (kind == Stored::kNone) return true;
  uint64_t number = 0;
  if (kind > Stored::kText || !TakeVarint(bytes, &number)) return false;
  if (kind == Stored::kNumber) {
    *key = static_cast<int64_t>(number);
    return true;
  }
  if (number > bytes->size() || !IsUtf8(bytes->substr(0, number))) return false;
  *key = std::string(bytes->substr(0, number));
  bytes->remove_prefix(number);
  return true;
}

}  // namespace

ColumnGroups::ColumnGroups(std::string by, std::vector<ValueType> types,
                           const GroupFrom& from)
    : by_(std::move(by)),
      types_(std::move(types)),
      source_(from.columns.source),
      limits_(from.limits),
      trail_(from.trail) {}

absl::StatusOr<std::unique_ptr<ColumnGroups>> ColumnGroups::Create(
    std::string_view by, const GroupFrom& from) {
  ASSIGN_OR_RETURN(const ColumnName name, ParseColumn(by, "by"));
  const std::span<const ValueType> types = from.columns.types;
  std::unique_ptr<ColumnGroups> groups(
      new ColumnGroups(TextOf(name), {types.begin(), types.end()}, from));
  ASSIGN_OR_RETURN(Columns column,
                   Columns::BindOne("by", name,
                                    {.reader = from.columns.reader,
                                     .types = groups->types_,
                                     .source = groups->source_,
                                     .image_size = from.columns.image_size}));
  groups->column_.emplace(std::move(column));
  return groups;
}

absl::StatusOr<GroupKey> ColumnGroups::KeyOf(const ColumnValue& value,
                                             uint64_t sample) const {
  if (const auto* whole = std::get_if<int64_t>(&value)) return *whole;
  if (const auto* fraction = std::get_if<double>(&value))
    return InvalidArgument(
        "by: column {} of {} is {}; want whole numbers or "
        "texts",
        by_, source_.Describe(sample), *fraction);
  const auto text = std::get<std::string_view>(value);
  if (text.size() > kMaxGroupNameBytes)
    return InvalidArgument(
        "by: column {} of {} is a text of {} bytes; want at most {}", by_,
        source_.Describe(sample), text.size(), kMaxGroupNameBytes);
  // Names of groups travel as texts.
  return ToUtf8(text);
}

absl::StatusOr<ColumnGroups::Keys> ColumnGroups::Evaluate(
    std::span<const uint64_t> samples) const {
  Keys keys(samples.size());
  RETURN_IF_ERROR(ForEachIndex(
      (samples.size() + kValuesTogether - 1) / kValuesTogether,
      limits_.listing_threads, limits_.cancelled, [&](size_t part) {
        const size_t first = part * kValuesTogether;
        const std::span<const uint64_t> some = samples.subspan(
            first, std::min(kValuesTogether, samples.size() - first));
        return column_->ForEachValue(
            some, [&](size_t i, const ColumnValue& value) -> absl::Status {
              if (IsNothing(value)) return absl::OkStatus();
              ASSIGN_OR_RETURN(keys[first + i], KeyOf(value, some[i]));
              return absl::OkStatus();
            });
      }));
  return keys;
}

absl::StatusOr<std::vector<std::optional<GroupKey>>> ColumnGroups::KeysOf(
    std::span<const uint64_t> samples) {
  ASSIGN_OR_RETURN(Keys keys, TakeOrEvaluate(samples));
  for (size_t i = 0; i < samples.size(); ++i)
    if (!keys[i])
      passed_over_.Add("samples without a " + What(),
                       source_.Describe(samples[i]));
  return keys;
}

absl::StatusOr<ColumnGroups::Keys> ColumnGroups::TakeOrEvaluate(
    std::span<const uint64_t> samples) {
  if (!column_->reads_storage()) return Evaluate(samples);
  ASSIGN_OR_RETURN(const std::optional<std::string> taken,
                   trail_->Take(samples));
  if (taken) {
    Keys keys(samples.size());
    std::string_view rest = *taken;
    if (std::ranges::all_of(keys,
                            [&](std::optional<GroupKey>& key) {
                              return TakeKey(&rest, &key);
                            }) &&
        rest.empty())
      return keys;
    trail_->Refuse();
  }
  ASSIGN_OR_RETURN(Keys keys, Evaluate(samples));
  std::string found;
  for (const std::optional<GroupKey>& key : keys) AppendKey(key, &found);
  trail_->Add(samples, std::move(found));
  return keys;
}

absl::StatusOr<std::vector<Group>> ColumnGroups::Named(
    const GroupSizes& sizes) const {
  std::vector<Group> named;
  for (const auto& [key, samples] : sizes) {
    const auto* number = std::get_if<int64_t>(&key);
    named.push_back({.name = number != nullptr ? fmt::format("{}", *number)
                                               : std::get<std::string>(key),
                     .samples = samples});
  }
  return named;
}

}  // namespace leat::worker
