// SPDX-License-Identifier: Apache-2.0
#include "core/plan/job.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/plan/enum_names.h"
#include "core/plan/plan.h"
#include "core/plan/share_layout.h"
#include "core/plan/share_schedule.h"
#include "core/plan/text_difference.h"
#include "core/redaction.h"
#include "core/status.h"
#include "fmt/ranges.h"

namespace leat {
namespace {

// Part of the hash, so that another layout of the fields gives another hash.
constexpr std::string_view kPlanHashVersion = "leat.plan.v1";
constexpr std::string_view kPositionHashVersion = "leat.token.v1";

// Returns "" if the pipelines are equal. Compares texts, as the plan hash does
// (-0.0 differs from 0.0).
std::string PipelineDifference(const Graph& existing, const Graph& wanted) {
  const std::string a = CanonicalText(existing), b = CanonicalText(wanted);
  return a == b ? "" : TextDifference(a, b);
}

// Returns "" if both take the same rows.
std::string SelectionDifference(const Selection& existing,
                                const Selection& wanted) {
  if (CanonicalText(existing) == CanonicalText(wanted)) return "";
  return fmt::format("selection \"{}\" != \"{}\"", ShownText(existing),
                     ShownText(wanted));
}

constexpr size_t kShownSources = 4;  // in a difference

// Returns `shown` of the first few, and how many more there are.
std::string Shortened(std::vector<std::string> texts, std::string_view glue) {
  const size_t more = texts.size() - std::min(texts.size(), kShownSources);
  texts.resize(texts.size() - more);
  if (more > 0) texts.push_back(fmt::format("{} more", more));
  return fmt::format("{}", fmt::join(texts, glue));
}

// Returns "a mixture of 2 sources (web, books)".
std::string KindOf(const JobSpec& spec) {
  if (!IsMixture(spec)) return "one pipeline";
  std::vector<std::string> names;
  for (const MixedSource& source : spec.sources) names.push_back(source.name);
  return fmt::format("a mixture of {} sources ({})", spec.sources.size(),
                     Shortened(std::move(names), ", "));
}

// Returns "from step 100: web=7 books=2", for the sources from `first` on.
std::string TextOf(const SharesFrom& shares, const JobSpec& spec,
                   size_t first) {
  std::vector<std::string> weights;
  for (size_t i = first; i < spec.sources.size(); ++i)
    weights.push_back(
        fmt::format("{}={}", spec.sources[i].name, shares.weights[i]));
  return fmt::format("from step {}: {}", shares.from_step,
                     Shortened(std::move(weights), " "));
}

// Returns the weights that are in force at `step`: a schedule has fewer
// segments, as it leaves out those that change no share. REQUIRES: CheckJob is
// OK.
const SharesFrom& SharesAt(const JobSpec& spec, uint64_t step) {
  return *std::prev(
      std::ranges::upper_bound(spec.shares, step, {}, &SharesFrom::from_step));
}

// Returns "" if both deal out the same rows. REQUIRES: both are mixtures.
std::string ShareDifference(const JobSpec& existing, const JobSpec& wanted) {
  const absl::StatusOr<ShareSchedule> a = ScheduleOf(existing),
                                      b = ScheduleOf(wanted);
  // Only checked jobs have schedules; the others differ as they were written.
  if (!a.ok() || !b.ok())
    return existing.shares == wanted.shares ? "" : "weights differ";
  const std::optional<uint64_t> step = FirstDifference(*a, *b);
  if (!step) return "";
  const SharesFrom& ours = SharesAt(existing, *step);
  const SharesFrom& theirs = SharesAt(wanted, *step);
  const size_t sources = std::min(ours.weights.size(), theirs.weights.size());
  size_t first = 0;
  // All sources are shown if there is room for them.
  if (sources > kShownSources)
    while (first < sources && ours.weights[first] == theirs.weights[first])
      ++first;
  if (first == sources) first = 0;  // one of the two begins anew
  return fmt::format("weights at step {} \"{}\" != \"{}\"", *step,
                     TextOf(ours, existing, first),
                     TextOf(theirs, wanted, first));
}

// Names each source that differs. REQUIRES: both are mixtures.
std::string SourcesDifference(const JobSpec& existing, const JobSpec& wanted) {
  std::vector<std::string> texts;
  const size_t ours = existing.sources.size(), theirs = wanted.sources.size();
  for (size_t i = 0; i < std::min(ours, theirs); ++i) {
    const MixedSource &a = existing.sources[i], &b = wanted.sources[i];
    if (a.name != b.name) {
      texts.push_back(
          fmt::format("source {} \"{}\" != \"{}\"", i, a.name, b.name));
    } else if (const std::string text =
                   PipelineDifference(a.pipeline, b.pipeline);
               !text.empty()) {
      texts.push_back(fmt::format("source \"{}\": {}", a.name, text));
    } else if (const std::string text =
                   SelectionDifference(a.selection, b.selection);
               !text.empty()) {
      texts.push_back(fmt::format("source \"{}\": {}", a.name, text));
    }
  }
  if (ours != theirs)
    texts.insert(texts.begin(),
                 fmt::format("{} != {}", KindOf(existing), KindOf(wanted)));
  return Shortened(std::move(texts), "; ");
}

// Returns the differences of pipelines, sources and shares; "" if there are
// none.
std::string DataDifference(const JobSpec& existing, const JobSpec& wanted) {
  std::vector<std::string> texts;
  const auto add = [&](std::string text) {
    if (!text.empty()) texts.push_back(std::move(text));
  };
  if (!IsMixture(existing) && !IsMixture(wanted)) {
    add(PipelineDifference(existing.pipeline, wanted.pipeline));
    add(SelectionDifference(existing.selection, wanted.selection));
    return fmt::format("{}", fmt::join(texts, "; "));
  }
  if (IsMixture(existing) != IsMixture(wanted))
    return fmt::format("{} != {}", KindOf(existing), KindOf(wanted));
  if (existing.mix_end != wanted.mix_end)
    texts.push_back(fmt::format("mix_end {} != {}", Name(existing.mix_end),
                                Name(wanted.mix_end)));
  if (existing.source_field != wanted.source_field)
    texts.push_back(fmt::format("source_field \"{}\" != \"{}\"",
                                existing.source_field, wanted.source_field));
  add(SourcesDifference(existing, wanted));
  add(ShareDifference(existing, wanted));
  return fmt::format("{}", fmt::join(texts, "; "));
}

}  // namespace

std::string_view Name(Order order) {
  return enum_names::NameIn(enum_names::kOrders, order);
}
std::string_view Name(LastBatch last_batch) {
  return enum_names::NameIn(enum_names::kLastBatches, last_batch);
}
std::string_view Name(DecoderClass decoder_class) {
  return enum_names::NameIn(enum_names::kDecoderClasses, decoder_class);
}
std::string_view Name(BadSamplePolicy policy) {
  return enum_names::NameIn(enum_names::kPolicies, policy);
}
std::string_view Name(MixEnd ends) {
  return enum_names::NameIn(enum_names::kMixEnds, ends);
}

bool HasValidField(const JobSpec& spec) {
  return spec.on_bad_sample == BadSamplePolicy::kZero ||
         spec.last_batch == LastBatch::kMask;
}

uint64_t AugmentSeedOf(const JobSpec& spec, uint32_t source) {
  const uint64_t seed = AugmentSeed(spec);
  return IsMixture(spec) ? SourceSeed(seed, source) : seed;
}

bool IsExternal(const JobSpec& spec) {
  for (size_t i = 0; i < NumSources(spec); ++i)
    for (const Node& node : PipelineOf(spec, i).nodes)
      if (node.op == kExternalReader) return true;
  return false;
}

std::vector<uint64_t> FirstSamples(std::span<const DatasetInfo> datasets) {
  std::vector<uint64_t> first = {0};
  for (const DatasetInfo& dataset : datasets)
    first.push_back(first.back() + dataset.shards.num_samples());
  return first;
}

uint64_t AllowedBadSamples(const JobSpec& spec, uint64_t num_samples) {
  const auto samples = static_cast<double>(num_samples);
  // The small term corrects rounding: 0.29 of 100 is 29, though the product is
  // a little less.
  return std::min(num_samples, static_cast<uint64_t>(*spec.max_bad * samples +
                                                     samples * 1e-12));
}

namespace {

// Jobs without these keep the hashes that they had before there were any.
void AddAugmentSeed(const JobSpec& spec, Sha256* hash) {
  if (AugmentSeed(spec) != spec.seed)
    hash->UpdateField("augment_seed").UpdateU64(AugmentSeed(spec));
}
void AddSelection(const Selection& selection, bool place, Sha256* hash) {
  if (IsSet(selection))
    hash->UpdateField("selection").UpdateField(CanonicalText(selection, place));
}

Digest HashOfPlan(std::string_view version, const Graph& pipeline,
                  const JobSpec& spec, const Digest& dataset) {
  Sha256 hash;
  hash.UpdateField(version);
  hash.UpdateField(CanonicalText(pipeline));
  hash.UpdateU64(spec.seed).UpdateU64(spec.batch);
  hash.UpdateU64(static_cast<uint64_t>(spec.order));
  hash.UpdateU64(static_cast<uint64_t>(spec.last_batch));
  hash.UpdateU64(spec.num_parts);
  // Jobs from before this option existed keep their hashes.
  if (spec.rotate_parts) hash.UpdateField("rotate_parts");
  if (spec.mix_parts) hash.UpdateField("mix_parts");
  // Before this field, draws for a step used each row's pass.
  if (spec.last_batch == LastBatch::kStream && DrawsForSteps(pipeline))
    hash.UpdateField("draws_for_steps");
  AddSelection(spec.selection, version == kPlanHashVersion, &hash);
  AddAugmentSeed(spec, &hash);
  hash.UpdateU64(spec.order == Order::kShardShuffle ? spec.shuffle_window : 0);
  hash.UpdateU64(static_cast<uint64_t>(spec.decoder_class));
  hash.UpdateU64(static_cast<uint64_t>(spec.on_bad_sample));
  hash.Update(std::as_bytes(std::span(dataset)));
  return hash.Finish();
}

// Returns whether a reader's argument says where its records are, rather than
// what they are.
bool IsPlace(const Node& reader, std::string_view arg) {
  static constexpr std::string_view kPlaces[] = {
      "path", "paths", "root", "files", "array", "annotations", "index"};
  if (reader.op == "readers.idx") return arg == "images" || arg == "labels";
  return std::find(std::begin(kPlaces), std::end(kPlaces), arg) !=
         std::end(kPlaces);
}

Graph WithoutPlaces(Graph pipeline) {
  for (Node& node : pipeline.nodes)
    if (node.op.starts_with("readers."))
      std::erase_if(node.args,
                    [&](const auto& arg) { return IsPlace(node, arg.first); });
  return pipeline;
}

// Returns whether the source has a weight before `step`.
bool HasShare(const ShareSchedule& schedule, uint32_t source, uint64_t step) {
  for (size_t i = 0; i < schedule.num_segments(); ++i)
    if ((i == 0 || schedule.from_step(i) < step) &&
        schedule.weights(i)[source] > 0)
      return true;
  return false;
}

// `digest_of`: of the dataset with this number. Sources without a share before
// `step` are left out.
template <class DigestOf>
Digest HashOfMixture(std::string_view version, const JobSpec& spec,
                     uint64_t step, bool with_places, DigestOf digest_of) {
  const ShareSchedule schedule = *ScheduleOf(spec);
  Sha256 hash;
  hash.UpdateField(version).UpdateField("sources");
  hash.UpdateU64(spec.seed).UpdateU64(spec.batch);
  hash.UpdateU64(static_cast<uint64_t>(spec.order));
  hash.UpdateU64(spec.order == Order::kShardShuffle ? spec.shuffle_window : 0);
  hash.UpdateU64(static_cast<uint64_t>(spec.mix_end));
  hash.UpdateU64(static_cast<uint64_t>(spec.decoder_class));
  hash.UpdateU64(static_cast<uint64_t>(spec.on_bad_sample));
  hash.UpdateField(spec.source_field);
  hash.UpdateField(schedule.HistoryText(step));
  AddAugmentSeed(spec, &hash);
  for (uint32_t i = 0; i < spec.sources.size(); ++i) {
    if (!HasShare(schedule, i, step)) continue;
    const Graph& pipeline = spec.sources[i].pipeline;
    hash.UpdateU64(i).UpdateField(
        CanonicalText(with_places ? pipeline : WithoutPlaces(pipeline)));
    AddSelection(spec.sources[i].selection, with_places, &hash);
    const Digest digest = digest_of(i);
    hash.Update(std::as_bytes(std::span(digest)));
  }
  return hash.Finish();
}

}  // namespace

absl::StatusOr<ShareSchedule> ScheduleOf(const JobSpec& spec) {
  std::vector<std::string> names;
  for (const MixedSource& source : spec.sources) names.push_back(source.name);
  return ShareSchedule::Create(spec.shares, names, spec.batch);
}

Digest PlanHash(const JobSpec& spec, std::span<const DatasetInfo> datasets) {
  if (!IsMixture(spec))
    return HashOfPlan(kPlanHashVersion, spec.pipeline, spec,
                      datasets[0].fingerprint);
  return HashOfMixture(kPlanHashVersion, spec, kStreamSteps, true,
                       [&](size_t i) { return datasets[i].fingerprint; });
}

Digest PositionHash(const JobInfo& job, uint64_t step) {
  for (const DatasetInfo& dataset : job.datasets)
    if (dataset.content == Digest{}) return job.plan_hash;
  if (!IsMixture(job.spec))
    return HashOfPlan(kPositionHashVersion, WithoutPlaces(job.spec.pipeline),
                      job.spec, job.datasets[0].content);
  return HashOfMixture(kPositionHashVersion, job.spec, step, false,
                       [&](size_t i) { return job.datasets[i].content; });
}

bool RedactPlaces(Graph* pipeline) {
  bool redacted = false;
  const auto redact = [&](std::string* place) {
    std::string shown = RedactedUri(*place);
    redacted = redacted || shown != *place;
    *place = std::move(shown);
  };
  for (Node& node : pipeline->nodes) {
    if (!node.op.starts_with("readers.")) continue;
    for (auto& [name, value] : node.args) {
      if (!IsPlace(node, name)) continue;
      if (auto* place = std::get_if<std::string>(&value)) redact(place);
      if (auto* places = std::get_if<std::vector<std::string>>(&value))
        for (std::string& place : *places) redact(&place);
      if (auto* list = std::get_if<LongList>(&value))
        for (std::string& place : list->first) redact(&place);
    }
  }
  return redacted;
}

bool RedactPlaces(Selection* selection) {
  bool redacted = false;
  for (std::string* uri : {&selection->arrangement.samples.uri,
                           &selection->arrangement.weights.uri}) {
    std::string shown = RedactedUri(*uri);
    redacted = redacted || shown != *uri;
    *uri = std::move(shown);
  }
  return redacted;
}

std::string Difference(const JobSpec& existing, const JobSpec& wanted) {
  std::string text;
  const auto add = [&](const std::string& difference) {
    if (!text.empty()) text += "; ";
    text += difference;
  };
  const auto compare = [&](std::string_view field, const auto& a,
                           const auto& b) {
    if (a != b) add(fmt::format("{} {} != {}", field, a, b));
  };
  const auto compare_names = [&](std::string_view field, auto a, auto b) {
    compare(field, Name(a), Name(b));
  };
  compare("batch", existing.batch, wanted.batch);
  compare("seed", existing.seed, wanted.seed);
  if (existing.augment_seed || wanted.augment_seed)
    compare("augment_seed", AugmentSeed(existing), AugmentSeed(wanted));
  compare_names("order", existing.order, wanted.order);
  compare_names("last_batch", existing.last_batch, wanted.last_batch);
  compare("num_parts", existing.num_parts, wanted.num_parts);
  compare("rotate_parts", existing.rotate_parts, wanted.rotate_parts);
  compare("mix_parts", existing.mix_parts, wanted.mix_parts);
  // The window has no effect under other orders.
  if (existing.order == Order::kShardShuffle &&
      wanted.order == Order::kShardShuffle)
    compare("shuffle_window", existing.shuffle_window, wanted.shuffle_window);
  if (wanted.decoder_class != DecoderClass::kAuto)
    compare_names("decoder_class", existing.decoder_class,
                  wanted.decoder_class);
  compare_names("on_bad_sample", existing.on_bad_sample, wanted.on_bad_sample);
  const auto text_of = [](const std::optional<double>& share) {
    return share ? fmt::format("{}", *share) : "none";
  };
  if (existing.max_bad != wanted.max_bad)
    compare("max_bad", text_of(existing.max_bad), text_of(wanted.max_bad));
  if (const std::string of_rows = DataDifference(existing, wanted);
      !of_rows.empty())
    add(of_rows);
  return text;
}

}  // namespace leat
