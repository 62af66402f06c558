// SPDX-License-Identifier: Apache-2.0
#include "worker/job/source_runtime.h"

#include <algorithm>
#include <utility>

#include "core/plan/checked_job.h"
#include "core/status.h"
#include "worker/job/numbered_source.h"

namespace leat::worker {
namespace {

bool HasPartners(const Graph& pipeline) {
  return std::ranges::any_of(
      pipeline.nodes, [](const Node& node) { return node.op == "partner"; });
}

// Clients supply no samples of mixtures, whose sources are many.
bool IsSupplied(const JobSpec& spec) {
  return !IsMixture(spec) && IsExternal(spec);
}

}  // namespace

absl::StatusOr<JobKernels::Kernel> JobKernels::Of(CheckedGraph graph) {
  if (epilogue_ == Epilogue::kDevice) graph = SplitEpilogue(graph).head;
  const Digest key = ComputationOf(graph);
  for (const auto& [known, kernel] : kernels_)
    if (known == key) return kernel;
  std::vector<size_t> bytes;
  for (const Field& field : graph.schema.fields)
    bytes.push_back(field.row_bytes);
  // Equal fields may have different heads.
  if (!kernels_.empty() && bytes != field_bytes_)
    return InvalidArgument(
        "epilogue {}: its sources end with different operators, so that their "
        "rows have different sizes; want equal ends, or epilogue worker",
        Name(epilogue_));
  ASSIGN_OR_RETURN(Kernel kernel,
                   context_->kernels.compile(graph, decoder_class_));
  field_bytes_ = std::move(bytes);
  kernels_.emplace_back(key, kernel);
  return kernel;
}

absl::StatusOr<std::unique_ptr<const SourceRuntime>> SourceRuntime::Create(
    const JobInfo& job, uint32_t number, uint64_t first, CheckedGraph graph,
    std::shared_ptr<const Source> source, const RuntimeContext* context,
    JobKernels* kernels) {
  const DatasetInfo& dataset = job.datasets[number];
  if (source->num_samples() != dataset.shards.num_samples())
    return FailedPrecondition(
        "job {}: its index has {} samples, its dataset {}", job.spec.name,
        source->num_samples(), dataset.shards.num_samples());
  const Node& reader = graph.graph.nodes[graph.reader];
  const bool supplied = IsSupplied(job.spec);
  const bool reads_ahead =
      !supplied && (context->read_ahead_of == ReadAheadOf::kAll ||
                    ReadsWait(reader, *source));
  RecordPlaces places =
      RecordPlaces::Of(job.spec.name, dataset, first, reader, std::move(source),
                       graph.types[graph.stored], supplied, *context);
  absl::StatusOr<JobKernels::Kernel> kernel = kernels->Of(std::move(graph));
  if (!kernel.ok())
    return Annotate(kernel.status(), fmt::format("job {}", job.spec.name));
  return std::unique_ptr<const SourceRuntime>(
      new SourceRuntime(job, number, first, std::move(places), context,
                        reads_ahead, *std::move(kernel)));
}

SourceRuntime::SourceRuntime(const JobInfo& job, uint32_t number,
                             uint64_t first, RecordPlaces places,
                             const RuntimeContext* context, bool reads_ahead,
                             JobKernels::Kernel kernel)
    : dataset_(job.datasets[number]),
      seed_(AugmentSeedOf(job.spec, number)),
      first_(first),
      records_(job.plan_hash, dataset_, first, std::move(places), context),
      kernel_(std::move(kernel)),
      supplied_(IsSupplied(job.spec)),
      reads_ahead_(reads_ahead),
      has_partners_(HasPartners(PipelineOf(job.spec, number))) {}

}  // namespace leat::worker
