// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/remote/range_task.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "core/cluster/fault.h"
#include "core/status.h"
#include "worker/source/storage/remote/remote.h"

namespace leat::worker {
namespace {

using Kind = Verdict::Kind;

// Removes the digits at the beginning of `text`.
std::optional<uint64_t> TakeNumber(std::string_view* text) {
  uint64_t value = 0;
  const auto [end, error] =
      std::from_chars(text->data(), text->data() + text->size(), value);
  if (error != std::errc()) return std::nullopt;
  text->remove_prefix(end - text->data());
  return value;
}

}  // namespace

ContentRange ContentRange::Parse(std::string_view text) {
  constexpr std::string_view kUnit = "bytes ";
  ContentRange out;
  if (!text.starts_with(kUnit)) return out;
  text.remove_prefix(kUnit.size());
  out.first = TakeNumber(&text);
  const size_t slash = text.find('/');
  if (slash == std::string_view::npos) return out;
  text.remove_prefix(slash + 1);
  out.total = TakeNumber(&text);
  return out;
}

RangeTask::RangeTask(const Remote& remote, const Target& target,
                     const Identity& identity, uint64_t offset, uint64_t size,
                     std::span<const ReadRange> wanted)
    : remote_(remote),
      target_(target),
      identity_(identity),
      offset_(offset),
      size_(size),
      wanted_(wanted) {}

RangeTask::RangeTask(const Remote& remote, const Target& target,
                     const Identity& identity, ReadRange wanted)
    : remote_(remote),
      target_(target),
      identity_(identity),
      offset_(wanted.offset),
      size_(wanted.into.size()),
      into_(wanted.into) {}

std::string RangeTask::Describe() const {
  return fmt::format("{}: reading {} bytes at {}", target_.name, size_,
                     offset_);
}

HttpRequest RangeTask::Next(std::span<std::byte> other) {
  if (!wanted_.empty() && buffer_.empty()) {
    buffer_.resize(size_);
    into_ = buffer_;
  }
  if (!other.empty()) other_from_ = done_;
  HttpRequest request = target_.Request(false, remote_.WallNow());
  request.first = offset_ + done_;
  request.into = other.empty() ? into_.subspan(done_) : other;
  if (identity_.kind == Identity::Kind::kEtag) {
    request.headers.push_back(
        fmt::format("If-Match: \"{}\"", identity_.version));
  } else if (identity_.kind == Identity::Kind::kModified) {
    request.headers.push_back("If-Unmodified-Since: " + identity_.version);
  }
  return request;
}

Verdict RangeTask::CheckHeaders(const HttpResponse& response,
                                uint64_t first) const {
  uint64_t total = response.content_length.value_or(identity_.size);
  if (response.status == 206) {
    const ContentRange range = ContentRange::Parse(response.content_range);
    if (range.first != first) {
      return {Kind::kFailed,
              WithFault(DataLoss("{}: the server answers with the range '{}', "
                                 "want {}",
                                 Describe(), response.content_range, first),
                        Fault::kWorker)};
    }
    total = range.total.value_or(identity_.size);
  }
  const Identity now =
      HttpIdentity(total, response.etag, response.last_modified);
  // A value that a server does not repeat cannot be compared.
  const bool comparable = now.kind == identity_.kind;
  if (total == identity_.size &&
      (!comparable || now.version == identity_.version)) {
    return {};
  }
  return {
      Kind::kFailed,
      WithFault(FailedPrecondition("{}: it changed since it was opened: "
                                   "was {}, is {}",
                                   Describe(), identity_.Text(), now.Text()),
                Fault::kObject)};
}

namespace {

Verdict Again(const absl::Status& why) {
  return {Kind::kRetry, WithFault(why, Fault::kTransient)};
}

}  // namespace

Verdict RangeTask::Take(const HttpResponse& response,
                        std::span<const std::byte> other) {
  const bool whole = response.status == 200;
  const bool too_large = response.failure == HttpResponse::Failure::kTooLarge;
  const uint64_t from = other.empty() ? done_ : other_from_;
  if ((!whole && response.status != 206) || too_large) {
    if (whole && offset_ == 0 && from > 0) {
      // A server without ranges, after a try that broke off: from the
      // beginning.
      done_ = 0;
      return Again(Unavailable("{}: no ranges", Describe()));
    }
    return Explain(response,
                   target_.AskedFor(fmt::format("cannot read {} bytes at {}",
                                                size_, offset_)),
                   remote_.WallNow());
  }
  Verdict verdict = CheckHeaders(response, offset_ + from);
  if (verdict.kind != Kind::kDone) return verdict;
  const bool complete = from + response.received == size_;
  if (!other.empty()) {
    if (!complete) {
      return Again(Unavailable("{}: it broke off", Describe()));
    }
    std::memcpy(into_.data() + from, other.data(), response.received);
  }
  if (complete) {
    done_ = size_;
    Scatter();
    return {};
  }
  // A whole object that broke off is requested from its beginning.
  if (!whole && other.empty()) done_ += response.received;
  if (response.failure != HttpResponse::Failure::kNone) {
    return Explain(response,
                   target_.AskedFor(fmt::format("cannot read {} bytes at {}",
                                                size_, offset_)),
                   remote_.WallNow());
  }
  return Again(Unavailable("{}: {} bytes came, want {}", Describe(),
                           from + response.received, size_));
}

void RangeTask::Scatter() {
  for (const ReadRange& range : wanted_) {
    if (range.into.empty()) continue;
    std::memcpy(range.into.data(), buffer_.data() + (range.offset - offset_),
                range.into.size());
  }
  std::vector<std::byte>().swap(buffer_);
}

bool RangeTask::Refresh() {
  return target_.account != nullptr && target_.account->Refresh();
}

}  // namespace leat::worker
