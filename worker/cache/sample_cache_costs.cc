// SPDX-License-Identifier: Apache-2.0
//
// What decodes take by each form, what forms cost to make, and whether these
// are worth making.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "worker/cache/sample_cache_state.h"

namespace leat::worker {
namespace {

// Forms that are made before it is judged whether they repay. The first are of
// small files, which an account that has little can pay for, and are dear for
// each byte.
constexpr uint32_t kLeastToJudge = 64;

}  // namespace

uint64_t SampleCache::Dataset::Decodes::LookAgain() {
  for (size_t way = 0; way < kDecodeWays; ++way) {
    const uint64_t counted = count[way], took = ns[way];
    if (counted - count_before[way] < kLeastMeasured) continue;
    mean_ns[way] = static_cast<double>(took - ns_before[way]) /
                   static_cast<double>(counted - count_before[way]);
    count_before[way] = counted;
    ns_before[way] = took;
  }
  const uint64_t now = asked;
  return now - std::exchange(asked_before, now);
}

double SampleCache::Dataset::Decodes::SavedNs(JpegFormKind kind) const {
  const uint64_t plainly = count[0], plain_ns = ns[0];
  const uint64_t by_form = count[WayOf(kind)], form_ns = ns[WayOf(kind)];
  const double would_take = plainly == 0 ? 0
                                         : static_cast<double>(plain_ns) /
                                               static_cast<double>(plainly) *
                                               static_cast<double>(by_form);
  return would_take - static_cast<double>(form_ns);
}

std::optional<Duration> SampleCache::Dataset::Decodes::CostOf(
    JpegFormKind kind, size_t file_bytes) const {
  const std::optional<Duration> plainly = plain.Of(file_bytes);
  if (!plainly) return std::nullopt;
  if (const std::optional<Duration> cost = making[WayOf(kind)].Of(file_bytes))
    return std::max(Duration(0), *cost);
  return std::chrono::duration_cast<Duration>(*plainly *
                                              kUsualForms[WayOf(kind)].making);
}

Duration SampleCache::Dataset::Decodes::TimeOf(std::optional<JpegFormKind> kind,
                                               size_t file_bytes,
                                               Duration plainly) const {
  if (!kind) return plainly;
  const auto usual = std::chrono::duration_cast<Duration>(
      plainly * kUsualForms[WayOf(*kind)].time);
  return std::min(usual, by_form[WayOf(*kind)].Of(file_bytes).value_or(usual));
}

const std::shared_ptr<FormHorizon>& SampleCache::HorizonOf(
    const DatasetPtr& dataset) {
  return dataset->horizon;
}

// A decode that makes a form is plain, whatever it could use instead.
bool SampleCache::Repays(const DatasetPtr& dataset, JpegFormKind kind,
                         std::optional<JpegFormKind> instead, size_t file_bytes,
                         const DecodeTerms& terms) const {
  const double uses = UsesAfter(dataset, terms);
  if (uses == FormHorizon::kWithoutBound) return true;
  const Dataset::Decodes& decodes = dataset->of(terms.scale);
  const std::optional<Duration> plain = decodes.plain.Of(file_bytes);
  if (!plain) return uses > 0;
  const Duration without = decodes.TimeOf(instead, file_bytes, *plain);
  const double saves =
      uses * static_cast<double>(
                 (without - decodes.TimeOf(kind, file_bytes, *plain)).count());
  const Duration making = decodes.making[WayOf(kind)]
                              .Of(file_bytes, kLeastToJudge)
                              .value_or(Duration(0));
  return saves > 0 &&
         saves >= static_cast<double>((making + *plain - without).count());
}

bool SampleCache::PayFor(const DatasetPtr& dataset, JpegFormKind kind,
                         size_t file_bytes, DecodeTerms* terms) {
  const std::optional<Duration> cost =
      dataset->of(terms->scale).CostOf(kind, file_bytes);
  if (!cost || !account_.Pay(*cost)) return false;
  terms->paid = *cost;
  return true;
}

void SampleCache::GiveBack(DecodeTerms* terms) {
  account_.Return(std::exchange(terms->paid, Duration(0)));
}

// A decode that makes a form is no measure of decodes. One that notes where
// MCUs begin counts as plain: it takes a little less, so that a little less is
// saved than there really is.
void SampleCache::CountDecode(const DatasetPtr& dataset, const Decoded& decode,
                              DecodeTerms* terms) {
  GiveBack(terms);
  account_.Lend(decode.took);
  const size_t bytes = decode.file_bytes;
  const Duration took = decode.took;
  Dataset::Decodes& decodes = dataset->of(terms->scale);
  const Duration plainly = decodes.plain.AtLeast(bytes).value_or(took);
  if (decode.made) {
    decodes.making[WayOf(*decode.made)].Add(
        bytes, took - decodes.plain.Of(bytes).value_or(took));
    account_.Spend(took - plainly);
    return;
  }
  if (decode.used) {
    account_.Save(plainly - took);
    decodes.by_form[WayOf(*decode.used)].Add(bytes, took);
  } else {
    decodes.plain.Add(bytes, took);
  }
  const size_t way = decode.used ? WayOf(*decode.used) : 0;
  ++decodes.count[way];
  decodes.ns[way] += static_cast<uint64_t>(std::max<int64_t>(0, took.count()));
}

double SampleCache::SavedNs(const DatasetPtr& dataset, JpegFormKind kind) {
  double saved_ns = 0;
  uint64_t hits = 0;
  for (const Dataset::Decodes& decodes : dataset->by_scale) {
    const uint64_t by_form = decodes.count[WayOf(kind)];
    if (by_form < kLeastMeasured || decodes.count[0] < kLeastMeasured) continue;
    saved_ns += decodes.SavedNs(kind);
    hits += by_form;
  }
  return hits > 0 ? std::max(0.0, saved_ns / static_cast<double>(hits)) : 0;
}

double SampleCache::UsesAfter(const DatasetPtr& dataset,
                              const DecodeTerms& terms) {
  return terms.job == nullptr
             ? FormHorizon::kWithoutBound
             : dataset->horizon->UsesAfter(*terms.job, terms.epoch);
}

}  // namespace leat::worker
