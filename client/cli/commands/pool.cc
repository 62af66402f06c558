// SPDX-License-Identifier: Apache-2.0
//
// leat pool: sets a pool's bounds, or follows the coordinator's wish for it and
// applies it.
#include "client/cli/commands/pool.h"

#include <algorithm>

#include "client/cli/base/exit_code.h"
#include "client/cli/base/text.h"
#include "client/cli/commands/commands.h"
#include "core/cluster/pool_policy.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// Interval of checks for changes that the coordinator does not report, such as
// the end of an engine's task.
constexpr absl::Duration kLookAgain = absl::Seconds(30);
constexpr absl::Duration kMaxPause = absl::Seconds(30);

absl::StatusOr<int> Set(Session& session) {
  const Options& options = session.options();
  if (!options.max_workers)
    return InvalidArgument(
        "set: --max is missing: want how many workers the pool may have");
  const PoolBounds bounds{options.min_workers.value_or(0),
                          *options.max_workers};
  RETURN_IF_ERROR(CheckPoolBounds(bounds));
  ASSIGN_OR_RETURN(Connection * connection, session.Connect());
  RETURN_IF_ERROR(
      connection->admin().SetPool(options.name, bounds.min, bounds.max));
  session.Say(
      bounds.max == 0
          ? fmt::format("pool \"{}\" has no bounds, so it is not scaled",
                        options.name)
          : fmt::format("pool \"{}\" may have {} to {} workers", options.name,
                        bounds.min, bounds.max));
  return kGood;
}

absl::StatusOr<int> Watch(Session& session) {
  if (session.options().min_workers || session.options().max_workers)
    return InvalidArgument("watch: --min and --max are of set");
  bool further = false;
  return FollowPool(
      session, session.options().name, false, [&](const Json& pool) {
        session.PrintView(
            ListingView(*FindKind("pools"), {{"pools", Json::array({pool})}},
                        absl::InfinitePast()),
            further);
        further = true;
        return absl::OkStatus();
      });
}

absl::StatusOr<int> Run(Session& session) {
  if (session.options().min_workers || session.options().max_workers)
    return InvalidArgument("run: --min and --max are of set");
  if (session.options().kubernetes.target.empty())
    return InvalidArgument(
        "run: --kubernetes is missing: want deployment/NAME");
  return RunKubernetesPool(session);
}

}  // namespace

absl::StatusOr<int> FollowPool(
    Session& session, const std::string& pool, bool once,
    const std::function<absl::Status(const Json& pool)>& make) {
  const auto can_print = [&session] {
    return session.environment().out->good();
  };
  absl::Duration pause = absl::Seconds(1);
  while (can_print()) {
    absl::Status last;
    const auto on_pool = [&](const std::string& text) {
      const absl::StatusOr<Json> parsed = ParseObject(text, "pool");
      last = parsed.ok() ? make(*parsed) : parsed.status();
      if (!last.ok()) session.Say(Message(last));
      return !once && can_print();
    };
    const absl::StatusOr<Connection*> connection = session.Connect();
    const absl::Status watched =
        connection.ok()
            ? (*connection)->admin().WatchPool(pool, kLookAgain, on_pool)
            : connection.status();
    if (once) {
      RETURN_IF_ERROR(watched);
      RETURN_IF_ERROR(last);
      return kGood;
    }
    if (watched.ok()) {
      pause = absl::Seconds(1);
      continue;
    }
    if (absl::IsInvalidArgument(watched) || absl::IsPermissionDenied(watched) ||
        absl::IsUnauthenticated(watched))
      return watched;
    session.Say(Message(watched));
    session.environment().pause(pause);
    pause = std::min(kMaxPause, pause * 2);
  }
  return kGood;  // no reader is left, which RunCli says
}

absl::StatusOr<int> RunPool(Session& session) {
  RETURN_IF_ERROR(CheckPoolName(session.options().name));
  const std::string& action = session.options().kind;
  if (action == "run") return Run(session);
  return action == "watch" ? Watch(session) : Set(session);
}

}  // namespace leat::cli
