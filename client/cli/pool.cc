// SPDX-License-Identifier: Apache-2.0
//
// leat pool: sets a pool's bounds.
#include "client/cli/commands.h"
#include "client/cli/exit_code.h"
#include "core/pool_policy.h"
#include "core/status.h"

namespace leat::cli {

absl::StatusOr<int> RunPool(Session& session) {
  const Options& options = session.options();
  if (!options.max_workers)
    return InvalidArgument(
        "set: --max is missing: want how many workers the pool may have");
  const PoolBounds bounds{options.min_workers.value_or(0),
                          *options.max_workers};
  RETURN_IF_ERROR(CheckPoolName(options.name));
  RETURN_IF_ERROR(CheckPoolBounds(bounds));
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  RETURN_IF_ERROR(
      connection->admin().SetPool(options.name, bounds.min, bounds.max));
  session.Say(bounds.max == 0
                  ? fmt::format("pool \"{}\" has no bounds: nobody scales it",
                                options.name)
                  : fmt::format("pool \"{}\" may have {} to {} workers",
                                options.name, bounds.min, bounds.max));
  return kGood;
}

}  // namespace leat::cli
