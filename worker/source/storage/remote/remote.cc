// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/remote/remote.h"

#include <array>

#include "core/status.h"
#include "worker/source/storage/remote/range_task.h"

namespace leat::worker {
namespace {

using Kind = Verdict::Kind;

// Requests size and version: by HEAD, or by the first byte.
class ProbeTask : public HttpTask {
 public:
  ProbeTask(const Remote& remote, const Target& target, bool head,
            HttpResponse* out)
      : remote_(remote), target_(target), head_(head), out_(out) {}

  std::string Describe() const override {
    return fmt::format("{}: looking at it", target_.name);
  }
  HttpRequest Next(std::span<std::byte> /*other*/) override {
    HttpRequest request = target_.Request(head_, remote_.WallNow());
    if (!head_) {
      request.first = 0;
      request.into = byte_;
    }
    return request;
  }
  size_t hedge_bytes() const override { return 0; }
  Verdict Take(const HttpResponse& response,
               std::span<const std::byte> /*other*/) override {
    *out_ = response;
    const int status = response.status;
    const bool whole = status == 200 && (head_ || response.content_length);
    if (whole || (status == 206 && !head_)) return {};
    // An empty object has no first byte.
    if (status == 416 &&
        ContentRange::Parse(response.content_range).total == 0) {
      return {};
    }
    return Explain(response, target_.AskedFor("cannot look at it"),
                   remote_.WallNow());
  }
  bool Refresh() override {
    return target_.account != nullptr && target_.account->Refresh();
  }

 private:
  const Remote& remote_;
  const Target& target_;
  const bool head_;
  HttpResponse* const out_;
  std::array<std::byte, 1> byte_ = {};
};

// True if HEAD is not answered as GET would be, or without the reason that
// GET's body has.
bool IsMuteStatus(int status, bool s3) {
  return (s3 && status == 404) || status == 301 || status == 307 ||
         status == 400 || status == 403 || status == 405 || status == 501;
}

}  // namespace

Remote::Remote(const StorageConfig& config,
               std::unique_ptr<HttpTransport> transport, StorageClock* clock,
               std::function<uint64_t()> random,
               std::shared_ptr<DiskCache> disk)
    : config_(config),
      transport_(std::move(transport)),
      clock_(clock),
      random_(std::move(random)),
      disk_(std::move(disk)),
      late_(config_),
      context_{config_,   *transport_, *clock_, random_, late_,
               requests_, retries_,    hedges_, stop_,   waits_} {}

StorageCounters Remote::counters() const {
  StorageCounters counters;
  counters.requests = requests_;
  counters.retries = retries_;
  counters.hedges = hedges_;
  constexpr size_t kMostWaits = 4;
  counters.waits = waits_.Texts(kMostWaits);
  return counters;
}

Verdict Remote::Run(std::span<const std::unique_ptr<HttpTask>> tasks) {
  return RunTasks(context_, tasks);
}

Verdict Remote::Run(std::unique_ptr<HttpTask> task) {
  return RunTasks(context_, std::span(&task, 1));
}

absl::StatusOr<Identity> ProbeObject(Remote& remote, const Target& target) {
  HttpResponse response;
  Verdict verdict =
      remote.Run(std::make_unique<ProbeTask>(remote, target, true, &response));
  const bool sized = response.content_length.has_value();
  if ((verdict.kind == Kind::kDone && !sized) ||
      (verdict.kind == Kind::kFailed &&
       IsMuteStatus(response.status, target.account != nullptr))) {
    verdict = remote.Run(
        std::make_unique<ProbeTask>(remote, target, false, &response));
  }
  if (verdict.kind != Kind::kDone) return verdict.status;
  uint64_t size = response.content_length.value_or(0);
  if (response.status != 200) {
    const ContentRange range = ContentRange::Parse(response.content_range);
    if (!range.total.has_value()) {
      return Unimplemented("{}: the server does not say its size", target.name);
    }
    size = *range.total;
  }
  return HttpIdentity(size, response.etag, response.last_modified);
}

}  // namespace leat::worker
