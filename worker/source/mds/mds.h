// SPDX-License-Identifier: Apache-2.0
//
// MDS, MosaicML Streaming's format (version 2): a folder with index.json and
// shards; each shard is a shard in Leat. A shard is
//   u32 samples | u32 offsets[samples + 1] | what wrote it | samples
// and a sample is the sizes (u32) of its columns without a fixed one, then all
// columns' bytes.
//
// Shards that exist only compressed are unpacked whole, and the most recently
// used are kept within SourceLimits::max_unpacked_bytes: read such datasets in
// the order of shards. From uncompressed shards only samples are read. Hashes
// in the index are checked when a shard is read whole: when it is unpacked, and
// under `verify` when the dataset is listed.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/source/mds/column.h"
#include "worker/source/packed/unpack.h"
#include "worker/source/source.h"

namespace leat::worker {

struct MdsOptions {
  std::string path;
  std::vector<std::string> columns;  // to be read, in this order
  // The arguments may say what each of them is; nullopt: they do not.
  std::vector<std::optional<ValueType>> types;
  bool verify = false;

  const ValueType* TypeOf(size_t column) const {
    return types[column] ? &*types[column] : nullptr;
  }
};
// kInvalidArgument: names the argument.
absl::StatusOr<MdsOptions> MdsOptionsOf(const Node& reader);

// --- index.json -------------------------------------------------------------

struct MdsFile {
  std::string name;  // relative to the folder
  uint64_t bytes = 0;
  std::vector<std::string> hashes;  // "sha1:da39..."
};

struct MdsShardInfo {
  MdsFile raw;
  MdsFile packed;  // name is empty: there is none
  Compression compression = Compression::kNone;
  uint64_t samples = 0;
};

struct MdsIndexFile {
  struct Column {
    std::string name;
    std::string encoding;
    uint32_t size = 0;  // 0: differs
    friend bool operator==(const Column&, const Column&) = default;
  };
  std::vector<Column> columns;  // the same in all shards
  std::vector<MdsShardInfo> shards;
};

inline constexpr uint64_t kMaxMdsIndexBytes = 64 << 20;

// kDataLoss: malformed, or a name outside the folder. kUnimplemented: another
// version, format or compression. Each names the shard.
absl::StatusOr<MdsIndexFile> ParseMdsIndex(std::string_view json);

// --- The source -------------------------------------------------------------

// Has the contract of SourceFormat::build. kNotFound: no index.json, no such
// column (names the existing ones), or a shard's file is missing;
// kFailedPrecondition: a file's size differs from the index.
absl::StatusOr<BuiltIndex> BuildMdsIndex(const Node& reader,
                                         const SourceLimits& limits);
absl::StatusOr<std::unique_ptr<Source>> OpenMds(const Node& reader,
                                                std::string_view blob,
                                                const SourceLimits& limits);

}  // namespace leat::worker
