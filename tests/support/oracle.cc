// SPDX-License-Identifier: Apache-2.0
//
// leat_oracle SPEC.json EPOCHS [--samples]: prints what every batch of a job
// must be.
//
// Lists the datasets, walks the plan and computes every row, one after the
// other, on one thread: no coordinator, no worker, no scheduler, no cache, no
// wire. Prints one line per batch: "epoch step sha256" (the hash of every
// field's name, a zero byte, and its rows); with --samples the samples of the
// rows follow. Exit codes: 0; 1 failed; 2 wrong use.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/plan/checked_job.h"
#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "core/status.h"
#include "rpc/wire/messages.h"
#include "tests/support/oracle_packing.h"
#include "tests/support/oracle_selection.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

// A source of the job. Its samples have the job's numbers, from `first` on.
struct OracleSource {
  uint64_t first = 0, seed = 0;
  std::unique_ptr<Source> records;
  std::unique_ptr<RowProgram> program;

  std::string Describe(uint64_t sample) const {
    return records->Describe(sample - first);
  }
  absl::StatusOr<StoredSample> Read(uint64_t sample) const {
    return records->Read(sample - first);
  }
  RowInput InputOf(uint64_t pass, uint64_t sample,
                   const StoredSample& stored) const {
    return {.seed = seed,
            .epoch = pass,
            .sample = sample - first,
            .fields = stored.fields};
  }
};

struct Oracle {
  JobSpec spec;
  BatchSchema schema;  // the pipelines', without fields that the job adds
  std::vector<OracleSource> sources;
  std::unique_ptr<Plan> plan;
  Scratch scratch{ImageLimits{}};

  const OracleSource& Of(uint64_t sample) const {
    return sources[plan->SourceOf(sample)];
  }
};

// Returns the rows that a pipeline packs of the samples that are chosen.
absl::StatusOr<std::unique_ptr<Source>> Pack(
    const CheckedGraph& graph, const std::string& blob,
    const std::map<size_t, std::vector<uint64_t>>& chosen, size_t number) {
  ASSIGN_OR_RETURN(const PackNode pack,
                   ReadPackNode(graph.graph.nodes[graph.stored]));
  ASSIGN_OR_RETURN(
      std::unique_ptr<Source> documents,
      OpenSource(graph.graph.nodes[graph.reader], blob, SourceLimits{}));
  if (const auto own = chosen.find(number); own != chosen.end())
    documents =
        std::make_unique<SelectedSource>(std::move(documents), own->second);
  return PackedByHand::Of(*documents, pack, graph.types[graph.reader]);
}

// Returns the samples that an arrangement chooses of `count`, in their order.
// The dataset has the groups of all, and gets those of the chosen.
absl::StatusOr<std::vector<uint64_t>> Choose(const Arrangement& arrangement,
                                             const Node& reader,
                                             const std::string& blob,
                                             uint64_t count,
                                             DatasetInfo* dataset) {
  std::vector<uint64_t> samples = ChosenBy(arrangement, count);
  ASSIGN_OR_RETURN(const std::unique_ptr<Source> all,
                   OpenSource(reader, blob, SourceLimits{}));
  if (!arrangement.where.empty()) {
    ASSIGN_OR_RETURN(samples,
                     ThoseWhere(arrangement.where, reader, *all, samples));
  }
  if (!IsGrouped(arrangement)) return samples;
  ASSIGN_OR_RETURN(GroupedSamples grouped, InGroups(arrangement, reader, *all,
                                                    dataset->groups, samples));
  dataset->groups = std::move(grouped.groups);
  return std::move(grouped.samples);
}

