// SPDX-License-Identifier: Apache-2.0
//
// The real service, through the public client and nothing else.
#include <algorithm>
#include <numeric>
#include <utility>

#include "client/cli/environment.h"
#include "core/status.h"

namespace leat::cli {
namespace {

// The sample of a row that has none (Batches::Samples).
constexpr uint64_t kNoSample = ~uint64_t{0};

// Adds the one row of `batch` to `rows`.
void Append(const Batch& batch, Rows& rows) {
  const std::span<const Tensor> tensors = batch.tensors();
  if (rows.fields.empty()) {
    for (const Tensor& tensor : tensors) {
      rows.fields.push_back({std::string(tensor.name),
                             std::string(tensor.dtype),
                             {tensor.shape.begin(), tensor.shape.end()},
                             {}});
      rows.fields.back().shape[0] = 0;
    }
  }
  for (size_t i = 0; i < tensors.size() && i < rows.fields.size(); ++i) {
    Field& field = rows.fields[i];
    field.shape[0] += batch.rows();
    field.data.insert(field.data.end(), tensors[i].data,
                      tensors[i].data + tensors[i].bytes);
  }
}

class ServiceConnection : public Connection {
 public:
  ServiceConnection(std::unique_ptr<Service> service, absl::Duration timeout)
      : service_(std::move(service)), timeout_(timeout) {}

  Admin& admin() override { return service_->admin(); }

  absl::StatusOr<Rows> ReadRows(std::string_view name, uint64_t epoch,
                                uint64_t step, uint32_t count) override {
    ASSIGN_OR_RETURN(const std::unique_ptr<Job> job, service_->GetJob(name));
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
    options.epochs = epoch + 1;
    options.rows.resize(std::min(count, job->batch()));
    std::iota(options.rows.begin(), options.rows.end(), 0);
    options.window = 1;
    ASSIGN_OR_RETURN(const std::unique_ptr<Batches> batches,
                     job->Open(options));
    ASSIGN_OR_RETURN(rows.samples, batches->Samples(epoch, step));
    std::erase(rows.samples, kNoSample);
    batches->Cancel();
    for (const uint64_t sample : rows.samples) {
      ASSIGN_OR_RETURN(const Batch batch, job->Sample(sample, timeout_));
      Append(batch, rows);
    }
    return rows;
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
