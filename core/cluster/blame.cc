// SPDX-License-Identifier: Apache-2.0
#include "core/cluster/blame.h"

#include <charconv>
#include <string>

#include "absl/strings/cord.h"
#include "fmt/format.h"

namespace leat {
namespace {

constexpr char kBlameUrl[] = "leat/blame";
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

std::string_view Name(Blame blame) {
  switch (blame) {
    case Blame::kSample:
      return "sample";
    case Blame::kObject:
      return "object";
    case Blame::kWorker:
      return "worker";
    case Blame::kPassing:
      return "passing";
  }
  return "unknown";
}

absl::Status WithBlame(absl::Status status, Blame blame) {
  return With(std::move(status), kBlameUrl, static_cast<uint64_t>(blame));
}

std::optional<Blame> BlameOf(const absl::Status& status) {
  const std::optional<uint64_t> value = ValueOf(status, kBlameUrl);
  if (!value.has_value()) return std::nullopt;
  return static_cast<Blame>(*value);
}

absl::Status WithDefaultBlame(absl::Status status, Blame blame) {
  if (BlameOf(status).has_value()) return status;
  return WithBlame(std::move(status), blame);
}

absl::Status WithSample(absl::Status status, uint64_t sample) {
  return With(std::move(status), kSampleUrl, sample);
}

std::optional<uint64_t> SampleOf(const absl::Status& status) {
  return ValueOf(status, kSampleUrl);
}

}  // namespace leat
