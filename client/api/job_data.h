// SPDX-License-Identifier: Apache-2.0
//
// Data shared by the public classes: the connection, and a job as the
// coordinator described it. Both live as long as any object that needs them.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "client/api/admin.h"
#include "client/batch/position.h"
#include "client/coordinator/control.h"
#include "client/coordinator/tracing.h"
#include "client/fetch/assignment_table.h"
#include "client/leat/client.h"
#include "client/private/service.h"
#include "core/mutex.h"
#include "core/plan/job.h"
#include "core/plan/plan.h"
#include "rpc/tls/tls_probe.h"

namespace leat::client {

// Returns a function that draws from [0, 1), on any thread.
std::function<double()> RandomFractions();

// Connection is thread-safe.
struct Connection {
  Connection(std::unique_ptr<PrivateService> its_lease, std::string address,
             rpc::Security security, absl::Duration timeout,
             std::string token_file)
      : lease(std::move(its_lease)),
        control(std::move(address), std::move(security), timeout,
                std::move(token_file)),
        admin(control) {}
  const std::unique_ptr<PrivateService> lease;  // null: not a private service
  Control control;
  ControlAdmin admin;
  const std::shared_ptr<ClientTracing> tracing = ClientTracing::Shared();

  // Returns why a worker's address is not reached; takes up to a second.
  rpc::Hindrance WhatHinders(const std::string& address) const;
};

// JobData is immutable except for the newest table. Thread-safe.
class JobData {
 public:
  // kInvalidArgument: the coordinator's reply is invalid.
  static absl::StatusOr<std::shared_ptr<JobData>> Create(
      std::shared_ptr<Connection> connection, const v1::Job& job);

  const std::shared_ptr<Connection>& connection() const { return connection_; }
  const JobInfo& info() const { return info_; }
  const v1::Job& proto() const { return proto_; }
  const Plan& plan() const { return plan_; }
  // Returns the hashes of positions whose next step is this one.
  PositionHashes HashesAt(const EpochStep& next) const;
  // As the plan's; the error names the job.
  absl::Status CheckEpoch(uint64_t epoch) const;

  // Returns the newest assignment that any iterator has received; nullptr:
  // none.
  std::shared_ptr<const AssignmentTable> table() const;
  void OfferTable(std::shared_ptr<const AssignmentTable> table);

 private:
  JobData(std::shared_ptr<Connection> connection, JobInfo info, v1::Job proto);

  const std::shared_ptr<Connection> connection_;
  const JobInfo info_;
  const v1::Job proto_;
  const Plan plan_;
  mutable Mutex mu_;
  // By segment of shares; made when a position needs them.
  mutable std::map<size_t, PositionHashes> hashes_ ABSL_GUARDED_BY(mu_);
  std::shared_ptr<const AssignmentTable> table_ ABSL_GUARDED_BY(mu_);
};

}  // namespace leat::client
