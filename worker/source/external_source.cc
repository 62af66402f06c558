// SPDX-License-Identifier: Apache-2.0
//
// readers.external: samples that consumers supply. There is nothing to list:
// the number of samples is an argument, and equal arguments promise equal data.
#include "core/plan/job.h"
#include "core/status.h"
#include "worker/source/formats.h"

namespace leat::worker {
namespace {

// Part of the fingerprint, so that another meaning is another dataset.
constexpr std::string_view kVersion = "leat.external.v1";

class ExternalSource final : public FormatSource {
 public:
  ExternalSource(const Node& reader, uint64_t num_samples)
      : name_(std::get<std::string>(reader.args.at("name"))),
        num_samples_(num_samples) {
    Sha256 hash;
    hash.UpdateField(kVersion);
    hash.UpdateField(CanonicalText(reader));
    fingerprint_ = hash.Finish();
  }

  uint64_t num_samples() const override { return num_samples_; }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const override {
    return FailedPrecondition(
        "{}: it is in no storage, its consumer supplies it", Describe(sample));
  }
  std::string Describe(uint64_t sample) const override {
    return fmt::format("source \"{}\" sample {}", name_, sample);
  }
  absl::StatusOr<RecordPlace> Locate(uint64_t sample) const override {
    return FailedPrecondition(
        "sample {}: the samples of source \"{}\" are in no storage, consumers "
        "bring them",
        sample, name_);
  }

 private:
  const std::string name_;
  const uint64_t num_samples_;
};

absl::StatusOr<std::unique_ptr<Source>> OpenExternal(
    const Node& reader, std::string_view index_blob, const SourceLimits&) {
  const auto count = reader.args.find("num_samples");
  const auto name = reader.args.find("name");
  if (count == reader.args.end() || name == reader.args.end() ||
      !std::holds_alternative<int64_t>(count->second) ||
      !std::holds_alternative<std::string>(name->second) ||
      std::get<int64_t>(count->second) < 1)
    return InvalidArgument("{}: want num_samples, from 1, and a name",
                           reader.op);
  if (index_blob != CanonicalText(reader))
    return DataLoss("the index is malformed");
  return std::make_unique<ExternalSource>(
      reader, static_cast<uint64_t>(std::get<int64_t>(count->second)));
}

absl::StatusOr<BuiltIndex> BuildExternal(const Node& reader,
                                         const SourceLimits& limits) {
  BuiltIndex index;
  index.blob = CanonicalText(reader);
  ASSIGN_OR_RETURN(const std::unique_ptr<Source> source,
                   OpenExternal(reader, index.blob, limits));
  const uint64_t samples = source->num_samples();
  ASSIGN_OR_RETURN(
      index.shards,
      ShardTable::Uniform(samples, ShardTable::DefaultShardSize(samples)));
  index.fingerprint = source->fingerprint();
  index.name = std::get<std::string>(reader.args.at("name"));
  return index;
}

}  // namespace

const SourceFormat kExternalFormat = {kExternalReader, BuildExternal,
                                      OpenExternal};

}  // namespace leat::worker
