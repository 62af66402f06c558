// SPDX-License-Identifier: Apache-2.0
//
// Parts of a worker that its configuration may leave out, and the options of
// its server.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "rpc/connections/unauthenticated_connections.h"
#include "rpc/server/server.h"
#include "worker/cache/disk_forms.h"
#include "worker/cache/idle_forms.h"
#include "worker/config/config.h"
#include "worker/image/base/scratch_budget.h"
#include "worker/image/base/whole_decodes.h"
#include "worker/job/job_table.h"
#include "worker/shared_memory/device_importer.h"
#include "worker/shared_memory/server.h"
#include "worker/source/storage/storage.h"

namespace leat::worker {

// The memory that decode threads share; it outlives them.
struct SharedByDecodes {
  // The image limits of `config` refer to this object from now on.
  explicit SharedByDecodes(Config* config)
      : scratch(config->shared_decode_bytes()) {
    config->image.budget = &scratch;
    config->image.whole_decodes = &whole;
  }
  ScratchBudget scratch;
  WholeDecodes whole;
};

// Returns nullptr if consumers' memory is not taken. Returns an error if the
// configuration demands it and it cannot be taken.
absl::StatusOr<std::unique_ptr<SharedMemoryServer>> StartSharing(
    const Config& config, DeviceImporter* importer);

// Returns nullptr if no forms are kept per record on a disk. Errors: as
// DiskForms::Start.
absl::StatusOr<std::unique_ptr<DiskForms>> StartDiskForms(
    const Config& config, const Storage& storage);

// Without makers if no forms are kept.
IdleFormsOptions IdleFormsConfig(const Config& config);

JobTableOptions JobTableConfig(const Config& config);

// Returns the options of the server of rows. `unauthenticated` outlives it.
rpc::ServerOptions RowsServerOptions(
    const Config& config, rpc::UnauthenticatedConnections* unauthenticated);

}  // namespace leat::worker
