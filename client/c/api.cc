// SPDX-License-Identifier: Apache-2.0
//
// The C interface: services, jobs, batches. It translates and checks arguments;
// it has no logic of its own.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <optional>

#include "absl/strings/str_replace.h"
#include "client/c/options.h"
#include "client/c/status.h"
#include "client/leat/admin.h"
#include "core/status.h"
#include "nlohmann/json.hpp"
#include "rpc/call/grpc_log.h"
#include "rpc/wire/messages.h"

namespace leat::client {

leat_status* ToC(const absl::Status& status) {
  if (status.ok()) return nullptr;
  // A zero byte would end the text for its reader.
  return new leat_status{
      static_cast<int>(status.code()),
      absl::StrReplaceAll(status.message(),
                          {{absl::string_view("\0", 1), "\\0"}})};
}

leat_status* NullArgument(std::string_view function,
                          std::string_view argument) {
  return ToC(InvalidArgument("{}: {} is NULL", function, argument));
}

char* ToC(std::string_view string) {
  auto* copy = static_cast<char*>(std::malloc(string.size() + 1));
  if (copy == nullptr) return nullptr;
  std::memcpy(copy, string.data(), string.size());
  copy[string.size()] = 0;
  return copy;
}

absl::StatusOr<Relist> RelistOf(const char* text) {
  const std::string_view wish = text == nullptr ? "auto" : text;
  if (wish == "auto") return Relist::kAuto;
  if (wish == "always") return Relist::kAlways;
  if (wish == "never") return Relist::kNever;
  return InvalidArgument("relist: \"{}\", want auto, always or never", wish);
}

absl::Duration Timeout(double seconds) {
  if (!(seconds >= 0) || seconds > 1e9) return absl::InfiniteDuration();
  return absl::Seconds(seconds);
}

namespace {

// Returns the number of bytes; copies as many as there is room for.
size_t CopyOut(std::string_view bytes, void* to, size_t capacity) {
  if (to != nullptr)
    std::memcpy(to, bytes.data(), std::min(capacity, bytes.size()));
  return bytes.size();
}

std::string_view OrEmpty(const char* string) {
  return string == nullptr ? std::string_view() : std::string_view(string);
}

}  // namespace
}  // namespace leat::client

using leat::client::NullArgument;
using leat::client::ToC;

int leat_abi_version(void) { return LEAT_ABI_VERSION; }
const char* leat_version(void) { return leat::Version().data(); }
void leat_log_grpc(void) {
  if (std::getenv("GRPC_VERBOSITY") == nullptr &&
      std::getenv("GRPC_TRACE") == nullptr)
    leat::rpc::LogGrpc();
}

int leat_status_code(const leat_status* status) {
  return status == nullptr ? 0 : status->code;
}
const char* leat_status_message(const leat_status* status) {
  return status == nullptr ? "" : status->message.c_str();
}
void leat_status_free(leat_status* status) { delete status; }
void leat_string_free(char* string) { std::free(string); }

leat_status* leat_connect(const char* options_json, leat_service** out) {
  if (out == nullptr) return NullArgument(__func__, "out");
  const auto options =
      leat::client::ConnectOptionsFromJson(leat::client::OrEmpty(options_json));
  if (!options.ok()) return ToC(options.status());
  auto service = leat::Service::Connect(*options);
  if (!service.ok()) return ToC(service.status());
  *out = new leat_service{*std::move(service)};
  return nullptr;
}

const char* leat_service_address(const leat_service* service) {
  return service == nullptr ? "" : service->service->address().c_str();
}

void leat_service_free(leat_service* service) { delete service; }

leat_status* leat_service_get(leat_service* service, const char* what,
                              const char* name, char** json) {
  if (service == nullptr) return NullArgument(__func__, "service");
  if (what == nullptr) return NullArgument(__func__, "what");
  if (json == nullptr) return NullArgument(__func__, "json");
  const std::shared_ptr<leat::Service> held = service->service;
  const absl::StatusOr<std::string> text =
      std::string_view(what) == "private"
          ? held->PrivateJson()
          : held->admin().Get(what, leat::client::OrEmpty(name));
  if (!text.ok()) return ToC(text.status());
  *json = ToC(*text);
  return nullptr;
}