absl::StatusOr<std::unique_ptr<Oracle>> Make(const std::string& json) {
  auto oracle = std::make_unique<Oracle>();
  JobSpec& spec = oracle->spec;
  ASSIGN_OR_RETURN(spec, rpc::JobSpecFromJson(json));
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(spec));
  std::vector<DatasetInfo> datasets;
  std::vector<std::string> blobs;
  std::map<size_t, std::vector<uint64_t>> chosen;  // by source
  for (const CheckedGraph& graph : checked.sources) {
    const Node& reader = graph.graph.nodes[graph.reader];
    ASSIGN_OR_RETURN(BuiltIndex index, BuildIndex(reader, SourceLimits{}));
    DatasetInfo& dataset = datasets.emplace_back();
    dataset.reader = CanonicalText(reader);
    dataset.fingerprint = index.fingerprint;
    dataset.shards = index.shards;
    dataset.types = std::move(index.types);
    dataset.groups = std::move(index.groups);
    blobs.push_back(std::move(index.blob));
    const Arrangement& arrangement =
        SelectionOf(spec, datasets.size() - 1).arrangement;
    if (!IsSet(arrangement)) continue;
    std::vector<uint64_t>& samples = chosen[datasets.size() - 1];
    ASSIGN_OR_RETURN(samples, Choose(arrangement, reader, blobs.back(),
                                     index.shards.num_samples(), &dataset));
    const uint64_t items = samples.size();
    ASSIGN_OR_RETURN(
        dataset.shards,
        ShardTable::Uniform(items, ShardTable::DefaultShardSize(items)));
  }
  ASSIGN_OR_RETURN(checked, CheckJob(spec, datasets));
  std::map<size_t, std::unique_ptr<Source>> packed;  // by source
  for (size_t i = 0; i < datasets.size(); ++i) {
    const CheckedGraph& graph = checked.sources[i];
    if (graph.stored == graph.reader) continue;
    ASSIGN_OR_RETURN(packed[i], Pack(graph, blobs[i], chosen, i));
    const uint64_t rows = packed[i]->num_samples();
    ASSIGN_OR_RETURN(
        datasets[i].shards,
        ShardTable::Uniform(rows, ShardTable::DefaultShardSize(rows)));
  }
  RETURN_IF_ERROR(CheckAgainst(spec, datasets));
  oracle->schema = checked.sources[0].schema;
  const std::vector<uint64_t> first = FirstSamples(datasets);
  for (uint32_t i = 0; i < datasets.size(); ++i) {
    const CheckedGraph& graph = checked.sources[i];
    PipelineOf(spec, i) = graph.graph;
    OracleSource& source = oracle->sources.emplace_back();
    source.first = first[i];
    source.seed = AugmentSeedOf(spec, i);
    ASSIGN_OR_RETURN(source.records, OpenSource(graph.graph.nodes[graph.reader],
                                                blobs[i], SourceLimits{}));
    if (packed.contains(i))
      source.records = std::move(packed[i]);
    else if (chosen.contains(i))
      source.records = std::make_unique<SelectedSource>(
          std::move(source.records), std::move(chosen[i]));
    ASSIGN_OR_RETURN(source.program, RowProgram::Compile(graph));
  }
  oracle->plan = std::make_unique<Plan>(spec, datasets);
  return oracle;
}

using Outputs = std::vector<std::span<std::byte>>;

// A row's sample, and the number of its pass over the data.
struct OracleSample {
  uint64_t pass = 0, sample = 0;
};
struct OracleRow {
  uint64_t epoch = 0;
  uint64_t step = 0;
  OracleSample own, partner;
};

// Computes a sample, or else the first of its substitutes that succeeds.
template <class Function>
absl::Status WithSubstitutes(const Oracle& oracle, const OracleSample& of,
                             Function compute) {
  absl::Status status = compute(of.sample);
  if (oracle.spec.on_bad_sample != BadSamplePolicy::kReplace) return status;
  for (uint32_t i = 0; i < kMaxSubstitutes && !status.ok(); ++i)
    status = compute(oracle.plan->Substitute(of.pass, of.sample, i));
  return status;
}

class OraclePartner final : public PartnerRow {
 public:
  OraclePartner(const Oracle& oracle, const OracleRow& row)
      : oracle_(oracle), row_(row) {}
  absl::StatusOr<RowInput> Input() override {
    return Read(row_.partner.sample);
  }
  absl::Status With(const Compute& compute) override {
    return WithSubstitutes(
        oracle_, row_.partner, [&](uint64_t sample) -> absl::Status {
          ASSIGN_OR_RETURN(const RowInput input, Read(sample));
          return compute(input);
        });
  }

 private:
  absl::StatusOr<RowInput> Read(uint64_t sample) {
    const OracleSource& source = oracle_.Of(sample);
    ASSIGN_OR_RETURN(stored_, source.Read(sample));
    RowInput input = source.InputOf(row_.partner.pass, sample, stored_);
    input.step = row_.step;
    input.step_epoch = row_.epoch;
    return input;
  }

  const Oracle& oracle_;
  const OracleRow row_;
  StoredSample stored_;
};

absl::Status Compute(Oracle& oracle, const OracleRow& row, uint64_t sample,
                     const Outputs& outputs) {
  const OracleSource& source = oracle.Of(sample);
  ASSIGN_OR_RETURN(const StoredSample stored, source.Read(sample));
  OraclePartner partner(oracle, row);
  RowInput input = source.InputOf(row.own.pass, sample, stored);
  input.step = row.step;
  input.step_epoch = row.epoch;
  input.partner = &partner;
  return Annotate(source.program->Run(input, oracle.scratch, outputs),
                  source.Describe(sample));
}

