// SPDX-License-Identifier: Apache-2.0
#include "client/api/job_data.h"

#include "core/plan/checked_job.h"
#include "core/plan/share_layout.h"
#include "core/status.h"
#include "rpc/wire/messages.h"

namespace leat::client {

absl::StatusOr<std::shared_ptr<JobData>> JobData::Create(
    std::shared_ptr<Connection> connection, const v1::Job& job) {
  absl::StatusOr<JobInfo> info = rpc::FromProto(job);
  absl::Status status = info.status();
  if (status.ok()) status = CheckJob(info->spec, info->datasets).status();
  if (status.ok()) status = CheckAgainst(info->spec, info->datasets);
  if (!status.ok())
    return Annotate(
        status, fmt::format("job \"{}\" of the coordinator at {}",
                            job.spec().name(), connection->control.address()));
  return std::shared_ptr<JobData>(
      new JobData(std::move(connection), *std::move(info), job));
}

JobData::JobData(std::shared_ptr<Connection> connection, JobInfo info,
                 v1::Job proto)
    : connection_(std::move(connection)),
      info_(std::move(info)),
      proto_(std::move(proto)),
      plan_(info_.spec, info_.datasets) {
  const ShareLayout* const shares = plan_.shares();
  const size_t segments =
      shares == nullptr ? 1 : shares->schedule().num_segments();
  for (size_t i = 0; i < segments; ++i) {
    const uint64_t after =
        shares == nullptr ? 0 : shares->schedule().from_step(i) + 1;
    position_hashes_.push_back({PositionHash(info_, after), info_.plan_hash});
  }
}

const PositionHashes& JobData::HashesAt(const EpochStep& next) const {
  const ShareLayout* const shares = plan_.shares();
  if (shares == nullptr) return position_hashes_[0];
  const uint64_t steps = plan_.steps_per_epoch();
  if (next.epoch > kStreamSteps / steps || next.step > kStreamSteps)
    return position_hashes_.back();  // no such step, which the caller will see
  const uint64_t step = shares->StepOfAll(next.epoch, next.step);
  const ShareSchedule& schedule = shares->schedule();
  return position_hashes_[step == 0 ? 0 : schedule.SegmentAt(step - 1)];
}

absl::Status JobData::CheckEpoch(uint64_t epoch) const {
  return Annotate(plan_.CheckEpoch(epoch),
                  fmt::format("job \"{}\"", info_.spec.name));
}

std::shared_ptr<const AssignmentTable> JobData::table() const {
  MutexLock lock(&mu_);
  return table_;
}

void JobData::OfferTable(std::shared_ptr<const AssignmentTable> table) {
  MutexLock lock(&mu_);
  if (table->Replaces(table_.get())) table_ = std::move(table);
}

}  // namespace leat::client
