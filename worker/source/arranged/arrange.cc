// SPDX-License-Identifier: Apache-2.0
#include "worker/source/arranged/arrange.h"

#include <algorithm>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/log.h"
#include "core/pipeline/shape_inference.h"
#include "core/selection/condition.h"
#include "core/status.h"
#include "worker/source/arranged/grouped_writer.h"
#include "worker/source/arranged/item_writer.h"
#include "worker/source/arranged/listing_trail.h"
#include "worker/source/arranged/numbers.h"
#include "worker/source/arranged/row_packer.h"
#include "worker/source/arranged/sample_groups.h"
#include "worker/source/each_file.h"

namespace leat::worker {
namespace {

// Part of the hashes, so that another rule gives another dataset.
constexpr std::string_view kArrangedVersion = "leat.arranged.v1";

Digest ArrangedHash(const Digest& base, const std::string& text,
                    const Digest& items) {
  return Sha256()
      .UpdateField(kArrangedVersion)
      .Update(std::as_bytes(std::span(base)))
      .UpdateField(text)
      .Update(std::as_bytes(std::span(items)))
      .Finish();
}

// So many samples are walked before the trail is told.
constexpr uint64_t kToldTogether = 4096;

// Returns how many samples are walked; 0: that is not known.
uint64_t WalkedOf(const Numbers& numbers, uint64_t samples) {
  if (!numbers.uri.empty()) return 0;
  if (!numbers.list.empty()) return numbers.list.size();
  return numbers.step == 0
             ? samples
             : (numbers.end - numbers.begin - 1) / numbers.step + 1;
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
         ListingTrail* trail, ItemWriter* writer)
      : what_(std::move(what)),
        columns_(columns),
        limits_(limits),
        trail_(trail),
        writer_(writer) {}

  absl::Status Add(uint64_t sample) {
    ++walked_;
    samples_.push_back(sample);
    return samples_.size() < kAtATime ? absl::OkStatus() : Flush();
  }
  absl::Status Flush() {
    ASSIGN_OR_RETURN(const std::vector<uint8_t> holds,
                     columns_->reads_storage() ? TakeOrEvaluate() : Evaluate());
    for (size_t i = 0; i < samples_.size(); ++i)
      if (holds[i] != 0) RETURN_IF_ERROR(writer_->Add(samples_[i]));
    const uint64_t walked = samples_.size();
    samples_.clear();
    if (const MonotonicTime now = Clock::Real().Now(); now >= tell_at_) {
      tell_at_ = now + kTellEvery;
      LOG_INFO("arrangement.filtering {} walked={} chosen={}", what_, walked_,
               writer_->chosen());
    }
    return trail_->Walked(walked);
  }
  uint64_t walked() const { return walked_; }

 private:
  static constexpr size_t kTogether = 64;  // records that a thread reads
  static constexpr size_t kAtATime = 64 * kTogether;
  static constexpr Duration kTellEvery = std::chrono::seconds(30);

  absl::StatusOr<std::vector<uint8_t>> Evaluate() {
    std::vector<uint8_t> holds(samples_.size());
    RETURN_IF_ERROR(ForEachIndex(
        (samples_.size() + kTogether - 1) / kTogether, limits_->listing_threads,
        limits_->cancelled, [&](size_t i) {
          const size_t first = i * kTogether;
          const size_t count = std::min(kTogether, samples_.size() - first);
          return columns_->Evaluate(std::span(samples_).subspan(first, count),
                                    std::span(holds).subspan(first, count));
        }));
    return holds;
  }
  // The trail has a bit for each sample.
  absl::StatusOr<std::vector<uint8_t>> TakeOrEvaluate() {
    ASSIGN_OR_RETURN(const std::optional<std::string> taken,
                     trail_->Take(samples_));
    const size_t bytes = (samples_.size() + 7) / 8;
    if (taken && taken->size() == bytes) {
      std::vector<uint8_t> holds(samples_.size());
      for (size_t i = 0; i < holds.size(); ++i)
        holds[i] = (static_cast<uint8_t>((*taken)[i / 8]) >> (i % 8)) & 1;
      return holds;
    }
    if (taken) trail_->Refuse();
    ASSIGN_OR_RETURN(std::vector<uint8_t> holds, Evaluate());
    std::string bits(bytes, '\0');
    for (size_t i = 0; i < holds.size(); ++i)
      bits[i / 8] = static_cast<char>(bits[i / 8] | holds[i] << (i % 8));
    trail_->Add(samples_, std::move(bits));
    return holds;
  }

