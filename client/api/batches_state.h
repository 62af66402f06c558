// SPDX-License-Identifier: Apache-2.0
//
// The states of the public objects, and functions that make them. Internal.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "client/api/job_data.h"
#include "client/batch/row_format.h"
#include "client/engine/engine.h"
#include "client/leat/client.h"

namespace leat {

struct Batch::State {
  // Takes over the buffer of a complete step.
  State(std::shared_ptr<const client::JobData> job_data,
        std::shared_ptr<const client::RowFormat> row_format,
        std::shared_ptr<client::Step> step);

  const std::shared_ptr<const client::JobData> job;
  const std::shared_ptr<const client::RowFormat> format;  // owns the names
  client::BatchPool::Buffer buffer;
  const uint64_t epoch, step;
  const uint32_t rows;
  const int device;  // -1: host memory
  std::vector<std::vector<int64_t>> shapes;
  std::vector<Tensor> tensors;
};

struct Batches::State {
  State(std::shared_ptr<client::JobData> job_data,
        std::shared_ptr<const client::RowFormat> row_format,
        std::shared_ptr<const client::RowMap> row_map)
      : job(std::move(job_data)),
        format(std::move(row_format)),
        map(std::move(row_map)) {}
  ~State() {
    if (engine) engine->Stop();
  }
  const std::shared_ptr<client::JobData> job;
  const std::shared_ptr<const client::RowFormat> format;
  const std::shared_ptr<const client::RowMap> map;
  const std::shared_ptr<client::SheetReporter> sheets =
      std::make_shared<client::SheetReporter>();
  std::shared_ptr<client::Engine> engine;
};

struct Job::State {
  std::shared_ptr<client::JobData> data;
  // As CreateJob found it.
  bool attached = true;
  std::string dataset_changed;
  uint64_t consumers = 0;
};

namespace client {

absl::StatusOr<std::unique_ptr<Job>> MakeJob(
    std::shared_ptr<Connection> connection, const v1::Job& job);
absl::StatusOr<std::unique_ptr<Job>> MakeJob(
    std::shared_ptr<Connection> connection,
    const v1::CreateJobResponse& created);

// JobAccess: functions that the C interface needs beyond the public ones.
struct JobAccess {
  // Like Job::Open, for a job with an external reader; the caller serves the
  // iterator's feed.
  static absl::StatusOr<std::unique_ptr<Batches>> OpenFed(
      const Job& job, const BatchesOptions& options,
      std::shared_ptr<Feed>* feed);
};

// Returns the samples of these rows of a step; kNoSample also for padding.
// kOutOfRange: no such step.
absl::StatusOr<std::vector<uint64_t>> SamplesOf(const JobData& job,
                                                uint64_t epoch, uint64_t step,
                                                std::span<const uint32_t> rows);

// Returns the options for fetching `job`; the caller adds which part of it.
EngineOptions EngineOptionsFor(const std::shared_ptr<JobData>& job);

}  // namespace client
}  // namespace leat
