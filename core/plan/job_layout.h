// SPDX-License-Identifier: Apache-2.0
//
// The ShareLayout of a job: of a mixture's sources, or of one dataset whose
// groups have shares. Any other job has a PassLayout.
//
// A job of one dataset is dealt out as a mixture of one source that keeps the
// job's seed. Under LastBatch::kDrop an epoch has as many whole batches as the
// dataset has samples for; the next epoch goes on where it ended. Under kStream
// the only epoch has no end.
#pragma once

#include <span>

#include "absl/status/statusor.h"
#include "core/plan/group_shares.h"
#include "core/plan/job.h"
#include "core/plan/share_layout.h"

namespace leat {

// Returns whether rows are dealt out in shares.
inline bool HasShareLayout(const JobSpec& spec) {
  return IsMixture(spec) || HasGroupShares(spec.selection);
}

// Returns the shares of the dataset's groups. kInvalidArgument: it has no
// groups; or as GroupShares. REQUIRES: HasGroupShares(selection).
absl::StatusOr<GroupShares> GroupSharesOf(const Selection& selection,
                                          const DatasetInfo& dataset);

// kInvalidArgument: as ShareSchedule, ShareLayout and GroupSharesOf; in a
// mixture the text names the source. REQUIRES: HasShareLayout(spec), CheckJob
// is OK, one dataset for each source.
absl::StatusOr<ShareLayout> ShareLayoutOf(
    const JobSpec& spec, std::span<const DatasetInfo> datasets);

}  // namespace leat