// Applies the policy. Returns false for a bad sample, computed as zeros.
absl::StatusOr<bool> ComputeRow(Oracle& oracle, const OracleRow& row,
                                const Outputs& outputs) {
  const absl::Status status = WithSubstitutes(
      oracle, row.own,
      [&](uint64_t sample) { return Compute(oracle, row, sample, outputs); });
  if (status.ok()) return true;
  if (oracle.spec.on_bad_sample != BadSamplePolicy::kZero) return status;
  for (const std::span<std::byte> output : outputs)
    std::memset(output.data(), 0, output.size());
  return false;
}

// Computes the batch and prints its line.
absl::Status PrintStep(Oracle& oracle, uint64_t epoch, uint64_t step,
                       bool print_samples) {
  std::vector<uint32_t> rows(oracle.plan->batch());
  std::iota(rows.begin(), rows.end(), 0);
  std::vector<uint64_t> samples(rows.size());
  oracle.plan->Samples(epoch, step, rows, samples);
  std::vector<OracleRow> todo;
  const auto in = [&](uint32_t row) {
    return OracleSample{oracle.plan->PassOf(epoch, step, row), samples[row]};
  };
  for (uint32_t row = 0; row < rows.size(); ++row)
    if (samples[row] != kNoSample)
      todo.push_back(
          {epoch, step, in(row), in(oracle.plan->PartnerOf(epoch, step, row))});
  std::erase(samples, kNoSample);

  std::vector<std::vector<std::byte>> fields;
  for (const Field& field : oracle.schema.fields)
    fields.emplace_back(field.row_bytes * samples.size());
  std::vector<std::byte> valid(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    Outputs outputs;
    for (size_t f = 0; f < fields.size(); ++f) {
      const size_t bytes = oracle.schema.fields[f].row_bytes;
      outputs.push_back(std::span(fields[f]).subspan(i * bytes, bytes));
    }
    ASSIGN_OR_RETURN(const bool good, ComputeRow(oracle, todo[i], outputs));
    valid[i] = std::byte{
        good && !oracle.plan->IsPadding(epoch, step, static_cast<uint32_t>(i))};
  }

  Sha256 hash;
  const auto add = [&](std::string_view name, std::span<const std::byte> data) {
    hash.Update(name).Update(std::string_view("\0", 1)).Update(data);
  };
  for (size_t f = 0; f < fields.size(); ++f)
    add(oracle.schema.fields[f].name, fields[f]);
  if (!oracle.spec.source_field.empty()) {
    std::vector<int32_t> numbers;
    for (const uint64_t sample : samples)
      numbers.push_back(static_cast<int32_t>(oracle.plan->SourceOf(sample)));
    add(oracle.spec.source_field, std::as_bytes(std::span(numbers)));
  }
  if (HasValidField(oracle.spec)) add(kValidField, valid);
  std::string line = fmt::format("{} {} {}", epoch, step, ToHex(hash.Finish()));
  if (print_samples)
    for (const uint64_t sample : samples) line += fmt::format(" {}", sample);
  fmt::print("{}\n", line);
  return absl::OkStatus();
}

// Prints all batches. A stream has one epoch without an end: prints as many
// samples as `epochs` epochs have.
absl::Status Run(const std::string& path, uint64_t epochs, bool print_samples) {
  std::ifstream file(path);
  if (!file) return NotFound("{}: cannot be read", path);
  ASSIGN_OR_RETURN(const std::unique_ptr<Oracle> oracle,
                   Make({std::istreambuf_iterator<char>(file),
                         std::istreambuf_iterator<char>()}));
  const Plan& plan = *oracle->plan;
  uint64_t steps = plan.steps_per_epoch();
  if (oracle->spec.last_batch == LastBatch::kStream) {
    steps = epochs * plan.num_samples() / plan.batch() + 1;
    epochs = 1;
  }
  for (uint64_t epoch = 0; epoch < epochs; ++epoch)
    for (uint64_t step = 0; step < steps; ++step)
      RETURN_IF_ERROR(Annotate(PrintStep(*oracle, epoch, step, print_samples),
                               fmt::format("epoch {} step {}", epoch, step)));
  return absl::OkStatus();
}

}  // namespace
}  // namespace leat::worker

int main(int argc, char** argv) {
  const bool samples = argc == 4 && std::string_view(argv[3]) == "--samples";
  if (argc < 3 || argc > 4 || (argc == 4 && !samples)) {
    fmt::print(stderr, "usage: leat_oracle SPEC.json EPOCHS [--samples]\n");
    return 2;
  }
  const absl::Status status =
      leat::worker::Run(argv[1], std::strtoull(argv[2], nullptr, 10), samples);
  if (status.ok()) return 0;
  fmt::print(stderr, "leat_oracle: {}\n", leat::Message(status));
  return 1;
}
