// SPDX-License-Identifier: Apache-2.0
//
// MdsTest: a folder of MDS shards, in the layout of streaming's writer.
#pragma once

#include <openssl/evp.h>

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/source/packed/packing.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/mds/mds.h"

namespace leat::worker {

// Returns a shard in the layout of streaming's writer.
inline std::string Shard(const std::vector<std::string>& samples) {
  const std::string config = "{}";
  std::string shard = Little(static_cast<uint32_t>(samples.size()));
  auto at = static_cast<uint32_t>(4 + 4 * (samples.size() + 1) + config.size());
  shard += Little(at);
  for (const std::string& sample : samples)
    shard += Little(at += static_cast<uint32_t>(sample.size()));
  shard += config;
  for (const std::string& sample : samples) shard += sample;
  return shard;
}

// Returns a sample with the columns image (jpeg), label (int), text (str).
inline std::string Sample(const std::string& image, int64_t label,
                          const std::string& text) {
  return Little(static_cast<uint32_t>(image.size())) +
         Little(static_cast<uint32_t>(text.size())) + image + Little(label) +
         text;
}

struct Columns {
  std::string names = R"(["image","label","text"])";
  std::string encodings = R"(["jpeg","int","str"])";
  std::string sizes = "[null,8,null]";
};

inline std::string ShardJson(const std::string& raw, const std::string& packed,
                             uint64_t samples, const Columns& columns = {},
                             const std::string& compression = "null") {
  return fmt::format(
      R"({{"column_encodings":{},"column_names":{},"column_sizes":{},)"
      R"("compression":{},"format":"mds","hashes":[],"raw_data":{},)"
      R"("samples":{},"size_limit":67108864,"version":2,"zip_data":{}}})",
      columns.encodings, columns.names, columns.sizes, compression, raw,
      samples, packed);
}

inline std::string FileJson(const std::string& name, const std::string& bytes,
                            const std::string& hashes = "{}") {
  return fmt::format(R"({{"basename":"{}","bytes":{},"hashes":{}}})", name,
                     bytes.size(), hashes);
}

inline std::string IndexJson(const std::vector<std::string>& shards) {
  std::string json = R"({"version":2,"shards":[)";
  for (size_t i = 0; i < shards.size(); ++i) {
    if (i > 0) json += ',';
    json += shards[i];
  }
  return json + "]}";
}

inline std::string Sha1(const std::string& bytes) {
  uint8_t digest[EVP_MAX_MD_SIZE];
  unsigned size = 0;
  EVP_Digest(bytes.data(), bytes.size(), digest, &size, EVP_sha1(), nullptr);
  return fmt::format(R"({{"sha1":"{}","xxh64":"unknown"}})",
                     ToHex({digest, size}));
}

class MdsTest : public testing::Test {
 protected:
  Node Reader(const std::vector<std::string>& columns = {"image", "label",
                                                         "text"}) {
    return {.op = "readers.mds",
            .inputs = {},
            .args = {{"path", dir_.path()}, {"columns", columns}}};
  }
  // Writes two shards: samples ("a", 1, "one"), ("bb", 2, ""); ("", -3,
  // "three").
  void WriteGood() {
    first_ = Shard({Sample("a", 1, "one"), Sample("bb", 2, "")});
    second_ = Shard({Sample("", -3, "three")});
    dir_.Write("shard.0.mds", first_);
    dir_.Write("sub/shard.1.mds", second_);
    WriteIndex({ShardJson(FileJson("shard.0.mds", first_), "null", 2),
                ShardJson(FileJson("sub/shard.1.mds", second_), "null", 1)});
  }
  void WriteIndex(const std::vector<std::string>& shards) {
    dir_.Write("index.json", IndexJson(shards));
  }
  // Writes a shard with the columns tokens (bytes) and label (int), the
  // sample's number; returns a reader that declares both.
  Node WriteTokens(const std::vector<std::string>& documents,
                   const std::vector<std::string>& types) {
    std::vector<std::string> samples;
    for (const std::string& document : documents)
      samples.push_back(Little(static_cast<uint32_t>(document.size())) +
                        document +
                        Little(static_cast<int64_t>(samples.size())));
    const std::string shard = Shard(samples);
    dir_.Write("s.mds", shard);
    WriteIndex({ShardJson(
        FileJson("s.mds", shard), "null", documents.size(),
        {R"(["tokens","label"])", R"(["bytes","int"])", "[null,8]"})});
    Node reader = Reader({"tokens", "label"});
    reader.args["types"] = types;
    return reader;
  }
  // Writes one shard, compressed.
  void WritePacked(const std::string& packed, const std::string& name,
                   const std::string& hashes = "{}") {
    first_ = Shard({Sample("a", 1, "one"), Sample("bb", 2, "")});
    dir_.Write("shard.0.mds." + name, packed);
    WriteIndex({ShardJson(FileJson("shard.0.mds", first_, Sha1(first_)),
                          FileJson("shard.0.mds." + name, packed, hashes), 2,
                          {}, "\"" + name + ":3\"")});
  }
  BuiltIndex Index(const Node& reader) {
    absl::StatusOr<BuiltIndex> index = BuildIndex(reader, limits_);
    EXPECT_TRUE(index.ok()) << index.status();
    return index.ok() ? *std::move(index) : BuiltIndex();
  }
  std::unique_ptr<Source> Open(const Node& reader) {
    auto source = OpenSource(reader, Index(reader).blob, limits_);
    EXPECT_TRUE(source.ok()) << source.status();
    return *std::move(source);
  }
  absl::Status IndexError(const Node& reader) {
    return BuildIndex(reader, limits_).status();
  }
  absl::Status IndexError() { return IndexError(Reader()); }
  // Reads one sample of one column.
  absl::StatusOr<StoredSample> ReadColumn(const std::string& encoding,
                                          const std::string& size,
                                          const std::string& stored) {
    const std::string shard = Shard({stored});
    dir_.Write("s.mds", shard);
    WriteIndex(
        {ShardJson(FileJson("s.mds", shard), "null", 1,
                   {R"(["x"])", "[\"" + encoding + "\"]", "[" + size + "]"})});
    const Node reader = Reader({"x"});
    ASSIGN_OR_RETURN(const BuiltIndex index, BuildIndex(reader, limits_));
    type_ = index.types[0];
    ASSIGN_OR_RETURN(const auto source,
                     OpenSource(reader, index.blob, limits_));
    return source->Read(0);
  }

  TempDir dir_;
  SourceLimits limits_;
  std::string first_;
  std::string second_;
  ValueType type_;
};

}  // namespace leat::worker
