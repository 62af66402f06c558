// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/describe.h"

#include <algorithm>

#include "client/cli/base/text.h"
#include "client/cli/views/bottleneck.h"
#include "client/cli/views/describe_groups.h"
#include "client/cli/views/describe_sources.h"
#include "client/cli/views/describe_text.h"
#include "client/cli/views/listing.h"
#include "client/cli/views/short_lists.h"
#include "core/counted.h"
#include "core/plan/short_lists.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

constexpr size_t kMaxClasses = 20;
constexpr size_t kMaxBadSamples = 100;

std::string Reference(const Json& ref) {
  const uint64_t output = Whole(ref, "output");
  return output == 0 ? fmt::format("%{}", Whole(ref, "node"))
                     : fmt::format("%{}.{}", Whole(ref, "node"), output);
}

// Formats a leat.v1.Value.
std::string Argument(const Json& value) {
  if (!value.is_object() || value.empty()) return "?";
  const std::string kind = value.begin().key();
  if (kind == "ref") return Reference(value["ref"]);
  if (kind == "ints_value") return ShortList(Items(value, "ints_value.values"));
  if (kind == "floats_value")
    return ShortList(Items(value, "floats_value.values"));
  if (kind == "strings_value")
    return ShortList(Items(value, "strings_value.values"));
  if (kind == "string_value") return '"' + Text(value, kind) + '"';
  return Text(value, kind);
}

std::vector<Line> PipelineLines(const Json& graph) {
  std::vector<Line> lines;
  for (std::string& line : PipelineListing(graph)) {
    lines.push_back({std::move(line), Tone::kPlain, 2});
  }
  return lines;
}

// Returns "image uint8 (224, 224, 3); label int32 ()".
std::string SchemaText(const Json& schema) {
  std::string out;
  for (const Json& field : schema) {
    std::string shape = ShortList(Items(field, "shape"));
    shape.front() = '(';
    shape.back() = ')';
    out +=
        fmt::format("{}{} {} {}", out.empty() ? "" : "; ", Text(field, "name"),
                    EnumWord(Text(field, "dtype"), "D_TYPE_"), shape);
  }
  return out;
}

// Returns "replace, at most 1 % (2 of 12 bad)".
std::string BadSamplePolicy(const Json& job) {
  const Json& spec = At(job, "job.spec");
  const std::string word =
      EnumWord(Text(spec, "on_bad_sample"), "BAD_SAMPLE_POLICY_");
  if (!spec.contains("max_bad")) return word;
  return fmt::format("{}, at most {:.6g} % ({} of {} bad)", word,
                     100 * Number(spec, "max_bad"),
                     Whole(job, "bad_samples_different"),
                     Whole(job, "bad_samples_allowed"));
}

Section BadSamples(const Json& job) {
  Section section;
  const Json& bad = Items(job, "bad_samples");
  section.title =
      fmt::format("Bad samples (met {}, {} listed)",
                  Counted(Whole(job, "bad_samples_total"), "time"), bad.size());
  const bool mixed = !Items(job, "job.spec.sources").empty();
  section.table.columns = {{"SAMPLE", 0, false, true},
                           {"TIMES", 0, false, true},
                           {"RECORD"},
                           {"REASON"}};
  auto& columns = section.table.columns;
  if (mixed) columns.insert(columns.begin(), Column{"SOURCE"});
  for (const Json& sample : bad) {
    if (section.table.rows.size() == kMaxBadSamples) break;
    section.table.rows.push_back({Text(sample, "sample"),
                                  Text(sample, "count"),
                                  Text(sample, "record"),
                                  {Text(sample, "reason"), Tone::kWarn}});
    auto& cells = section.table.rows.back();
    if (mixed) cells.insert(cells.begin(), Text(sample, "source"));
  }
  return section;
}

// Returns "7", or "7, of operators 8".
std::string SeedText(const Json& spec) {
  const std::string seed = Text(spec, "seed");
  return spec.contains("augment_seed")
             ? fmt::format("{}, of operators {}", seed,
                           Text(spec, "augment_seed"))
             : seed;
}

// Returns "epoch 2, step 7 of 1251"; "-" if the position is not known.
std::string PositionText(const Json& job) {
  if (!HasPosition(job)) return "-";
  return fmt::format(
      "epoch {}, step {}", Whole(job, "epoch"),
      OfSteps(Whole(job, "step"), " of ", Whole(job, "steps_per_epoch")));
}