  const std::string what_;
  const Columns* const columns_;
  const SourceLimits* const limits_;
  ListingTrail* const trail_;
  ItemWriter* const writer_;
  std::vector<uint64_t> samples_;
  uint64_t walked_ = 0;
  MonotonicTime tell_at_ = Clock::Real().Now() + kTellEvery;
};

// Returns the types of the base's reader's outputs.
absl::StatusOr<std::vector<ValueType>> TypesOf(const ArrangeFrom& from) {
  if (!from.base.types.empty()) return from.base.types;
  Node reader = from.reader;
  return InferTypes(&reader, {});
}

// The sender of an arrangement may know other outputs of the reader.
absl::Status CheckPacks(const PackNode& pack,
                        std::span<const ValueType> types) {
  std::vector<ValueType> packed;
  for (const uint32_t output : pack.outputs) {
    if (output >= types.size())
      return InvalidArgument("pack: output {} of a reader with {}", output,
                             types.size());
    packed.push_back(types[output]);
  }
  return CheckPackedTypes(pack, packed);
}

absl::StatusOr<std::unique_ptr<ItemWriter>> WriterOf(
    const Arrangement& arrangement, const ArrangeFrom& from,
    const SourceLimits& limits, ListingTrail* trail) {
  if (!arrangement.pack && !IsGrouped(arrangement))
    return std::make_unique<ChosenWriter>(limits);
  ASSIGN_OR_RETURN(std::vector<ValueType> types, TypesOf(from));
  if (arrangement.pack) {
    RETURN_IF_ERROR(CheckPacks(*arrangement.pack, types));
    return std::make_unique<RowPacker>(*arrangement.pack, std::move(types),
                                       Chooses(arrangement), &from.source,
                                       limits, trail);
  }
  ASSIGN_OR_RETURN(
      std::unique_ptr<SampleGroups> groups,
      GroupsFor(arrangement, {.base = from.base,
                              .columns = {.reader = from.reader,
                                          .types = types,
                                          .source = from.source,
                                          .image_size = from.image_size},
                              .limits = limits,
                              .trail = trail}));
  return std::make_unique<GroupedWriter>(std::move(groups), &from.source,
                                         limits);
}

absl::Status WriteChosen(const Arrangement& arrangement,
                         const ArrangeFrom& from, const SourceLimits& limits,
                         ListingTrail* trail, ItemWriter* writer) {
  const auto for_each = [&](const std::function<absl::Status(uint64_t)>& use) {
    return ForEachNumber(arrangement.samples, from.base.name,
                         from.base.shards.num_samples(), limits, use);
  };
  if (arrangement.where.empty()) {
    uint64_t walked = 0;
    return for_each([&](uint64_t sample) {
      if (++walked % kToldTogether == 0)
        RETURN_IF_ERROR(trail->Walked(kToldTogether));
      return writer->Add(sample);
    });
  }
  ASSIGN_OR_RETURN(const Condition condition,
                   Condition::Parse(arrangement.where));
  ASSIGN_OR_RETURN(const std::vector<ValueType> types, TypesOf(from));
  ASSIGN_OR_RETURN(const Columns columns,
                   Columns::Bind(condition, {.reader = from.reader,
                                             .types = types,
                                             .source = from.source,
                                             .image_size = from.image_size,
                                             .classes = from.base.classes}));
  Filter filter(
      fmt::format("dataset=\"{}\" samples={} reads_storage={}", from.base.name,
                  from.base.shards.num_samples(), columns.reads_storage()),
      &columns, &limits, trail, writer);
  RETURN_IF_ERROR(
      for_each([&](uint64_t sample) { return filter.Add(sample); }));
  RETURN_IF_ERROR(filter.Flush());
  if (writer->chosen() > 0) return absl::OkStatus();
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
  ListingTrail trail(base.fingerprint,
                     WalkedOf(arrangement.samples, base.shards.num_samples()),
                     from.keeper, from.trail);
  ASSIGN_OR_RETURN(const std::unique_ptr<ItemWriter> writer,
                   WriterOf(arrangement, from, limits, &trail));
  RETURN_IF_ERROR(writer->Begin(text, base.fingerprint));
  RETURN_IF_ERROR(WriteChosen(arrangement, from, limits, &trail, writer.get()));
  if (trail.taken() > 0)
    LOG_INFO("arrangement.went_on dataset=\"{}\" samples={} after={}",
             base.name, base.shards.num_samples(), trail.taken());
  BuiltIndex built;
  ASSIGN_OR_RETURN(built.blob, writer->Finish());
  const uint64_t items = writer->items();
  ASSIGN_OR_RETURN(
      built.shards,
      ShardTable::Uniform(items, ShardTable::DefaultShardSize(items)));
  const Digest digest = writer->TakeDigest();
  built.fingerprint = ArrangedHash(base.fingerprint, text, digest);
  if (base.content != Digest{})
    built.content = ArrangedHash(
        base.content, CanonicalText(arrangement, /*place=*/false), digest);
  built.bytes =
      ShareOf(base, arrangement.pack ? writer->chosen() : writer->items());
  built.classes = base.classes;
  built.types = base.types;
  built.groups = writer->TakeGroups();
  built.passed_over = writer->TakePassedOver();
  built.name = fmt::format("{} › {}", base.name, ShownText(arrangement));
  return built;
}

}  // namespace leat::worker
