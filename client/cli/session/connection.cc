// SPDX-License-Identifier: Apache-2.0
//
// The real service, only through the public client.
#include <algorithm>
#include <numeric>
#include <optional>
#include <utility>

#include "client/cli/base/environment.h"
#include "core/status.h"

namespace leat::cli {
namespace {

class ServiceConnection : public Connection {
 public:
  ServiceConnection(std::unique_ptr<Service> service, absl::Duration timeout)
      : service_(std::move(service)), timeout_(timeout) {}

  Admin& admin() override { return service_->admin(); }

  absl::StatusOr<Rows> ReadRows(std::string_view name, uint64_t epoch,
                                uint64_t step, uint32_t count) override {
    ASSIGN_OR_RETURN(std::unique_ptr<Job> found, service_->GetJob(name));
    const std::shared_ptr<const Job> job = std::move(found);
    if (step >= job->steps_per_epoch()) {
      return InvalidArgument("step {}: job \"{}\" has steps 0 to {}", step,
                             name, job->steps_per_epoch() - 1);
    }
    Rows rows{.job_json = job->ToJson(),
              .epoch = epoch,
              .step = step,
              .steps_per_epoch = job->steps_per_epoch(),
              .batch = job->batch()};
    BatchesOptions options;
    options.epoch = epoch;
    options.step = step;
    options.rows.resize(std::min(count, job->batch()));
    std::iota(options.rows.begin(), options.rows.end(), 0);
    options.window = 1;
    options.look = true;
    options.row_timeout = timeout_;
    ASSIGN_OR_RETURN(const std::unique_ptr<Batches> batches,
                     job->Open(options));
    ASSIGN_OR_RETURN(rows.samples, batches->Samples(epoch, step));
    ASSIGN_OR_RETURN(const std::optional<Batch> batch,
                     batches->Next(absl::Now() + timeout_));
    if (!batch) return Internal("epoch {}, step {}: no batch", epoch, step);
    // A partial batch has no row where there is no sample.
    if (batch->rows() < rows.samples.size())
      std::erase(rows.samples, kNoSample);
    for (const Tensor& tensor : batch->tensors()) {
      rows.fields.push_back({std::string(tensor.name),
                             std::string(tensor.dtype),
                             {tensor.shape.begin(), tensor.shape.end()},
                             {tensor.data, tensor.data + tensor.bytes}});
    }
    rows.record = [job, timeout = timeout_](uint64_t sample) {
      return job->Record(sample, timeout);
    };
    return rows;
  }

  absl::StatusOr<std::string> Explain(std::string_view name, uint64_t epoch,
                                      uint64_t step,
                                      std::optional<uint32_t> row) override {
    ASSIGN_OR_RETURN(const std::unique_ptr<Job> job, service_->GetJob(name));
    if (step >= job->steps_per_epoch()) {
      return OutOfRange("step {}: job \"{}\" has steps 0 to {}", step, name,
                        job->steps_per_epoch() - 1);
    }
    if (!row) return job->Explain(epoch, step, {}, false, timeout_);
    if (*row >= job->batch()) {
      return OutOfRange("row {}: a batch of job \"{}\" has rows 0 to {}", *row,
                        name, job->batch() - 1);
    }
    return job->Explain(epoch, step, {*row}, true, timeout_);
  }

  absl::StatusOr<std::string> CollectSpans(std::string_view name,
                                           absl::Duration duration,
                                           double ratio) override {
    ASSIGN_OR_RETURN(const std::unique_ptr<Job> job, service_->GetJob(name));
    return job->CollectSpans(duration, ratio, timeout_);
  }

 private:
  const std::unique_ptr<Service> service_;
  const absl::Duration timeout_;
};

}  // namespace

absl::StatusOr<std::unique_ptr<Connection>> ConnectService(
    const ConnectOptions& options) {
  ASSIGN_OR_RETURN(std::unique_ptr<Service> service, Service::Connect(options));
  return std::make_unique<ServiceConnection>(std::move(service),
                                             options.timeout);
}

}  // namespace leat::cli
