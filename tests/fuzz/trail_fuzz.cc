// SPDX-License-Identifier: Apache-2.0
//
// Trails of listings, as a coordinator hands them to the next worker: what they
// say is taken or read anew, and the listing ends well or with an error that
// says why. The first byte chooses what is listed; the rest is the only part.
#include <array>
#include <numeric>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/target.h"
#include "worker/source/arranged/arrange.h"
#include "worker/source/varint.h"

namespace leat::worker::trail_fuzz {
namespace {

constexpr uint64_t kSamples = 300;
constexpr int kKinds = 3;

// Documents of 0 to 9 elements.
class Documents final : public FormatSource {
 public:
  uint64_t num_samples() const override { return kSamples; }
  uint64_t RecordOf(uint64_t sample) const override { return sample; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    static constexpr std::array<int32_t, 9> kTokens{};
    StoredSample stored;
    stored.fields.resize(1);
    stored.fields[0].bytes =
        std::as_bytes(std::span(kTokens).first(sample % 10 % 9));
    stored.fields[0].shape = {static_cast<int64_t>(sample % 10 % 9)};
    return stored;
  }
  const Digest& fingerprint() const override { return fingerprint_; }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("document {}", sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t) const override {
    return Unimplemented("it is nowhere");
  }

 private:
  const Digest fingerprint_{};
};

// Gives one part, and keeps those that the listing makes.
class Parts final : public TrailKeeper {
 public:
  explicit Parts(std::string first) : first_(std::move(first)) {}

  absl::StatusOr<std::optional<std::string>> Fetch(size_t part) override {
    if (part > 0) return std::nullopt;
    return first_;
  }
  absl::Status Keep(size_t, std::string bytes,
                    const ListingProgress& progress) override {
    fuzz::Require(progress.walked <= kSamples);
    kept_ += bytes;
    return absl::OkStatus();
  }
  const std::string& kept() const { return kept_; }

 private:
  const std::string first_;
  std::string kept_;
};

absl::StatusOr<BuiltIndex> Listed(int kind, TrailKeeper* keeper) {
  static const Documents& documents = *new Documents;
  const Node reader{"readers.webdataset",
                    {},
                    {{"paths", std::vector<std::string>{"/fuzz.tar"}},
                     {"ext", std::vector<std::string>{"tok"}},
                     {"types", std::vector<std::string>{"int32[?]"}}}};
  DatasetInfo base;
  base.types = {{ValueType::Kind::kTensor, DType::kInt32, {-1}}};
  base.shards = *ShardTable::Uniform(kSamples, 64);
  Arrangement arrangement;
  if (kind == 0)
    arrangement.where = "length(tok) >= 3";
  else
    arrangement.pack = {
        .packing = {.how = kind == 1 ? PackHow::kCut : PackHow::kFit,
                    .length = 16,
                    .longer = PackLonger::kDrop},
        .outputs = {0},
        .fill_values = {0}};
  SourceLimits limits;
  limits.listing_threads = 1;
  return Arrange(arrangement,
                 {.base = base,
                  .reader = reader,
                  .source = documents,
                  .keeper = keeper,
                  .trail = {.first_interval = Duration(0)}},
                 limits);
}

void Run(std::string_view bytes) {
  if (bytes.empty()) return;
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  const int kind = static_cast<uint8_t>(bytes[0]) % kKinds;
  Parts parts{std::string(bytes.substr(1))};
  const auto index = Listed(kind, &parts);
  if (!index.ok()) return fuzz::Require(!Message(index.status()).empty());
  fuzz::Require(index->shards.num_samples() > 0);
  fuzz::Require(kind != 0 || index->shards.num_samples() <= kSamples);
}

// A bit for each sample, or its length and 1: the only results of listings of
// so few samples.
std::vector<std::string> Seeds() {
  std::vector<uint64_t> samples(kSamples);
  std::iota(samples.begin(), samples.end(), uint64_t{0});
  std::vector<std::string> seeds;
  for (int kind = 0; kind < kKinds; ++kind) {
    std::string result(kind == 0 ? (kSamples + 7) / 8 : 0, '\x2a');
    for (const uint64_t sample : samples)
      if (kind != 0) AppendVarint(sample % 10, &result);
    Parts parts("");
    ListingTrail trail(Digest{}, kSamples, &parts,
                       {.first_interval = Duration(0)});
    fuzz::Require(trail.Take(samples).ok());
    trail.Add(samples, result);
    fuzz::Require(trail.Walked(kSamples).ok());
    seeds.push_back(static_cast<char>(kind) + parts.kept());
    Run(seeds.back());
  }
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "trail", .run = Run, .seeds = Seeds, .runs = 1000});

}  // namespace
}  // namespace leat::worker::trail_fuzz
