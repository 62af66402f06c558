// SPDX-License-Identifier: Apache-2.0
//
// The worker's decoders, as reported to the coordinator.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "leat/v1/coordinator.pb.h"
#include "worker/compute/gpu_worker.h"

namespace leat::worker {

// Returns the worker's decoders of each class that it has. The digest of class
// exact is that of known images (worker/image/program/decoder_digest.h). nvJPEG
// gives the same bytes on all GPUs of one kind, so the digest of class nvjpeg
// names the kind of GPU and nvJPEG's version. It includes the digest of exact,
// since the host decodes some images of that class. The call takes some
// milliseconds.
absl::StatusOr<std::vector<v1::Decoders>> OwnDecoders(const GpuWorker& gpus);

// Returns OK if a worker with these decoders may serve the job. kUnavailable,
// with fault kWorker: the job began with others, so this worker would compute
// other bytes.
absl::Status CheckDecoders(const std::vector<v1::Decoders>& own,
                           const v1::GetJobResponse& job);

}  // namespace leat::worker
