// SPDX-License-Identifier: Apache-2.0
#include "client/batch/row_format.h"

#include <utility>

#include "core/plan/checked_job.h"
#include "core/status.h"

namespace leat::client {

absl::StatusOr<std::shared_ptr<const RowFormat>> RowFormat::Create(
    const JobInfo& job, Epilogue epilogue) {
  auto format = std::make_shared<RowFormat>();
  format->schema = job.schema;
  if (epilogue == Epilogue::kDevice) {
    ASSIGN_OR_RETURN(const CheckedJob checked,
                     CheckJob(job.spec, job.datasets));
    SplitGraph split = SplitEpilogue(checked.sources[0]);
    for (size_t i = 1; i < checked.sources.size(); ++i) {
      const SplitGraph other = SplitEpilogue(checked.sources[i]);
      if (other.epilogue != split.epilogue ||
          other.head.schema != split.head.schema)
        return InvalidArgument(
            "epilogue=\"device\": sources \"{}\" and \"{}\" end with different "
            "operators; want equal ends, or epilogue=\"worker\"",
            job.spec.sources[0].name, job.spec.sources[i].name);
    }
    // Fields beyond the pipeline's outputs (kValidField) stay.
    for (size_t i = 0; i < split.head.schema.fields.size(); ++i)
      format->schema.fields[i] = std::move(split.head.schema.fields[i]);
    format->epilogue = std::move(split.epilogue);
  }
  format->epilogue.resize(format->schema.fields.size());
  for (const std::optional<FieldEpilogue>& left : format->epilogue) {
    TensorEpilogue& shown = format->shown.emplace_back();
    if (!left) continue;
    shown.dtype = Name(left->dtype);
    shown.channels = left->channels;
    shown.table = left->table;
    shown.perm = left->perm;
  }
  return format;
}

}  // namespace leat::client
