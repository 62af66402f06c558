// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/arrange.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/pipeline/shape_inference.h"
#include "core/selection/condition.h"
#include "core/status.h"
#include "leat/stored/v1/records.pb.h"
#include "worker/source/arranged/chosen_samples.h"
#include "worker/source/arranged/numbers.h"
#include "worker/source/each_file.h"
#include "worker/source/index_blob.h"

namespace leat::worker {
namespace {

// Part of the hashes, so that another rule gives another dataset.
constexpr std::string_view kArrangedVersion = "leat.arranged.v1";

// Cuts items into blocks, and hashes them all.
class ItemWriter {
 public:
  explicit ItemWriter(const SourceLimits& limits)
      : blob_(limits),
        in_blocks_(limits.blocks != nullptr),
        // A message has more than its gaps.
        block_bytes_(limits.blocks == nullptr
                         ? std::numeric_limits<uint64_t>::max()
                         : std::max<uint64_t>(limits.block_bytes, 64) - 32) {}

  absl::Status Begin(const std::string& text, const Digest& base) {
    stored::v1::ArrangedHead head;
    head.set_text(text);
    head.set_base_fingerprint(BytesOf(base));
    return blob_.Add(head);
  }
  absl::Status Add(uint64_t sample) {
    ChosenSamples::Append(sample, std::exchange(before_, sample), &gaps_);
    ++in_block_;
    ++items_;
    hashed_.push_back(sample);
    if (hashed_.size() == kHashedAtATime) HashMore();
    return gaps_.size() < block_bytes_ ? absl::OkStatus() : EndBlock();
  }
  // A condition that chooses few samples of many has a block from time to time,
  // which tells the coordinator that the listing goes on.
  absl::Status Walked(uint64_t samples) {
    walked_ += samples;
    if (walked_ < kWalkedByBlock || in_block_ == 0) return absl::OkStatus();
    return EndBlock();
  }
  absl::StatusOr<std::string> Finish() {
    if (in_block_ > 0) RETURN_IF_ERROR(EndBlock());
    HashMore();
    return blob_.Finish();
  }

  uint64_t items() const { return items_; }
  Digest TakeDigest() { return hash_.Finish(); }

 private:
  static constexpr size_t kHashedAtATime = 8192;
  static constexpr uint64_t kWalkedByBlock = 1 << 20;

  void HashMore() {
    hash_.Update(std::as_bytes(std::span(hashed_)));
    hashed_.clear();
  }
  absl::Status EndBlock() {
    stored::v1::ChosenSamples block;
    block.set_samples(in_block_);
    block.set_gaps(std::exchange(gaps_, {}));
    before_ = walked_ = 0;
    RETURN_IF_ERROR(blob_.Add(block, std::exchange(in_block_, 0)));
    // A block has one message, also where two would fit.
    return in_blocks_ ? blob_.Finish().status() : absl::OkStatus();
  }

  BlobWriter blob_;
  const bool in_blocks_;
  const uint64_t block_bytes_;
  Sha256 hash_;
  std::vector<uint64_t> hashed_;  // not yet
  std::string gaps_;
  uint64_t before_ = 0, in_block_ = 0, items_ = 0, walked_ = 0;
};

Digest ArrangedHash(const Digest& base, const std::string& text,
                    const Digest& items) {
  return Sha256()
      .UpdateField(kArrangedVersion)
      .Update(std::as_bytes(std::span(base)))
      .UpdateField(text)
      .Update(std::as_bytes(std::span(items)))
      .Finish();
}

// Returns about how many bytes the chosen records have.
uint64_t ShareOf(const DatasetInfo& base, uint64_t items) {
  const double share = static_cast<double>(items) /
                       static_cast<double>(base.shards.num_samples());
  return static_cast<uint64_t>(static_cast<double>(base.bytes) * share);
}

// Evaluates a condition on many samples at a time, and gives those that it
// chooses to the writer in their order.
class Filter {
 public:
  // `what`: for messages.
  Filter(std::string what, const Columns* columns, const SourceLimits* limits,
         ItemWriter* writer)
      : what_(std::move(what)),
        columns_(columns),
        limits_(limits),
        writer_(writer) {}

