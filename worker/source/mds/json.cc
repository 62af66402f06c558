// SPDX-License-Identifier: Apache-2.0
//
// Parses index.json as a tree. Nothing deeper than the used parts is kept, so
// neither nesting nor unknown parts cost memory.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "core/status.h"
#include "worker/source/file_set.h"
#include "worker/source/mds/mds.h"

namespace leat::worker {
namespace {

using nlohmann::json;

constexpr int kMaxJsonDepth = 6;  // {shards: [{raw_data: {hashes: {…}}}]}
constexpr size_t kMaxColumns = 1000;
constexpr size_t kMaxHashes = 16;
constexpr uint64_t kMaxShardBytes = uint64_t{1} << 32;  // offsets are u32

const json* Find(const json& object, const char* key) {
  const auto it = object.find(key);
  return it == object.end() || it->is_null() ? nullptr : &*it;
}

// Accepts 0 to `max`, also if it is written as 10.0.
std::optional<uint64_t> WholeOf(const json& value, uint64_t max) {
  if (value.is_number_float()) {
    const double number = value.get<double>();
    if (!(number >= 0 && number <= 0x1p53) || number != std::trunc(number) ||
        number > static_cast<double>(max))
      return std::nullopt;
    return static_cast<uint64_t>(number);
  }
  if (!value.is_number_unsigned() || value.get<uint64_t>() > max)
    return std::nullopt;
  return value.get<uint64_t>();
}

absl::StatusOr<uint64_t> Count(const json& object, const char* key,
                               uint64_t max) {
  const json* const value = Find(object, key);
  const std::optional<uint64_t> count =
      value == nullptr ? std::nullopt : WholeOf(*value, max);
  if (!count) return DataLoss("{}: want a whole number of 0 to {}", key, max);
  return *count;
}

absl::StatusOr<std::string> Text(const json& object, const char* key) {
  const json* const value = Find(object, key);
  if (value == nullptr || !value->is_string())
    return DataLoss("{}: want a text", key);
  return value->get<std::string>();
}

absl::StatusOr<MdsFile> ParseFile(const json& shard, const char* key) {
  MdsFile file;
  const json* const value = Find(shard, key);
  if (value == nullptr) return file;
  if (!value->is_object()) return DataLoss("{}: want an object", key);
  ASSIGN_OR_RETURN(file.name, Text(*value, "basename"));
  if (!StaysBelow(file.name))
    return DataLoss("{}: \"{}\" is outside the dataset's folder", key,
                    file.name.substr(0, 200));
  ASSIGN_OR_RETURN(file.bytes, Count(*value, "bytes", kMaxShardBytes));
  const json* const hashes = Find(*value, "hashes");
  if (hashes == nullptr) return file;
  if (!hashes->is_object() || hashes->size() > kMaxHashes)
    return DataLoss("{}: hashes: want an object of at most {}", key,
                    kMaxHashes);
  for (const auto& [name, hash] : hashes->items()) {
    if (!hash.is_string() || name.find(':') != std::string::npos)
      return DataLoss("{}: hashes: want texts", key);
    file.hashes.push_back(name + ":" + hash.get<std::string>());
  }
  return file;
}

absl::StatusOr<std::vector<MdsIndexFile::Column>> ParseColumns(
    const json& shard) {
  const json* const names = Find(shard, "column_names");
  const json* const encodings = Find(shard, "column_encodings");
  const json* const sizes = Find(shard, "column_sizes");
  for (const json* list : {names, encodings, sizes})
    if (list == nullptr || !list->is_array() || list->size() > kMaxColumns ||
        list->size() != names->size())
      return DataLoss(
          "column_names, column_encodings, column_sizes: want lists of one "
          "length, at most {}",
          kMaxColumns);
  std::vector<MdsIndexFile::Column> columns;
  for (size_t i = 0; i < names->size(); ++i) {
    const json& size = (*sizes)[i];
    if (!(*names)[i].is_string() || !(*encodings)[i].is_string() ||
        !(size.is_null() || WholeOf(size, kMaxShardBytes - 1)))
      return DataLoss("column {}: want a name, an encoding, a size or null", i);
    columns.push_back({.name = (*names)[i].get<std::string>(),
                       .encoding = (*encodings)[i].get<std::string>(),
                       .size = size.is_null() ? 0 : size.get<uint32_t>()});
  }
  return columns;
}

absl::StatusOr<MdsShardInfo> ParseShard(const json& shard,
                                        MdsIndexFile* index) {
  if (!shard.is_object()) return DataLoss("want an object");
  ASSIGN_OR_RETURN(const uint64_t version, Count(shard, "version", UINT64_MAX));
  ASSIGN_OR_RETURN(const std::string format, Text(shard, "format"));
  if (version != 2 || format != "mds")
    return Unimplemented("format \"{}\" version {}: want mds version 2",
                         format.substr(0, 40), version);
  ASSIGN_OR_RETURN(std::vector<MdsIndexFile::Column> columns,
                   ParseColumns(shard));
  if (index->shards.empty()) index->columns = columns;
  if (columns != index->columns)
    return Unimplemented("its columns differ from those of the first shard");
  MdsShardInfo info;
  ASSIGN_OR_RETURN(info.samples, Count(shard, "samples", kMaxShardBytes / 4));
  ASSIGN_OR_RETURN(info.raw, ParseFile(shard, "raw_data"));
  if (info.raw.name.empty()) return DataLoss("raw_data: want an object");
  ASSIGN_OR_RETURN(info.packed, ParseFile(shard, "zip_data"));
  if (info.packed.name.empty()) return info;
  ASSIGN_OR_RETURN(const std::string compression, Text(shard, "compression"));
  // Another compression is an error only if the uncompressed file is missing.
  const auto known = ParseCompression(compression);
  if (known.ok()) info.compression = *known;
  return info;
}

}  // namespace

absl::StatusOr<MdsIndexFile> ParseMdsIndex(std::string_view text) {
  const auto shallow = [](int depth, json::parse_event_t, json&) {
    return depth <= kMaxJsonDepth;
  };
  const json root = json::parse(text.begin(), text.end(), shallow,
                                /*allow_exceptions=*/false);
  if (!root.is_object())
    return DataLoss("no JSON object of {} bytes", text.size());
  ASSIGN_OR_RETURN(const uint64_t version, Count(root, "version", UINT64_MAX));
  if (version != 2) return Unimplemented("version {}: want 2", version);
  const json* const shards = Find(root, "shards");
  if (shards == nullptr || !shards->is_array())
    return DataLoss("shards: want a list");
  MdsIndexFile index;
  for (size_t i = 0; i < shards->size(); ++i) {
    auto shard = ParseShard((*shards)[i], &index);
    if (!shard.ok())
      return Annotate(shard.status(), fmt::format("shard {}", i));
    index.shards.push_back(*std::move(shard));
  }
  return index;
}

}  // namespace leat::worker
