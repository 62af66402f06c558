// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/long_list.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat {
namespace {

constexpr std::string_view kDigestVersion = "leat.list.v1";
constexpr size_t kIntBytes = 8;

std::string_view Name(LongList::Kind kind) {
  return kind == LongList::Kind::kTexts ? "texts" : "numbers";
}

absl::Status CheckBounds(const LongList& list) {
  if (list.kind != LongList::Kind::kTexts && list.kind != LongList::Kind::kInts)
    return InvalidArgument("a list of kind {}: want texts or integers",
                           static_cast<int>(list.kind));
  if (list.count == 0 || list.count > kMaxListEntries)
    return InvalidArgument("{} {}: want 1 to {}", list.count, Name(list.kind),
                           kMaxListEntries);
  if (list.bytes == 0 || list.bytes > kMaxListBytes)
    return InvalidArgument("{} {} of {} bytes: want 1 to {} bytes", list.count,
                           Name(list.kind), list.bytes, kMaxListBytes);
  return absl::OkStatus();
}

Digest DigestOf(const LongList& list) {
  Sha256 hash;
  hash.UpdateField(kDigestVersion)
      .UpdateU64(static_cast<uint64_t>(list.kind))
      .UpdateU64(list.count)
      .UpdateU64(list.bytes);
  for (const Digest& block : list.blocks)
    hash.Update(std::as_bytes(std::span(block)));
  for (const std::string& entry : list.first) hash.UpdateField(entry);
  return hash.Finish();
}

size_t BlocksOf(uint64_t bytes) {
  return static_cast<size_t>((bytes + kListBlockBytes - 1) / kListBlockBytes);
}

int64_t IntAt(std::string_view values, size_t index) {
  uint64_t value = 0;
  for (size_t i = 0; i < kIntBytes; ++i)
    value |= static_cast<uint64_t>(
                 static_cast<uint8_t>(values[index * kIntBytes + i]))
             << (8 * i);
  return static_cast<int64_t>(value);
}

absl::Status CountTexts(std::string_view values, LongList* list) {
  if (values.empty() || values.back() != '\0')
    return InvalidArgument("a list of texts whose last one is cut off");
  for (size_t at = 0; at < values.size();) {
    const std::string_view entry =
        values.substr(at, values.find('\0', at) - at);
    if (entry.size() > kMaxEntryBytes)
      return InvalidArgument("entry {} has {} bytes: want at most {}",
                             list->count, entry.size(), kMaxEntryBytes);
    if (list->first.size() < kShownEntries) list->first.emplace_back(entry);
    ++list->count;
    at += entry.size() + 1;
  }
  return absl::OkStatus();
}

absl::Status CountInts(std::string_view values, LongList* list) {
  if (values.size() % kIntBytes != 0)
    return InvalidArgument("a list of integers whose last one is cut off");
  list->count = values.size() / kIntBytes;
  for (size_t i = 0; i < std::min<uint64_t>(list->count, kShownEntries); ++i)
    list->first.push_back(fmt::format("{}", IntAt(values, i)));
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<LongList> MakeLongList(LongList::Kind kind, std::string values) {
  LongList list;
  list.kind = kind;
  list.bytes = values.size();
  RETURN_IF_ERROR(kind == LongList::Kind::kTexts ? CountTexts(values, &list)
                                                 : CountInts(values, &list));
  RETURN_IF_ERROR(CheckBounds(list));
  list.values = std::make_shared<const std::string>(std::move(values));
  for (size_t i = 0; i < BlocksOf(list.bytes); ++i)
    list.blocks.push_back(HashOf(BlockOf(list, i)));
  list.digest = DigestOf(list);
  return list;
}

absl::StatusOr<LongList> LongListOf(std::span<const std::string> texts) {
  std::string values;
  size_t bytes = 0;
  for (const std::string& text : texts) bytes += text.size() + 1;
  values.reserve(bytes);
  for (const std::string& text : texts) {
    values += text;
    values.push_back('\0');
  }
  return MakeLongList(LongList::Kind::kTexts, std::move(values));
}

absl::StatusOr<LongList> LongListOf(std::span<const int64_t> ints) {
  std::string values;
  values.reserve(ints.size() * kIntBytes);
  for (const int64_t number : ints)
    for (size_t i = 0; i < kIntBytes; ++i)
      values.push_back(
          static_cast<char>(static_cast<uint64_t>(number) >> (8 * i)));
  return MakeLongList(LongList::Kind::kInts, std::move(values));
}

absl::Status CompleteLongList(LongList* list) {
  RETURN_IF_ERROR(CheckBounds(*list));
  const bool fits = list->kind == LongList::Kind::kInts
                        ? list->bytes == list->count * kIntBytes
                        : list->bytes >= list->count;  // a zero byte per entry
  if (!fits || list->blocks.size() != BlocksOf(list->bytes))
    return InvalidArgument("{} {} of {} bytes in {} blocks: these do not fit",
                           list->count, Name(list->kind), list->bytes,
                           list->blocks.size());
  if (list->first.size() != std::min<uint64_t>(list->count, kShownEntries))
    return InvalidArgument(
        "a list of {} {} with {} entries shown: want the first {}", list->count,
        Name(list->kind), list->first.size(), kShownEntries);
  for (const std::string& entry : list->first)
    if (entry.size() > kMaxEntryBytes || entry.find('\0') != std::string::npos)
      return InvalidArgument(
          "an entry of {} bytes: want at most {} and none of them 0",
          entry.size(), kMaxEntryBytes);
  list->digest = DigestOf(*list);
  return absl::OkStatus();
}

std::vector<std::string> TextsOf(const LongList& list) {
  const std::string_view values = *list.values;
  std::vector<std::string> texts;
  texts.reserve(list.count);
  for (size_t at = 0; at < values.size(); at += texts.back().size() + 1)
    texts.emplace_back(values.substr(at, values.find('\0', at) - at));
  return texts;
}

std::vector<int64_t> IntsOf(const LongList& list) {
  std::vector<int64_t> ints(list.count);
  for (size_t i = 0; i < ints.size(); ++i) ints[i] = IntAt(*list.values, i);
  return ints;
}

uint64_t BlockBytes(const LongList& list, size_t block) {
  return std::min(kListBlockBytes, list.bytes - block * kListBlockBytes);
}

std::string_view BlockOf(const LongList& list, size_t block) {
  return std::string_view(*list.values)
      .substr(block * kListBlockBytes, kListBlockBytes);
}

}  // namespace leat
