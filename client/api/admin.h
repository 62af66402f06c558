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

  absl::StatusOr<std::string> GetStatus() override;
  absl::StatusOr<std::string> ListWorkers() override;
  absl::StatusOr<std::string> ListJobs() override;
  absl::StatusOr<std::string> ListDatasets() override;
  absl::StatusOr<std::string> ListShards(std::string_view dataset) override;
  absl::StatusOr<std::string> ListConsumers() override;
  absl::StatusOr<std::string> GetBottleneck(std::string_view job,
                                            absl::Duration since) override;
  absl::Status DeleteJob(std::string_view name) override;
  absl::Status DeleteDataset(std::string_view name) override;
  absl::Status RefreshDataset(std::string_view name) override;
  absl::Status DrainWorker(std::string_view name) override;
  absl::Status UndrainWorker(std::string_view name) override;
  absl::Status SetLogLevel(std::string_view level,
                           std::string_view worker) override;
  absl::StatusOr<std::string> CreateAccessToken(
      std::string_view role, std::string_view name,
      absl::Duration lifetime) override;
  absl::StatusOr<std::string> ListAccessTokens() override;
  absl::Status RevokeAccessToken(std::string_view token) override;
  absl::StatusOr<std::string> ListPools() override;
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
  absl::Status UnmuteFinding(std::string_view code) override;

 private:
  template <class Request, class Response>
  absl::StatusOr<std::string> Get(
      Control::AdminMethod<Request, Response> method, const Request& request);
  template <class Request, class Response>
  absl::StatusOr<std::string> GetAll(
      Control::AdminMethod<Request, Response> method);
  template <class Request, class Response>
  absl::Status Do(Control::AdminMethod<Request, Response> method,
                  std::string_view name);

  Control& control_;
};

}  // namespace leat::client