leat_status* leat_service_do(leat_service* service, const char* verb,
                             const char* name) {
  if (service == nullptr) return NullArgument(__func__, "service");
  if (verb == nullptr) return NullArgument(__func__, "verb");
  if (name == nullptr) return NullArgument(__func__, "name");
  const std::shared_ptr<leat::Service> held = service->service;
  return ToC(held->admin().Do(verb, name));
}

void leat_service_on_waiting(leat_service* service,
                             void (*tell)(void* context, const char* job,
                                          const char* waits_for),
                             void* context) {
  if (service == nullptr) return;
  service->tell = tell;
  service->tell_context = context;
}

leat_status* leat_job_create(leat_service* service, const char* spec_json,
                             const char* relist, double timeout_s,
                             leat_job** out) {
  if (service == nullptr) return NullArgument(__func__, "service");
  if (spec_json == nullptr) return NullArgument(__func__, "spec_json");
  if (out == nullptr) return NullArgument(__func__, "out");
  const auto wish = leat::client::RelistOf(relist);
  if (!wish.ok()) return ToC(wish.status());
  const std::shared_ptr<leat::Service> held = service->service;
  leat::Service::OnWaiting on_waiting;
  if (service->tell != nullptr)
    on_waiting = [spec_json, tell = service->tell,
                  context = service->tell_context](std::string_view waits_for) {
      // nlohmann's parser refuses some of what CreateJob takes.
      const auto spec = leat::rpc::JobSpecFromJson(spec_json);
      tell(context, spec.ok() ? spec->name.c_str() : "",
           std::string(waits_for).c_str());
    };
  auto job = held->CreateJob(spec_json, leat::client::Timeout(timeout_s), *wish,
                             on_waiting);
  if (!job.ok()) return ToC(job.status());
  *out = new leat_job{*std::move(job)};
  return nullptr;
}

leat_status* leat_job_get(leat_service* service, const char* name,
                          leat_job** out) {
  if (service == nullptr) return NullArgument(__func__, "service");
  if (name == nullptr) return NullArgument(__func__, "name");
  if (out == nullptr) return NullArgument(__func__, "out");
  const std::shared_ptr<leat::Service> held = service->service;
  auto job = held->GetJob(name);
  if (!job.ok()) return ToC(job.status());
  *out = new leat_job{*std::move(job)};
  return nullptr;
}

char* leat_job_json(const leat_job* job) {
  if (job == nullptr) return nullptr;
  const nlohmann::json json = {
      {"job", nlohmann::json::parse(job->job->ToJson(), nullptr, false)},
      {"steps_per_epoch", job->job->steps_per_epoch()},
      {"plan_hash", job->job->plan_hash()},
      {"attached", job->job->attached()},
      {"dataset_changed", job->job->dataset_changed()},
      {"consumers", job->job->consumers()}};
  return ToC(json.dump());
}

leat_status* leat_job_sample(const leat_job* job, uint64_t index,
                             double timeout_s, leat_batch** out) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (out == nullptr) return NullArgument(__func__, "out");
  auto batch = job->job->Sample(index, leat::client::Timeout(timeout_s));
  if (!batch.ok()) return ToC(batch.status());
  *out = new leat_batch(*std::move(batch));
  return nullptr;
}

leat_status* leat_job_step_of(const leat_job* job, const void* position,
                              size_t position_bytes, uint64_t* epoch,
                              uint64_t* step) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (position == nullptr) return NullArgument(__func__, "position");
  if (epoch == nullptr) return NullArgument(__func__, "epoch");
  if (step == nullptr) return NullArgument(__func__, "step");
  const auto next =
      job->job->StepOf({static_cast<const char*>(position), position_bytes});
  if (!next.ok()) return ToC(next.status());
  *epoch = next->epoch;
  *step = next->step;
  return nullptr;
}

