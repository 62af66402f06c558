// SPDX-License-Identifier: Apache-2.0
#include "worker/job/source_runtime.h"

#include <algorithm>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

bool HasPartners(const Graph& pipeline) {
  return std::ranges::any_of(
      pipeline.nodes, [](const Node& node) { return node.op == "partner"; });
}

}  // namespace

absl::StatusOr<std::unique_ptr<const SourceRuntime>> SourceRuntime::Create(
    const JobInfo& job, CheckedGraph graph,
    std::shared_ptr<const Source> source, const RuntimeContext* context,
    Finish finish) {
  const DatasetInfo& dataset = job.dataset;
  if (source->num_samples() != dataset.shards.num_samples())
    return FailedPrecondition(
        "job {}: its index has {} samples, its dataset {}", job.spec.name,
        source->num_samples(), dataset.shards.num_samples());
  const Node& reader = graph.graph.nodes[graph.reader];
  const bool supplied = IsExternal(job.spec);
  const bool reads_ahead =
      !supplied && (context->read_ahead_of == ReadAheadOf::kAll ||
                    ReadsWait(reader, *source));
  RecordPlaces places =
      RecordPlaces::Of(job, reader, std::move(source),
                       graph.types[graph.reader], supplied, *context);
  if (finish == Finish::kDevice) graph = SplitFinish(graph).head;
  absl::StatusOr<std::unique_ptr<RowKernel>> kernel =
      context->kernels.compile(graph, job.spec.decoder_class);
  if (!kernel.ok())
    return Annotate(kernel.status(), fmt::format("job {}", job.spec.name));
  return std::unique_ptr<const SourceRuntime>(new SourceRuntime(
      job, std::move(places), context, graph, reads_ahead, *std::move(kernel)));
}

SourceRuntime::SourceRuntime(const JobInfo& job, RecordPlaces places,
                             const RuntimeContext* context,
                             const CheckedGraph& rows, bool reads_ahead,
                             std::unique_ptr<RowKernel> kernel)
    : seed_(job.spec.seed),
      records_(job, std::move(places), context),
      kernel_(std::move(kernel)),
      supplied_(IsExternal(job.spec)),
      reads_ahead_(reads_ahead),
      has_partners_(HasPartners(job.spec.pipeline)) {
  for (const Field& field : rows.schema.fields)
    field_bytes_.push_back(field.row_bytes);
}

}  // namespace leat::worker
