// SPDX-License-Identifier: Apache-2.0
//
// The C interface: samples that a consumer supplies.
#include <utility>

#include "client/api/batches_state.h"
#include "client/api/deadline.h"
#include "client/c/options.h"
#include "client/c/status.h"
#include "core/status.h"

namespace leat::client {
namespace {

absl::StatusOr<Supplied::Fields> FromC(const leat_field* fields, size_t count) {
  if (fields == nullptr && count > 0) return InvalidArgument("fields is NULL");
  Supplied::Fields result;
  for (size_t i = 0; i < count; ++i) {
    const leat_field& field = fields[i];
    if ((field.data == nullptr && field.bytes > 0) ||
        (field.shape == nullptr && field.rank > 0))
      return InvalidArgument("field {}: its data or shape is NULL", i);
    SampleField& to = result.emplace_back();
    if (field.bytes > 0)
      to.bytes.assign(static_cast<const char*>(field.data), field.bytes);
    to.shape.assign(field.shape, field.shape + field.rank);
  }
  return result;
}

// Returns the fields that the caller has supplied.
class OneSample final : public SampleSource {
 public:
  explicit OneSample(std::vector<SampleField> fields)
      : fields_(std::move(fields)) {}
  absl::StatusOr<std::vector<SampleField>> Read(uint64_t, uint64_t) override {
    return fields_;
  }

 private:
  const std::vector<SampleField> fields_;
};

}  // namespace
}  // namespace leat::client

using leat::client::NullArgument;
using leat::client::ToC;

leat_status* leat_batches_open_fed(const leat_job* job,
                                   const char* options_json,
                                   const void* position, size_t position_bytes,
                                   const uint32_t* rows, size_t num_rows,
                                   leat_batches** out, leat_feed** feed) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (out == nullptr) return NullArgument(__func__, "out");
  if (feed == nullptr) return NullArgument(__func__, "feed");
  const auto options = leat::client::BatchesOptionsFromC(
      options_json, position, position_bytes, rows, num_rows);
  if (!options.ok()) return ToC(options.status());
  std::shared_ptr<leat::client::Feed> opened;
  auto batches = leat::client::JobAccess::OpenFed(*job->job, *options, &opened);
  if (!batches.ok()) return ToC(batches.status());
  *out = new leat_batches{*std::move(batches)};
  *feed = new leat_feed{std::move(opened), {}};
  return nullptr;
}

leat_status* leat_feed_next(leat_feed* feed, double timeout_s, uint64_t* epoch,
                            const uint64_t** samples, size_t* count) {
  if (feed == nullptr) return NullArgument(__func__, "feed");
  if (epoch == nullptr) return NullArgument(__func__, "epoch");
  if (samples == nullptr) return NullArgument(__func__, "samples");
  if (count == nullptr) return NullArgument(__func__, "count");
  auto want = feed->feed->Next(
      leat::client::ToDeadline(absl::Now() + leat::client::Timeout(timeout_s)));
  if (!want.ok()) return ToC(want.status());
  feed->samples.clear();
  *epoch = 0;
  if (want->has_value()) {
    *epoch = (*want)->epoch;
    feed->samples = std::move((*want)->samples);
  }
  *samples = feed->samples.data();
  *count = feed->samples.size();
  return nullptr;
}

leat_status* leat_feed_supply(leat_feed* feed, uint64_t sample,
                              const leat_field* fields, size_t num_fields) {
  if (feed == nullptr) return NullArgument(__func__, "feed");
  auto copies = leat::client::FromC(fields, num_fields);
  if (!copies.ok()) return ToC(copies.status());
  return ToC(feed->feed->Supply(sample, *std::move(copies)));
}

void leat_feed_fail(leat_feed* feed, uint64_t sample, int code,
                    const char* message) {
  if (feed == nullptr) return;
  feed->feed->Fail(
      sample,
      leat::MakeStatus(static_cast<absl::StatusCode>(code), "{}",
                       message == nullptr ? "no reason given" : message));
}

void leat_feed_free(leat_feed* feed) { delete feed; }

leat_status* leat_job_sample_supplied(const leat_job* job, uint64_t index,
                                      const leat_field* fields,
                                      size_t num_fields, double timeout_s,
                                      leat_batch** out) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (out == nullptr) return NullArgument(__func__, "out");
  auto copies = leat::client::FromC(fields, num_fields);
  if (!copies.ok()) return ToC(copies.status());
  auto batch = job->job->Sample(
      index, leat::client::Timeout(timeout_s),
      std::make_shared<leat::client::OneSample>(*std::move(copies)));
  if (!batch.ok()) return ToC(batch.status());
  *out = new leat_batch(*std::move(batch));
  return nullptr;
}