leat_status* leat_job_samples(const leat_job* job, uint64_t epoch,
                              uint64_t step, const uint32_t* rows,
                              size_t num_rows, int64_t* samples) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (rows == nullptr && num_rows > 0) return NullArgument(__func__, "rows");
  if (samples == nullptr) return NullArgument(__func__, "samples");
  const auto planned = job->job->Samples(epoch, step, {rows, rows + num_rows});
  if (!planned.ok()) return ToC(planned.status());
  // ~0 becomes -1.
  std::transform(planned->begin(), planned->end(), samples,
                 [](uint64_t sample) { return static_cast<int64_t>(sample); });
  return nullptr;
}

leat_status* leat_job_rows_before(const leat_job* job, uint64_t epoch,
                                  uint64_t step, uint64_t* rows,
                                  size_t num_sources) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (rows == nullptr) return NullArgument(__func__, "rows");
  const auto before = job->job->RowsBefore(epoch, step);
  if (!before.ok()) return ToC(before.status());
  if (before->size() != num_sources)
    return ToC(leat::InvalidArgument("num_sources {}: the job has {}",
                                     num_sources, before->size()));
  std::ranges::copy(*before, rows);
  return nullptr;
}

leat_status* leat_job_record(const leat_job* job, uint64_t index,
                             uint64_t first_document, double timeout_s,
                             char** json) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (json == nullptr) return NullArgument(__func__, "json");
  const auto text =
      job->job->Record(index, leat::client::Timeout(timeout_s), first_document);
  if (!text.ok()) return ToC(text.status());
  *json = ToC(*text);
  return nullptr;
}

leat_status* leat_job_explain(const leat_job* job, uint64_t epoch,
                              uint64_t step, const uint32_t* rows,
                              size_t num_rows, int read_records,
                              double timeout_s, char** json) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (rows == nullptr && num_rows > 0) return NullArgument(__func__, "rows");
  if (json == nullptr) return NullArgument(__func__, "json");
  const auto text =
      job->job->Explain(epoch, step, {rows, rows + num_rows}, read_records != 0,
                        leat::client::Timeout(timeout_s));
  if (!text.ok()) return ToC(text.status());
  *json = ToC(*text);
  return nullptr;
}

void leat_job_free(leat_job* job) { delete job; }

leat_status* leat_batches_open(const leat_job* job, const char* options_json,
                               const void* position, size_t position_bytes,
                               const uint32_t* rows, size_t num_rows,
                               leat_batches** out) {
  if (job == nullptr) return NullArgument(__func__, "job");
  if (out == nullptr) return NullArgument(__func__, "out");
  const auto options = leat::client::BatchesOptionsFromC(
      options_json, position, position_bytes, rows, num_rows);
  if (!options.ok()) return ToC(options.status());
  auto batches = job->job->Open(*options);
  if (!batches.ok()) return ToC(batches.status());
  *out = new leat_batches{*std::move(batches)};
  return nullptr;
}

leat_status* leat_batches_next(leat_batches* batches, double timeout_s,
                               leat_batch** out) {
  if (batches == nullptr) return NullArgument(__func__, "batches");
  if (out == nullptr) return NullArgument(__func__, "out");
  auto batch =
      batches->batches->Next(absl::Now() + leat::client::Timeout(timeout_s));
  if (!batch.ok()) return ToC(batch.status());
  *out = batch->has_value() ? new leat_batch(**std::move(batch)) : nullptr;
  return nullptr;
}

void leat_batches_cancel(leat_batches* batches) {
  if (batches != nullptr) batches->batches->Cancel();
}

void leat_batches_begin_wait(leat_batches* batches) {
  if (batches != nullptr) batches->batches->BeginWait();
}

void leat_batches_end_wait(leat_batches* batches, int delivered) {
  if (batches != nullptr) batches->batches->EndWait(delivered != 0);
}

size_t leat_batches_position(const leat_batches* batches, void* position,
                             size_t capacity) {
  if (batches == nullptr) return 0;
  return leat::client::CopyOut(batches->batches->position(), position,
                               capacity);
}

size_t leat_batches_position_at(const leat_batches* batches, uint64_t epoch,
                                uint64_t step, void* position,
                                size_t capacity) {
  if (batches == nullptr) return 0;
  return leat::client::CopyOut(batches->batches->PositionAt(epoch, step),
                               position, capacity);
}

void leat_batches_free(leat_batches* batches) { delete batches; }
