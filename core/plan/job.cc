// SPDX-License-Identifier: Apache-2.0
#include "core/plan/job.h"

#include <algorithm>
#include <array>

#include "core/pipeline/device_forms.h"
#include "core/plan/plan.h"
#include "core/redaction.h"
#include "core/status.h"

namespace leat {
namespace {

constexpr size_t kMaxJobNameLength = 128;

// Part of the hash, so that another layout of the fields gives another hash.
constexpr std::string_view kPlanHashVersion = "leat.plan.v1";
constexpr std::string_view kPositionHashVersion = "leat.token.v1";

template <class Enum>
using Names = std::pair<Enum, std::string_view>;

constexpr std::array<Names<Order>, 3> kOrders = {{
    {Order::kSequential, "sequential"},
    {Order::kGlobalShuffle, "global"},
    {Order::kShardShuffle, "shard"},
}};
constexpr std::array<Names<LastBatch>, 6> kLastBatches = {{
    {LastBatch::kDrop, "drop"},
    {LastBatch::kFill, "fill"},
    {LastBatch::kPad, "pad"},
    {LastBatch::kPartial, "partial"},
    {LastBatch::kStream, "stream"},
    {LastBatch::kMask, "mask"},
}};
constexpr std::array<Names<DecoderClass>, 3> kDecoderClasses = {{
    {DecoderClass::kExact, "exact"},
    {DecoderClass::kNvjpeg, "nvjpeg"},
    {DecoderClass::kAuto, "auto"},
}};
constexpr std::array<Names<BadSamplePolicy>, 3> kPolicies = {{
    {BadSamplePolicy::kFail, "fail"},
    {BadSamplePolicy::kReplace, "replace"},
    {BadSamplePolicy::kZero, "zero"},
}};

template <class Enum, size_t kSize>
std::string_view NameIn(const std::array<Names<Enum>, kSize>& names,
                        Enum value) {
  for (const auto& [known, name] : names)
    if (known == value) return name;
  return "unknown";
}

template <class Enum, size_t kSize>
absl::Status CheckEnum(std::string_view field,
                       const std::array<Names<Enum>, kSize>& names,
                       Enum value) {
  std::string expected;
  for (const auto& [known, name] : names) {
    if (known == value) return absl::OkStatus();
    if (!expected.empty()) expected += ", ";
    expected += name;
  }
  return InvalidArgument("{} {}: want one of {}", field,
                         static_cast<int>(value), expected);
}

bool IsNameCharacter(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
         (c >= '0' && c <= '9') || c == '.' || c == '_' || c == '-';
}

absl::Status CheckName(std::string_view name) {
  if (name.empty())
    return InvalidArgument("job name \"\": want 1 to {} of A-Z a-z 0-9 . _ -",
                           kMaxJobNameLength);
  if (name.size() > kMaxJobNameLength)
    return InvalidArgument(
        "job name \"{}...\" of {} characters: want at most {}",
        std::string(name.substr(0, 32)), name.size(), kMaxJobNameLength);
  const auto bad = std::find_if_not(name.begin(), name.end(), IsNameCharacter);
  if (bad != name.end())
    return InvalidArgument(
        "job name \"{}\" has character {} at {}: want only A-Z a-z 0-9 . _ -",
        name, static_cast<int>(static_cast<uint8_t>(*bad)), bad - name.begin());
  return absl::OkStatus();
}

absl::Status CheckMaxBad(const JobSpec& spec) {
  if (!spec.max_bad) return absl::OkStatus();
  const double max_bad = *spec.max_bad;
  if (!(max_bad >= 0 && max_bad <= 1))
    return InvalidArgument(
        "max_bad {}: want 0 to 1, a share of the dataset's samples", max_bad);
  if (spec.on_bad_sample == BadSamplePolicy::kFail)
    return InvalidArgument(
        "max_bad {}: on_bad_sample fail ends at the first bad sample; want "
        "replace or zero with max_bad",
        max_bad);
  if (IsExternal(spec))
    return InvalidArgument(
        "max_bad {}: the samples of {} are no dataset that has a share; want "
        "none",
        max_bad, kExternalReader);
  return absl::OkStatus();
}

std::string_view Line(std::string_view text, size_t begin) {
  return text.substr(begin, text.find('\n', begin) - begin);
}

// Describes the first line that differs.
std::string TextDifference(const std::string& whole_a,
                           const std::string& whole_b) {
  const std::string a = Redacted(whole_a), b = Redacted(whole_b);
  if (a == b)
    return "pipelines differ in the user, password or query of an address";
  const size_t at =
      std::mismatch(a.begin(), a.end(), b.begin(), b.end()).first - a.begin();
  const size_t newline = at == 0 ? std::string::npos : a.rfind('\n', at - 1);
  const size_t begin = newline == std::string::npos ? 0 : newline + 1;
  const auto show = [&](const std::string& text) {
    return begin < text.size() ? Line(text, begin) : "(end)";
  };
  return fmt::format("pipeline \"{}\" != \"{}\"", show(a), show(b));
}

}  // namespace

std::string_view Name(Order order) { return NameIn(kOrders, order); }
std::string_view Name(LastBatch last_batch) {
  return NameIn(kLastBatches, last_batch);
}
std::string_view Name(DecoderClass decoder_class) {
  return NameIn(kDecoderClasses, decoder_class);
}
std::string_view Name(BadSamplePolicy policy) {
  return NameIn(kPolicies, policy);
}

bool HasValidField(const JobSpec& spec) {
  return spec.on_bad_sample == BadSamplePolicy::kZero ||
         spec.last_batch == LastBatch::kMask;
}

bool IsExternal(const JobSpec& spec) {
  return std::any_of(
      spec.pipeline.nodes.begin(), spec.pipeline.nodes.end(),
      [](const Node& node) { return node.op == kExternalReader; });
}

absl::StatusOr<CheckedGraph> CheckSpec(const JobSpec& spec,
                                       std::span<const ValueType> stored) {
  RETURN_IF_ERROR(CheckName(spec.name));
  if (spec.batch == 0 || spec.batch > kMaxBatch)
    return InvalidArgument("batch {}: want 1 to {}", spec.batch, kMaxBatch);
  RETURN_IF_ERROR(CheckEnum("order", kOrders, spec.order));
  RETURN_IF_ERROR(CheckEnum("last_batch", kLastBatches, spec.last_batch));
  RETURN_IF_ERROR(
      CheckEnum("decoder_class", kDecoderClasses, spec.decoder_class));
  RETURN_IF_ERROR(CheckEnum("on_bad_sample", kPolicies, spec.on_bad_sample));
  if (spec.num_parts > 0 && spec.batch % spec.num_parts != 0)
    return InvalidArgument(
        "num_parts {}: want a divisor of the batch, which is {}",
        spec.num_parts, spec.batch);
  if (spec.rotate_parts && spec.num_parts == 0)
    return InvalidArgument("rotate_parts: want num_parts with it");
  if (spec.mix_parts && spec.num_parts == 0)
    return InvalidArgument("mix_parts: want num_parts with it");
  if (spec.mix_parts && spec.order == Order::kSequential)
    return InvalidArgument("mix_parts: want order global or shard with it");
  if (spec.order == Order::kShardShuffle &&
      (spec.shuffle_window == 0 || spec.shuffle_window > kMaxShards))
    return InvalidArgument("shuffle_window {}: want 1 to {} shards",
                           spec.shuffle_window, kMaxShards);
  RETURN_IF_ERROR(CheckMaxBad(spec));
  ASSIGN_OR_RETURN(CheckedGraph checked, Check(spec.pipeline, stored));
  if (!checked.typed) return checked;
  if (spec.on_bad_sample == BadSamplePolicy::kReplace && IsExternal(spec))
    return InvalidArgument(
        "on_bad_sample replace: consumers of {} bring the samples of their own "
        "rows only, no substitutes; want fail or zero",
        kExternalReader);
  if (spec.last_batch == LastBatch::kStream && IsExternal(spec))
    return InvalidArgument(
        "last_batch stream: consumers of {} bring samples by epochs; want "
        "drop, fill, pad, mask or partial",
        kExternalReader);
  if (HasValidField(spec))
    for (const Field& field : checked.schema.fields)
      if (field.name == kValidField)
        return InvalidArgument(
            "output \"{}\": want another name, as {} adds a field of this name",
            field.name,
            spec.last_batch == LastBatch::kMask ? "last_batch \"mask\""
                                                : "on_bad_sample \"zero\"");
  if (spec.decoder_class == DecoderClass::kNvjpeg)
    if (const absl::Status forms = CheckDecoderForms(checked); !forms.ok())
      return InvalidArgument("decoder_class nvjpeg: {}; want exact",
                             Message(forms));
  return checked;
}

absl::Status CheckAgainst(const JobSpec& spec, const DatasetInfo& dataset) {
  const uint64_t samples = dataset.shards.num_samples();
  if (samples == 0)
    return InvalidArgument("dataset \"{}\" has 0 samples: want at least 1",
                           dataset.name);
  const uint64_t parts = std::max(spec.num_parts, uint32_t{1});
  if (spec.last_batch == LastBatch::kDrop &&
      samples / parts < spec.batch / parts)
    return parts == 1
               ? InvalidArgument(
                     "batch {}: want at most {}, the samples of dataset "
                     "\"{}\", or a last_batch other than \"drop\"",
                     spec.batch, samples, dataset.name)
               : InvalidArgument(
                     "batch {} in {} parts takes {} rows a part: want at most "
                     "{}, the samples of the smallest part of dataset \"{}\", "
                     "or a last_batch other than \"drop\"",
                     spec.batch, parts, spec.batch / parts, samples / parts,
                     dataset.name);
  // A part without samples has none to repeat.
  if (spec.last_batch != LastBatch::kPartial && parts > samples)
    return InvalidArgument(
        "num_parts {}: want at most {}, the samples of dataset \"{}\", or "
        "last_batch \"partial\"",
        parts, samples, dataset.name);
  return absl::OkStatus();
}

uint64_t AllowedBadSamples(const JobSpec& spec, uint64_t num_samples) {
  const auto samples = static_cast<double>(num_samples);
  // The small term corrects rounding: 0.29 of 100 is 29, though the product is
  // a little less.
  return std::min(num_samples, static_cast<uint64_t>(*spec.max_bad * samples +
                                                     samples * 1e-12));
}

namespace {

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

}  // namespace

Digest PlanHash(const JobSpec& spec, const DatasetInfo& dataset) {
  return HashOfPlan(kPlanHashVersion, spec.pipeline, spec, dataset.fingerprint);
}

Digest PositionHash(const JobInfo& job) {
  if (job.dataset.content == Digest{}) return job.plan_hash;
  Graph pipeline = job.spec.pipeline;
  for (Node& node : pipeline.nodes)
    if (node.op.starts_with("readers."))
      std::erase_if(node.args,
                    [&](const auto& arg) { return IsPlace(node, arg.first); });
  return HashOfPlan(kPositionHashVersion, pipeline, job.spec,
                    job.dataset.content);
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
  // Compares texts, as the plan hash does (-0.0 differs from 0.0).
  const std::string existing_text = CanonicalText(existing.pipeline);
  const std::string wanted_text = CanonicalText(wanted.pipeline);
  if (existing_text != wanted_text)
    add(TextDifference(existing_text, wanted_text));
  return text;
}

}  // namespace leat
