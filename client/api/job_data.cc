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
      plan_(info_.spec, info_.datasets) {}

// The hashes are the same for all steps after which one segment of shares was
// in force last.
PositionHashes JobData::HashesAt(const EpochStep& next) const {
  const ShareLayout* const shares = plan_.shares();
  uint64_t step = 0;
  size_t segment = 0;
  PositionShares dealt;
  if (IsMixture(info_.spec)) {
    const uint64_t steps = plan_.steps_per_epoch();
    const bool exists =
        next.epoch <= kStreamSteps / steps && next.step <= kStreamSteps;
    // The caller refuses a step that does not exist.
    step = exists ? shares->StepOfAll(next.epoch, next.step) : 0;
    segment = shares->schedule().SegmentAt(step == 0 ? 0 : step - 1);
    if (exists) dealt = {&shares->schedule(), &info_.spec.sources, step};
  }
  MutexLock lock(&mu_);
  PositionHashes& known = hashes_[segment];
  if (known.plan_hash == Digest{})
    known = {PositionHash(info_, step), info_.plan_hash};
  PositionHashes hashes = known;
  hashes.shares = dealt;
  return hashes;
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
