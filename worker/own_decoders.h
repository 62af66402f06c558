// SPDX-License-Identifier: Apache-2.0
//
// How this worker decodes, as it tells the coordinator.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leat/v1/coordinator.pb.h"
#include "worker/gpu_worker.h"

namespace leat::worker {

// One of each class. Exact's is the digest of known images (decoder_digest.h).
// nvJPEG's bytes are the same on GPUs of one kind with one nvJPEG, so its
// digest is of these, and of exact's, since some images are the host's. Takes
// some milliseconds.
absl::StatusOr<std::vector<v1::Decoders>> OwnDecoders(const GpuWorker& gpus);

// Whether a worker of these decoders may serve the job. kUnavailable, of this
// worker: it began with others, so this worker would make other bytes.
absl::Status CheckDecoders(const std::vector<v1::Decoders>& own,
                           const v1::GetJobResponse& job);

}  // namespace leat::worker
