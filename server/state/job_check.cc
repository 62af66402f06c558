// SPDX-License-Identifier: Apache-2.0
#include "server/state/job_check.h"

#include <algorithm>
#include <utility>

#include "core/pipeline/device_forms.h"
#include "core/status.h"

namespace leat::server {

std::string ReaderId(std::string_view reader_text) {
  return ToHex(HashOf(reader_text));
}

absl::StatusOr<PreparedJob> Prepare(const JobSpec& spec,
                                    std::span<const ValueType> stored) {
  ASSIGN_OR_RETURN(CheckedGraph checked, CheckSpec(spec, stored));
  PreparedJob job;
  job.typed = checked.typed;
  if (checked.typed) {
    if (const absl::Status forms = CheckDeviceForms(checked); !forms.ok())
      job.not_on_gpu = Message(forms);
    job.may_be_nvjpeg = CheckDecoderForms(checked).ok();
  }
  job.spec = spec;
  job.spec.pipeline = std::move(checked.graph);
  job.schema = std::move(checked.schema);
  const bool has_valid =
      std::any_of(job.schema.fields.begin(), job.schema.fields.end(),
                  [](const Field& field) { return field.name == kValidField; });
  if (HasValidField(spec) && job.typed && !has_valid)
    job.schema.fields.push_back(
        {std::string(kValidField), DType::kBool, {}, SizeOf(DType::kBool)});
  job.reader = job.spec.pipeline.nodes[checked.reader];
  job.reader_text = CanonicalText(job.reader);
  job.reader_id = ReaderId(job.reader_text);
  return job;
}

absl::StatusOr<PreparedJob> Complete(const PreparedJob& job,
                                     const DatasetInfo& dataset) {
  if (job.typed) return job;
  if (dataset.types.empty())
    return Internal("dataset {}: its index does not say what {} gives",
                    dataset.name, job.reader.op);
  return Prepare(job.spec, dataset.types);
}

}  // namespace leat::server