  absl::Status Add(uint64_t sample) {
    ++walked_;
    samples_.push_back(sample);
    return samples_.size() < kAtATime ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    std::vector<uint8_t> holds(samples_.size());
    RETURN_IF_ERROR(ForEachIndex(
        (samples_.size() + kTogether - 1) / kTogether, limits_->listing_threads,
        limits_->cancelled, [&](size_t i) {
          const size_t first = i * kTogether;
          const size_t count = std::min(kTogether, samples_.size() - first);
          return columns_->Evaluate(std::span(samples_).subspan(first, count),
                                    std::span(holds).subspan(first, count));
        }));
    for (size_t i = 0; i < samples_.size(); ++i)
      if (holds[i] != 0) RETURN_IF_ERROR(writer_->Add(samples_[i]));
    const uint64_t walked = samples_.size();
    samples_.clear();
    if (const MonotonicTime now = Clock::Real().Now(); now >= tell_at_) {
      tell_at_ = now + kTellEvery;
      LOG_INFO("arrangement.filtering {} walked={} chosen={}", what_, walked_,
               writer_->items());
    }
    return limits_->blocks == nullptr ? absl::OkStatus()
                                      : writer_->Walked(walked);
  }
  uint64_t walked() const { return walked_; }

 private:
  static constexpr size_t kTogether = 64;  // records that a thread reads
  static constexpr size_t kAtATime = 64 * kTogether;
  static constexpr Duration kTellEvery = std::chrono::seconds(30);

  const std::string what_;
  const Columns* const columns_;
  const SourceLimits* const limits_;
  ItemWriter* const writer_;
  std::vector<uint64_t> samples_;
  uint64_t walked_ = 0;
  MonotonicTime tell_at_ = Clock::Real().Now() + kTellEvery;
};

absl::Status WriteChosen(const Arrangement& arrangement,
                         const ArrangeFrom& from, const SourceLimits& limits,
                         ItemWriter* writer) {
  const auto for_each = [&](const std::function<absl::Status(uint64_t)>& use) {
    return ForEachNumber(arrangement.samples, from.base.name,
                         from.base.shards.num_samples(), limits, use);
  };
  if (arrangement.where.empty())
    return for_each([&](uint64_t sample) { return writer->Add(sample); });
  ASSIGN_OR_RETURN(const Condition condition,
                   Condition::Parse(arrangement.where));
  std::vector<ValueType> types = from.base.types;
  if (types.empty()) {
    Node reader = from.reader;
    ASSIGN_OR_RETURN(types, InferTypes(&reader, {}));
  }
  ASSIGN_OR_RETURN(const Columns columns,
                   Columns::Bind(condition, {.reader = from.reader,
                                             .types = types,
                                             .source = from.source,
                                             .image_size = from.image_size}));
  Filter filter(
      fmt::format("dataset=\"{}\" samples={} reads_records={}", from.base.name,
                  from.base.shards.num_samples(), columns.reads_records()),
      &columns, &limits, writer);
  RETURN_IF_ERROR(
      for_each([&](uint64_t sample) { return filter.Add(sample); }));
  RETURN_IF_ERROR(filter.Flush());
  if (writer->items() > 0) return absl::OkStatus();
  return InvalidArgument("where leaves 0 of {} samples: {}", filter.walked(),
                         condition.CanonicalText());
}

}  // namespace

absl::StatusOr<BuiltIndex> Arrange(const Arrangement& arrangement,
                                   const ArrangeFrom& from,
                                   const SourceLimits& limits) {
  const DatasetInfo& base = from.base;
  if (from.source.num_samples() != base.shards.num_samples())
    return DataLoss("dataset {}: its index has {} samples: want {}", base.name,
                    from.source.num_samples(), base.shards.num_samples());
  const std::string text = CanonicalText(arrangement);
  ItemWriter writer(limits);
  RETURN_IF_ERROR(writer.Begin(text, base.fingerprint));
  RETURN_IF_ERROR(WriteChosen(arrangement, from, limits, &writer));
  BuiltIndex built;
  ASSIGN_OR_RETURN(built.blob, writer.Finish());
  const uint64_t items = writer.items();
  ASSIGN_OR_RETURN(
      built.shards,
      ShardTable::Uniform(items, ShardTable::DefaultShardSize(items)));
  const Digest digest = writer.TakeDigest();
  built.fingerprint = ArrangedHash(base.fingerprint, text, digest);
  if (base.content != Digest{})
    built.content = ArrangedHash(
        base.content, CanonicalText(arrangement, /*place=*/false), digest);
  built.bytes = ShareOf(base, items);
  built.classes = base.classes;
  built.types = base.types;
  built.name = fmt::format("{} › {}", base.name, ShownText(arrangement));
  return built;
}

}  // namespace leat::worker
