// SPDX-License-Identifier: Apache-2.0
//
// MDS. The first byte says what the rest is: an index.json, or a shard of one
// or two samples, as it is or compressed.
#include <fstream>

#include "core/graph.h"
#include "fmt/format.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/mds.h"

namespace {

using namespace leat::worker;

void ReadShard(const std::string& shard, int samples, int compression) {
  static const TempDir& dir = *new TempDir;
  constexpr const char* kNames[] = {"", "zstd", "gz", "br"};
  const std::string columns =
      R"("column_encodings":["jpeg","int","ndarray:int16:2,3","str"],)"
      R"("column_names":["a","b","c","d"],"column_sizes":[null,8,12,null],)";
  const std::string file = fmt::format(
      R"({{"basename":"x","bytes":{},"hashes":{{}}}})", shard.size());
  const std::string raw =
      compression == 0 ? file : R"({"basename":"y","bytes":100,"hashes":{}})";
  const std::string packed = compression == 0 ? "null" : file;
  dir.Write("x", shard);
  dir.Write("index.json",
            fmt::format(R"({{"version":2,"shards":[{{{}"compression":"{}",)"
                        R"("format":"mds","raw_data":{},"zip_data":{},)"
                        R"("samples":{},"version":2}}]}})",
                        columns, kNames[compression], raw, packed, samples));
  const leat::Node reader{
      .op = "readers.mds",
      .inputs = {},
      .args = {{"path", dir.path()},
               {"columns", std::vector<std::string>{"d", "c", "a"}}}};
  SourceLimits limits;
  limits.listing_threads = 1;
  const auto index = BuildMdsIndex(reader, limits);
  if (!index.ok()) abort();  // of these bytes, the listing reads none
  const auto source = OpenMds(reader, index->blob, limits);
  if (!source.ok()) abort();
  for (uint64_t i = 0; i < (*source)->num_samples(); ++i)
    (void)(*source)->Read(i);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string rest(reinterpret_cast<const char*>(data) + 1, size - 1);
  if (data[0] % 2 == 0)
    (void)ParseMdsIndex(rest);
  else
    ReadShard(rest, 1 + (data[0] >> 1) % 2, (data[0] >> 2) % 4);
  return 0;
}