// Returns the class, and the workers that serve it; all workers serve class
// exact.
Cell DecoderClass(const Json& spec, const Json& workers) {
  const std::string value = Text(spec, "decoder_class");
  const std::string word = EnumWord(value, "DECODER_CLASS_");
  if (word.empty() || word == "exact") return word;
  uint64_t ready = 0, able = 0;
  for (const Json& worker : workers) {
    if (Text(worker, "state") != "WORKER_STATE_READY") continue;
    ++ready;
    const std::vector<std::string> has = Strings(worker, "decoder_classes");
    able += std::count(has.begin(), has.end(), value) > 0 ? 1 : 0;
  }
  return {fmt::format("{} ({} of {} ready workers ha{} it)", word, able, ready,
                      able == 1 ? "s" : "ve"),
          able == 0 ? Tone::kBad : Tone::kPlain};
}

// Returns where the job is computed; empty: the coordinator does not say.
std::string GpuUse(const Json& job, const Json& workers) {
  const std::string word = EnumWord(Text(job, "gpu_use"), "GPU_USE_");
  if (word == "yes") {
    const auto gpus = std::count_if(
        workers.begin(), workers.end(),
        [](const Json& worker) { return !Items(worker, "devices").empty(); });
    return gpus == 0 ? "could be used, but no worker has one"
                     : fmt::format("used by the {} worker{} that ha{}", gpus,
                                   gpus == 1 ? "" : "s",
                                   gpus == 1 ? "s one" : "ve one");
  }
  if (word != "no") return word;
  return fmt::format("no: {}; GPU workers compute this job on their cores",
                     Text(job, "gpu_reason"));
}

}  // namespace

std::vector<std::string> PipelineListing(const Json& graph) {
  std::vector<std::string> lines;
  for (const Json& node : Items(graph, "nodes")) {
    std::vector<std::string> args;
    for (const Json& input : Items(node, "inputs")) {
      args.push_back(Reference(input));
    }
    for (const auto& [name, value] : At(node, "args").items()) {
      args.push_back(fmt::format("{}={}", name, Argument(value)));
    }
    lines.push_back(fmt::format("%{} = {}({})", lines.size(), Text(node, "op"),
                                fmt::join(args, ", ")));
  }
  for (const Json& output : Items(graph, "outputs")) {
    lines.push_back(fmt::format("{} -> \"{}\"", Reference(At(output, "ref")),
                                Text(output, "name")));
  }
  return lines;
}

// Returns the creator. Without client authentication it has no name.
std::string Creator(const Json& job) {
  const std::string creator = Text(job, "created_by");
  return creator == "anonymous" ? "a caller without a name" : creator;
}

View DescribeJob(const Json& job, const Json& workers, const Json& consumers,
                 absl::Time now) {
  View view;
  view.data = job;
  view.names = {Text(job, "job.spec.name")};
  const Json& spec = At(job, "job.spec");
  Section facts;
  facts.facts = {
      {"Job", {Text(spec, "name"), Tone::kBold}},
      {"Created", When(job, "created_at", now)},
      {"Created by", Creator(job)},
      {"Dataset",
       fmt::format(
           "{} ({})", Text(job, "job.dataset.name"),
           Counted(Whole(job, "job.dataset.shards.num_samples"), "sample"))},
      {"Batch (rows)", Text(spec, "batch")},
      {"Seed", SeedText(spec)},
      {"Order", EnumWord(Text(spec, "order"), "ORDER_")},
      {"Last batch", EnumWord(Text(spec, "last_batch"), "LAST_BATCH_")},
      {"Row layout",
       Whole(spec, "num_parts") == 0
           ? "global"
           : fmt::format(
                 "{} parts{}{}", Whole(spec, "num_parts"),
                 Text(spec, "rotate_parts") == "true" ? ", rotating" : "",
                 Text(spec, "mix_parts") == "true" ? ", mixed" : "")},
      {"Decoder class", DecoderClass(spec, workers)},
      {"Began with", DecodersText(At(job, "decoders"))},
      {"GPU", GpuUse(job, workers)},
      {"On bad sample", BadSamplePolicy(job)},
      {"Plan hash", HexOfBase64(Text(job, "job.plan_hash"))},
      {"Fields", SchemaText(Items(job, "job.schema"))},
      {"Position", PositionText(job)},
      {"Reached", HasPosition(job) ? When(job, "position_at", now) : "-"},
      {"Rate (rows/s)", Rate(Number(job, "rows_per_s"))},
      {"Stall (%)", Percent(Number(job, "stall_fraction"))},
      {"Limited by", LimitText(job)}};
  if (const std::string failure = Text(job, "failure"); !failure.empty())
    facts.facts.emplace_back("Given up", Cell(failure, Tone::kBad));
  Section pipeline;
  if (Items(spec, "sources").empty()) {
    pipeline.title = "Pipeline";
    pipeline.lines = PipelineLines(At(spec, "pipeline"));
  }
  Json own = Json::array();
  for (const Json& consumer : consumers) {
    if (Text(consumer, "stats.job") == view.names[0]) own.push_back(consumer);
  }
  Section pulls;
  pulls.title = fmt::format("Consumers ({})", own.size());
  pulls.table = ConsumersTable(own, now);
  view.sections = {std::move(facts), std::move(pipeline), SourcesOf(job, own)};
  for (Section& groups : GroupsOf(job))
    view.sections.push_back(std::move(groups));
  view.sections.push_back(std::move(pulls));
  view.sections.push_back(BadSamples(job));
  return view;
}

