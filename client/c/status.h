// SPDX-License-Identifier: Apache-2.0
//
// The C interface's handles, and conversion of statuses to C. Internal.
#pragma once

#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "client/batch/feed.h"
#include "client/leat/client.h"
#include "client/leat/leat.h"

struct leat_status {
  int code;
  std::string message;
};

// A call holds a reference to the service, so freeing the handle during the
// call is safe.
struct leat_service {
  std::shared_ptr<leat::Service> service;
  // The arguments of leat_service_on_waiting.
  void (*tell)(void* context, const char* job, const char* waits_for) = nullptr;
  void* tell_context = nullptr;
};

struct leat_job {
  std::unique_ptr<leat::Job> job;
};

struct leat_batches {
  std::unique_ptr<leat::Batches> batches;
};

struct leat_feed {
  ~leat_feed() { feed->Abandon(); }
  std::shared_ptr<leat::client::Feed> feed;
  std::vector<uint64_t> samples;  // of the last request
};

struct leat_batch {
  explicit leat_batch(leat::Batch from) : batch(std::move(from)) {
    // C wants names that end with a zero byte.
    names.reserve(batch.tensors().size() * 2);
    for (const leat::Tensor& tensor : batch.tensors()) {
      names.emplace_back(tensor.name);
      names.emplace_back(tensor.dtype);
    }
  }
  leat::Batch batch;
  std::vector<std::string> names;  // tensor i: name at 2 i, dtype after it
  std::atomic<int> owners{1};
  std::atomic<void*> stream{nullptr};  // stream that uses it; null: none
};

namespace leat::client {

// Returns nullptr for OK.
leat_status* ToC(const absl::Status& status);
leat_status* NullArgument(std::string_view function, std::string_view argument);
// Converts seconds; < 0 or too large for a clock: without limit.
absl::Duration Timeout(double seconds);

// "auto", "always", "never"; nullptr: "auto". kInvalidArgument: any other text.
absl::StatusOr<Relist> RelistOf(const char* text);
// Allocates by malloc, for leat_string_free. nullptr: no memory.
char* ToC(std::string_view string);

}  // namespace leat::client
