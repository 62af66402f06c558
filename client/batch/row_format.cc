// SPDX-License-Identifier: Apache-2.0
#include "client/batch/row_format.h"

#include <utility>

#include "core/plan/checked_job.h"
#include "core/status.h"

namespace leat::client {

absl::StatusOr<std::shared_ptr<const RowFormat>> RowFormat::Create(
    const JobInfo& job, Finish finish) {
  auto format = std::make_shared<RowFormat>();
  format->schema = job.schema;
  if (finish == Finish::kDevice) {
    ASSIGN_OR_RETURN(const CheckedJob checked,
                     CheckJob(job.spec, job.datasets));
    SplitGraph split = SplitFinish(checked.sources[0]);
    for (size_t i = 1; i < checked.sources.size(); ++i) {
      const SplitGraph other = SplitFinish(checked.sources[i]);
      if (other.finish != split.finish ||
          other.head.schema != split.head.schema)
        return InvalidArgument(
            "finish=\"device\": sources \"{}\" and \"{}\" end with different "
            "operators; want equal ends, or finish=\"worker\"",
            job.spec.sources[0].name, job.spec.sources[i].name);
    }
    // Fields beyond the pipeline's outputs (kValidField) stay.
    for (size_t i = 0; i < split.head.schema.fields.size(); ++i)
      format->schema.fields[i] = std::move(split.head.schema.fields[i]);
    format->finish = std::move(split.finish);
  }
  format->finish.resize(format->schema.fields.size());
  for (const std::optional<FieldFinish>& left : format->finish) {
    TensorFinish& shown = format->shown.emplace_back();
    if (!left) continue;
    shown.dtype = Name(left->dtype);
    shown.channels = left->channels;
    shown.table = left->table;
    shown.perm = left->perm;
  }
  return format;
}

}  // namespace leat::client
