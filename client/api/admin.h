// SPDX-License-Identifier: Apache-2.0
//
// ControlAdmin: leat/admin.h over AdminService and PoolService. Thread-safe.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "client/coordinator/control.h"
#include "client/leat/admin.h"

namespace leat::client {

class ControlAdmin : public Admin {
 public:
  // `control` outlives it.
  explicit ControlAdmin(Control& control) : control_(control) {}

  absl::StatusOr<std::string> Get(std::string_view what,
                                  std::string_view name) override;
  absl::Status Do(std::string_view verb, std::string_view name) override;
  absl::StatusOr<std::string> GetBottleneck(std::string_view job,
                                            absl::Duration since) override;
  absl::Status SetLogLevel(std::string_view level,
                           std::string_view worker) override;
  absl::StatusOr<std::string> CreateAccessToken(
      std::string_view role, std::string_view name,
      absl::Duration lifetime) override;
  absl::Status SetPool(std::string_view name, uint32_t min,
                       uint32_t max) override;
  absl::Status WatchPool(
      std::string_view name, absl::Duration within,
      const std::function<bool(const std::string& pool)>& on_pool) override;
  absl::Status WatchEvents(
      const EventsQuery& query,
      const std::function<bool(std::string_view json)>& on_events) override;
  absl::Status MuteFinding(std::string_view code,
                           absl::Duration lifetime) override;

 private:
  Control& control_;
};

}  // namespace leat::client
