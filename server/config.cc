// SPDX-License-Identifier: Apache-2.0
#include "server/config.h"

#include "core/cluster/roles.h"
#include "core/status.h"
#include "rpc/connections/listener.h"
#include "rpc/daemon/daemon_flags.h"
#include "rpc/http/status_server.h"

namespace leat::server {

absl::Status Config::Validate() const {
  RETURN_IF_ERROR(rpc::CheckListenAddress(listen));
  RETURN_IF_ERROR(rpc::CheckConnectionFlags(
      server.max_connections, server.max_connections_per_address));
  if (!TokenId(security.token).empty())
    return InvalidArgument(
        "the coordinator's own access token has the form of those of \"leat "
        "access create\": want another secret, as of \"openssl rand -hex 32\"");
  if (!http.empty()) RETURN_IF_ERROR(rpc::HttpAddress(http).status());
  RETURN_IF_ERROR(security.Validate());
  return coordinator.Validate();
}

std::string Config::ToString() const {
  const auto ms = [](Duration duration) {
    return std::chrono::duration_cast<std::chrono::milliseconds>(duration)
        .count();
  };
  return fmt::format(
      "listen={} http={} state={} token={} tls={} heartbeat_interval_ms={} "
      "lost_after_ms={} job_ttl_h={} scale_down_after_s={} cluster={} "
      "drain_timeout_ms={} "
      "max_connections={} max_connections_per_address={} "
      "watchdog_interval_ms={}",
      listen, http.empty() ? "none" : http,
      state_dir.empty() ? "memory" : state_dir,
      security.token.empty() ? "no" : "yes",
      security.cert_pem.empty() ? "no" : "yes",
      ms(coordinator.heartbeat_interval), ms(coordinator.membership.lost_after),
      ms(coordinator.job_ttl) / 3'600'000,
      ms(coordinator.scale_down_after) / 1000, coordinator.cluster,
      ms(drain_timeout), server.max_connections,
      server.max_connections_per_address, ms(server.watchdog_interval));
}

}  // namespace leat::server