namespace {

// "2 s ago: 16384 of 1281167 files, directories and lists; nothing has changed"
std::string LookText(const Json& dataset, absl::Time now) {
  if (Text(dataset, "looked_at").empty()) return "not since it was listed";
  const std::vector<std::string> changes = Strings(dataset, "changes");
  const uint64_t total = Whole(dataset, "looked_total");
  const std::string when = When(dataset, "looked_at", now);
  if (total == 0) return fmt::format("{}, when it was listed", when);
  return fmt::format("{}: {} of {} files, directories and lists; {}", when,
                     Whole(dataset, "looked_entries"), total,
                     changes.empty()
                         ? "nothing has changed"
                         : fmt::format("{}", fmt::join(changes, "; ")));
}

// Returns "looked at 4096 samples of 10000", or "120000 files and 90000 samples
// so far".
std::string ProgressText(const Json& dataset) {
  const uint64_t of = Whole(dataset, "walked_total");
  const uint64_t files = Whole(dataset, "files");
  const std::string samples = Counted(Whole(dataset, "walked"), "sample");
  if (of > 0) return fmt::format("looked at {} of {}", samples, of);
  return fmt::format("{}{} so far",
                     files == 0 ? "" : Counted(files, "file") + " and ",
                     samples);
}

}  // namespace

View DescribeDataset(const Json& dataset, absl::Time now) {
  View view;
  view.data = dataset;
  view.names = {Text(dataset, "dataset.name")};
  const std::string state = Text(dataset, "state");
  std::vector<std::string> classes = Strings(dataset, "dataset.classes");
  // A folder without class folders has one class without a name.
  if (classes.size() == 1 && classes[0].empty()) classes.clear();
  Section facts;
  facts.facts = {
      {"Dataset", {Text(dataset, "dataset.name"), Tone::kBold}},
      {"Id", Text(dataset, "dataset.id")},
      {"State",
       {state, state == "ready"    ? Tone::kGood
               : state == "failed" ? Tone::kBad
                                   : Tone::kWarn}},
      {"Reader", WithShortLists(Text(dataset, "dataset.reader"))},
      {"Samples", Text(dataset, "dataset.shards.num_samples")},
      {"Shards", std::to_string(NumShards(At(dataset, "dataset")))},
      {"Size", Size(Whole(dataset, "dataset.bytes"))},
      {"Index", Size(Whole(dataset, "index_bytes"))},
      {"Listed", When(dataset, "indexed_at", now)},
      {"Looked at", LookText(dataset, now)},
      {"Fingerprint", HexOfBase64(Text(dataset, "dataset.fingerprint"))},
      {"Jobs", fmt::format("{}", fmt::join(Strings(dataset, "jobs"), ", "))}};
  for (const Json& each : Items(dataset, "passed_over"))
    facts.lines.push_back(
        {"Passed over: " + PassedOverLine(each), Tone::kWarn});
  if (Whole(dataset, "walked") + Whole(dataset, "files") > 0)
    facts.facts.emplace_back("Progress", ProgressText(dataset));
  if (!Text(dataset, "failure").empty()) {
    facts.facts.emplace_back("Failure",
                             Cell(Text(dataset, "failure"), Tone::kBad));
  }
  Section names;
  names.title = fmt::format("Classes ({})", classes.size());
  std::string line;
  for (size_t i = 0; i < std::min(classes.size(), kMaxClasses); ++i) {
    line += fmt::format("{}{} {}", i == 0 ? "" : ", ", i, classes[i]);
  }
  if (classes.size() > kMaxClasses) line += ", ... (-o json shows all)";
  if (!line.empty()) names.lines.push_back({line, Tone::kPlain, 2});
  view.sections = {std::move(facts), std::move(names)};
  return view;
}

}  // namespace leat::cli
