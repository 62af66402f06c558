// SPDX-License-Identifier: Apache-2.0
//
// The message that a client sends to create a job. The first byte selects the
// rest: leat.v1.JobSpec, its JSON, leat.v1.Job, leat.v1.Dataset. A pipeline
// that passes Check is compiled, and a second check does not change it.
#include <cmath>
#include <string>
#include <utility>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "rpc/wire/messages.h"
#include "tests/fuzz/pipelines.h"
#include "tests/fuzz/target.h"
#include "worker/image/program/row_program.h"

namespace leat::rpc::job_spec_fuzz {
namespace {

using fuzz::Begun;
using fuzz::OfStoredTypes;
using fuzz::Stored;
using fuzz::WithAllOperators;
using fuzz::WithDraws;

void CheckOne(const JobSpec& spec) {
  (void)CheckJob(spec);
  std::vector<DatasetInfo> datasets(NumSources(spec));
  for (DatasetInfo& dataset : datasets)
    dataset.types.assign(Stored().begin(), Stored().end());
  const auto checked = CheckJob(spec, datasets);
  if (!checked.ok()) return fuzz::Require(!Message(checked.status()).empty());
  for (const CheckedGraph& source : checked->sources) {
    const std::string text = CanonicalText(source.graph);
    const auto again = Check(source.graph, Stored());
    fuzz::Require(again.ok() && CanonicalText(again->graph) == text);
    if (source.typed) (void)worker::RowProgram::Compile(source);
  }
}

// Returns all pipelines, and the shares of a mixture; NaN equals NaN in it.
std::string TextOf(const JobSpec& spec) {
  std::string text = CanonicalText(spec.pipeline);
  for (const MixedSource& source : spec.sources)
    text += source.name + "\n" + CanonicalText(source.pipeline);
  for (const SharesFrom& shares : spec.shares) {
    text += fmt::format("{}:", shares.from_step);
    for (const double weight : shares.weights)
      text += std::isnan(weight) ? " nan" : fmt::format(" {}", weight);
  }
  return text + std::string(Name(spec.mix_end)) + spec.source_field;
}

void Travel(const JobSpec& spec) {
  const auto wire = FromProto(ToProto(spec));
  fuzz::Require(wire.ok() && TextOf(*wire) == TextOf(spec));
  const auto json = JobSpecFromJson(ToJson(spec));
  fuzz::Require(json.ok() && TextOf(*json) == TextOf(spec));
}

JobSpec Mixture() {
  JobSpec spec = WithDraws();
  spec.last_batch = LastBatch::kStream;
  spec.sources = {{"a", std::exchange(spec.pipeline, {})}};
  spec.sources.push_back({"b", spec.sources[0].pipeline});
  spec.sources[1].pipeline.nodes[0].args["path"] = Value("/q");
  spec.shares = {{0, {7, 0}}, {100, {1, 0.5}}};
  spec.source_field = "from";
  return spec;
}

template <class Message>
auto Parsed(std::string_view bytes) {
  Message message;
  if (!message.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    message.Clear();
  return FromProto(message);
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  if (bytes.empty()) return;
  const char kind = bytes[0];
  bytes.remove_prefix(1);
  if (kind == 2) return (void)Parsed<v1::Job>(bytes);
  if (kind == 3) return (void)Parsed<v1::Dataset>(bytes);
  const auto spec =
      kind == 1 ? JobSpecFromJson(bytes) : Parsed<v1::JobSpec>(bytes);
  if (!spec.ok()) return;
  CheckOne(*spec);
  Travel(*spec);
}

std::vector<std::string> Seeds() {
  std::vector<std::string> seeds;
  for (const JobSpec& spec : {WithAllOperators(), WithDraws(), OfStoredTypes()})
    seeds.push_back(std::string(1, '\0') + ToProto(spec).SerializeAsString());
  seeds.push_back("\x01" + ToJson(WithDraws()));
  seeds.push_back("\x01" + ToJson(OfStoredTypes()));
  JobInfo job{.spec = CheckJob(WithDraws()).ok() ? WithDraws() : Begun()};
  job.datasets.resize(1);
  job.datasets[0] = {.id = "d", .name = "n", .reader = "r"};
  job.datasets[0].shards = ShardTable::Uniform(100, 7).value();
  job.datasets[0].classes = {"a", "b"};
  job.datasets[0].types.assign(Stored().begin(), Stored().end());
  job.plan_hash = PlanHash(job.spec, job.datasets);
  seeds.push_back("\x02" + ToProto(job).SerializeAsString());
  JobInfo mixed{.spec = Mixture(), .datasets = {2, job.datasets[0]}};
  mixed.plan_hash = PlanHash(mixed.spec, mixed.datasets);
  seeds.push_back("\x02" + ToProto(mixed).SerializeAsString());
  seeds.push_back(std::string(1, '\0') +
                  ToProto(mixed.spec).SerializeAsString());
  seeds.push_back("\x01" + ToJson(mixed.spec));
  seeds.push_back("\x03" + ToProto(job.datasets[0]).SerializeAsString());
  return seeds;
}

const fuzz::Target kTarget(
    {.name = "job_spec", .run = Run, .seeds = Seeds, .runs = 500});

}  // namespace
}  // namespace leat::rpc::job_spec_fuzz
