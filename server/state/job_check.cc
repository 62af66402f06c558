// SPDX-License-Identifier: Apache-2.0
#include "server/state/job_check.h"

#include <algorithm>
#include <utility>

#include "core/packing/pack_node.h"
#include "core/pipeline/device_forms.h"
#include "core/plan/checked_job.h"
#include "core/status.h"

namespace leat::server {

std::string ReaderId(std::string_view reader_text) {
  return ToHex(HashOf(reader_text));
}

std::string ArrangedId(std::string_view reader_text,
                       std::string_view arrangement_text) {
  return ToHex(
      Sha256().UpdateField(reader_text).UpdateField(arrangement_text).Finish());
}

namespace {

// Returns why GPU workers compute the rows on their CPU cores; empty: they
// compute them on GPUs.
std::string NotOnGpu(const JobSpec& spec, const CheckedJob& checked) {
  for (size_t i = 0; i < checked.sources.size(); ++i)
    if (const absl::Status forms = CheckDeviceForms(checked.sources[i]);
        !forms.ok())
      return IsMixture(spec) ? fmt::format("source \"{}\": {}",
                                           spec.sources[i].name, Message(forms))
                             : std::string(Message(forms));
  return std::string(Message(CheckOneKernel(spec, checked)));
}

}  // namespace

absl::StatusOr<PreparedJob> Prepare(const JobSpec& spec,
                                    std::span<const DatasetInfo> datasets) {
  ASSIGN_OR_RETURN(CheckedJob checked, CheckJob(spec, datasets));
  PreparedJob job;
  job.typed = checked.typed;
  if (checked.typed) {
    job.not_on_gpu = NotOnGpu(spec, checked);
    job.may_be_nvjpeg =
        CheckOneKernel(spec, checked).ok() &&
        std::ranges::all_of(checked.sources, [](const CheckedGraph& source) {
          return CheckDecoderForms(source).ok();
        });
  }
  job.spec = spec;
  job.schema = std::move(checked.schema);
  for (size_t i = 0; i < checked.sources.size(); ++i) {
    CheckedGraph& source = checked.sources[i];
    PreparedSource& prepared = job.sources.emplace_back();
    prepared.reader = source.graph.nodes[source.reader];
    prepared.reader_text = CanonicalText(prepared.reader);
    prepared.reader_id = ReaderId(prepared.reader_text);
    prepared.arrangement = SelectionOf(spec, i).arrangement;
    if (source.stored != source.reader) {
      ASSIGN_OR_RETURN(prepared.arrangement.pack,
                       ReadPackNode(source.graph.nodes[source.stored]));
    }
    if (IsSet(prepared.arrangement))
      prepared.arranged_id =
          ArrangedId(prepared.reader_text, CanonicalText(prepared.arrangement));
    PipelineOf(job.spec, i) = std::move(source.graph);
  }
  return job;
}

absl::StatusOr<PreparedJob> Complete(const PreparedJob& job,
                                     std::span<const DatasetInfo> datasets) {
  if (job.typed) return job;
  absl::StatusOr<PreparedJob> complete = Prepare(job.spec, datasets);
  if (complete.ok() && !complete->typed)
    return Internal(
        "job {}: the index of a dataset does not say what its "
        "reader gives",
        job.spec.name);
  return complete;
}

}  // namespace leat::server
