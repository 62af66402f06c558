// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/fault.h"

#include <charconv>
#include <string>

#include "absl/strings/cord.h"
#include "fmt/format.h"

namespace leat {
namespace {

constexpr char kFaultUrl[] = "leat/fault";
constexpr char kSampleUrl[] = "leat/sample";

absl::Status With(absl::Status status, const char* url, uint64_t value) {
  if (!status.ok()) status.SetPayload(url, absl::Cord(fmt::to_string(value)));
  return status;
}

std::optional<uint64_t> ValueOf(const absl::Status& status, const char* url) {
  const auto payload = status.GetPayload(url);
  if (!payload.has_value()) return std::nullopt;
  const std::string text(*payload);
  uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

}  // namespace

std::string_view Name(Fault fault) {
  switch (fault) {
    case Fault::kSample:
      return "sample";
    case Fault::kObject:
      return "object";
    case Fault::kWorker:
      return "worker";
    case Fault::kTransient:
      return "transient";
  }
  return "unknown";
}

absl::Status WithFault(absl::Status status, Fault fault) {
  return With(std::move(status), kFaultUrl, static_cast<uint64_t>(fault));
}

std::optional<Fault> FaultOf(const absl::Status& status) {
  const std::optional<uint64_t> value = ValueOf(status, kFaultUrl);
  if (!value.has_value()) return std::nullopt;
  return static_cast<Fault>(*value);
}

absl::Status WithDefaultFault(absl::Status status, Fault fault) {
  if (FaultOf(status).has_value()) return status;
  return WithFault(std::move(status), fault);
}

absl::Status WithSample(absl::Status status, uint64_t sample) {
  return With(std::move(status), kSampleUrl, sample);
}

std::optional<uint64_t> SampleOf(const absl::Status& status) {
  return ValueOf(status, kSampleUrl);
}

}  // namespace leat
