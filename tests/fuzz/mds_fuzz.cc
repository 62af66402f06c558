// SPDX-License-Identifier: Apache-2.0
//
// MDS. The first byte selects the rest: an index.json, or a shard of one or two
// samples, plain or compressed, whose bytes are declared to be tokens or not.
#include <string>
#include <vector>

#include "core/pipeline/graph.h"
#include "fmt/format.h"
#include "tests/fuzz/target.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/source/packed/packing.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/mds/mds.h"

namespace leat::worker::mds_fuzz {
namespace {

constexpr std::string_view kColumns =
    R"("column_encodings":["jpeg","int","ndarray:int16:2,3","bytes"],)"
    R"("column_names":["a","b","c","d"],"column_sizes":[null,8,12,null],)";

std::string IndexOf(std::string_view compression, const std::string& raw,
                    const std::string& packed, int samples) {
  return fmt::format(
      R"({{"version":2,"shards":[{{{}"compression":"{}","format":"mds",)"
      R"("raw_data":{},"zip_data":{},"samples":{},"version":2}}]}})",
      kColumns, compression, raw, packed, samples);
}

std::string FileOf(const char* name, size_t bytes) {
  return fmt::format(R"({{"basename":"{}","bytes":{},"hashes":{{}}}})", name,
                     bytes);
}

void ReadShard(std::string_view shard, int samples, int compression,
               bool tokens) {
  static const TempDir& dir = *new TempDir;
  constexpr const char* kNames[] = {"", "zstd", "gz", "br"};
  const std::string file = FileOf("x", shard.size());
  dir.Write("x", shard);
  dir.Write("index.json", IndexOf(kNames[compression],
                                  compression == 0 ? file : FileOf("y", 100),
                                  compression == 0 ? "null" : file, samples));
  Node reader{.op = "readers.mds",
              .inputs = {},
              .args = {{"path", dir.path()},
                       {"columns", std::vector<std::string>{"d", "c", "a"}}}};
  if (tokens)
    reader.args["types"] =
        std::vector<std::string>{"uint16[?]", "int16[2,3]", "encoded"};
  const SourceLimits limits = {.listing_threads = 1};
  const auto index = BuildMdsIndex(reader, limits);
  fuzz::Require(index.ok());  // the listing reads no other bytes
  const auto source = OpenMds(reader, index->blob, limits);
  fuzz::Require(source.ok());
  for (uint64_t i = 0; i < (*source)->num_samples(); ++i) {
    const auto sample = (*source)->Read(i);
    if (!sample.ok() || !tokens) continue;
    const StoredField& field = sample->fields[0];
    fuzz::Require(field.shape.size() == 1 &&
                  field.bytes.size() ==
                      static_cast<uint64_t>(field.shape[0]) * sizeof(uint16_t));
  }
}

void Run(std::string_view bytes) {
  if (bytes.empty()) return;
  const auto kind = static_cast<uint8_t>(bytes[0]);
  if (kind % 2 == 0)
    (void)ParseMdsIndex(bytes.substr(1));
  else
    ReadShard(bytes.substr(1), 1 + (kind >> 1) % 2, (kind >> 2) % 4,
              (kind >> 4) % 2 != 0);
}

// Makes one sample, so that the unpacked shard has 100 bytes.
std::string ShardOf() {
  const std::string sample = Little(uint32_t{38}) + Little(uint32_t{18}) +
                             std::string(38, 'j') + Little(int64_t{7}) +
                             std::string(12, 'n') + std::string(18, 's');
  return Little(uint32_t{1}) + Little(uint32_t{16}) + Little(uint32_t{100}) +
         "conf" + sample;
}

std::vector<std::string> Seeds() {
  const std::string index =
      IndexOf("gz", FileOf("y", 100), FileOf("d/x", 60), 3);
  return {std::string(1, '\0') + index,
          "\x01" + ShardOf(),
          "\x05" + Zstd(ShardOf()),
          "\x09" + Gzip(ShardOf()),
          "\x0d" + std::string("\x0f\x02\x80", 3) + ShardOf() + "\x03",
          "\x11" + ShardOf(),
          "\x15" + Zstd(ShardOf())};
}

const fuzz::Target kTarget(
    {.name = "mds", .run = Run, .seeds = Seeds, .runs = 300});

}  // namespace
}  // namespace leat::worker::mds_fuzz
