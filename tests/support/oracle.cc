// SPDX-License-Identifier: Apache-2.0
//
// leat_oracle SPEC.json EPOCHS [--samples]: prints what every batch of a job
// must be.
//
// Lists the dataset, walks the plan and computes every row, one after the
// other, on one thread: no coordinator, no worker, no scheduler, no cache, no
// wire. Prints one line per batch: "epoch step sha256" (the hash of every
// field's name, a zero byte, and its rows); with --samples the samples of the
// rows follow. Exit codes: 0; 1 failed; 2 wrong use.
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "core/hash.h"
#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "core/status.h"
#include "rpc/wire/messages.h"
#include "worker/image/program/row_program.h"
#include "worker/image/program/scratch.h"
#include "worker/source/source.h"

namespace leat::worker {
namespace {

struct Oracle {
  JobSpec spec;
  BatchSchema schema;  // the pipeline's, without "valid"
  std::unique_ptr<Source> source;
  std::unique_ptr<Plan> plan;
  std::unique_ptr<RowProgram> program;
  Scratch scratch{ImageLimits{}};
};

absl::StatusOr<std::unique_ptr<Oracle>> Make(const std::string& json) {
  auto oracle = std::make_unique<Oracle>();
  ASSIGN_OR_RETURN(oracle->spec, rpc::JobSpecFromJson(json));
  ASSIGN_OR_RETURN(CheckedGraph graph, CheckSpec(oracle->spec));
  const Node reader = graph.graph.nodes[graph.reader];
  ASSIGN_OR_RETURN(const BuiltIndex index, BuildIndex(reader, SourceLimits{}));
  ASSIGN_OR_RETURN(graph, CheckSpec(oracle->spec, index.types));
  oracle->spec.pipeline = graph.graph;
  oracle->schema = graph.schema;
  DatasetInfo dataset;
  dataset.reader = CanonicalText(reader);
  dataset.fingerprint = index.fingerprint;
  dataset.shards = index.shards;
  RETURN_IF_ERROR(CheckAgainst(oracle->spec, dataset));
  ASSIGN_OR_RETURN(oracle->source,
                   OpenSource(reader, index.blob, SourceLimits{}));
  oracle->plan = std::make_unique<Plan>(oracle->spec, dataset.shards);
  ASSIGN_OR_RETURN(oracle->program, RowProgram::Compile(graph));
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
    ASSIGN_OR_RETURN(stored_, oracle_.source->Read(sample));
    return RowInput{.seed = oracle_.spec.seed,
                    .epoch = row_.partner.pass,
                    .sample = sample,
                    .fields = stored_.fields,
                    .step = row_.step,
                    .step_epoch = row_.epoch};
  }

  const Oracle& oracle_;
  const OracleRow row_;
  StoredSample stored_;
};

absl::Status Compute(Oracle& oracle, const OracleRow& row, uint64_t sample,
                     const Outputs& outputs) {
  ASSIGN_OR_RETURN(const StoredSample stored, oracle.source->Read(sample));
  OraclePartner partner(oracle, row);
  return Annotate(oracle.program->Run({.seed = oracle.spec.seed,
                                       .epoch = row.own.pass,
                                       .sample = sample,
                                       .fields = stored.fields,
                                       .step = row.step,
                                       .step_epoch = row.epoch,
                                       .partner = &partner},
                                      oracle.scratch, outputs),
                  oracle.source->Describe(sample));
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
