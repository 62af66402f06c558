// SPDX-License-Identifier: Apache-2.0
//
// Only the loop's thread touches libcurl. Callers put transfers and
// cancellations into lists and wake it; it starts at most `connections`
// transfers, first come first served, and calls `done` without the lock.
#include "worker/source/storage/http/curl_transport.h"

#include <deque>
#include <map>
#include <set>
#include <thread>

#include "core/freed.h"
#include "core/mutex.h"
#include "core/status.h"
#include "core/thread.h"
#include "worker/source/storage/http/curl_transfer.h"

namespace leat::worker {
namespace {

constexpr int kPollMs = 1000;  // libcurl's own timers end a wait earlier

bool InitCurl() {
  static const CURLcode code = curl_global_init(CURL_GLOBAL_DEFAULT);
  return code == CURLE_OK;
}

}  // namespace

class CurlTransport::Loop {
 public:
  Loop(const StorageConfig& config, std::shared_ptr<const AllowedReads> allowed)
      : config_(config),
        allowed_(std::move(allowed)),
        multi_(curl_multi_init()) {}

  ~Loop() {
    {
      const MutexLock lock(&mu_);
      stopping_ = true;
    }
    curl_multi_wakeup(multi_.get());
    if (thread_.joinable()) thread_.join();
    for (const auto& [id, transfer] : active_) {
      curl_multi_remove_handle(multi_.get(), transfer->easy());
    }
  }

  absl::Status Start() {
    if (multi_ == nullptr) return Internal("libcurl: no memory");
    curl_multi_setopt(multi_.get(), CURLMOPT_MAXCONNECTS,
                      static_cast<long>(config_.connections));
    return StartThread(
        "storage", [this] { Run(); }, &thread_);
  }

  Id Begin(HttpRequest request, Done done) {
    Id id;
    {
      const MutexLock lock(&mu_);
      id = ++last_id_;
      live_.insert(id);
      queued_.push_back(std::make_unique<CurlTransfer>(id, std::move(request),
                                                       std::move(done)));
    }
    curl_multi_wakeup(multi_.get());
    return id;
  }

  void Cancel(Id id) {
    const MutexLock lock(&mu_);
    for (auto it = queued_.begin(); it != queued_.end(); ++it) {
      if ((*it)->id() != id) continue;
      queued_.erase(it);
      live_.erase(id);
      return;
    }
    if (!live_.contains(id)) return;
    cancelled_.insert(id);
    curl_multi_wakeup(multi_.get());
    while (live_.contains(id)) ended_.Wait(&mu_);
  }

  bool Saturated() const {
    const MutexLock lock(&mu_);
    return live_.size() > static_cast<size_t>(config_.connections);
  }

 private:
  void Run() {
    while (TakeOrders()) {
      int running = 0;
      curl_multi_perform(multi_.get(), &running);
      // Finished transfers made room for waiting ones.
      if (FinishSome()) continue;
      curl_multi_poll(multi_.get(), nullptr, 0, kPollMs, nullptr);
    }
  }

  // Cancels and starts what callers requested. Returns false at the end.
  bool TakeOrders() {
    std::vector<std::unique_ptr<CurlTransfer>> started;
    {
      const MutexLock lock(&mu_);
      if (stopping_) return false;
      for (const Id id : cancelled_) {
        const auto found = active_.find(id);
        if (found == active_.end()) continue;
        curl_multi_remove_handle(multi_.get(), found->second->easy());
        active_.erase(found);
        live_.erase(id);
      }
      if (!cancelled_.empty()) ended_.NotifyAll();
      cancelled_.clear();
      while (!queued_.empty() && active_.size() + started.size() <
                                     static_cast<size_t>(config_.connections)) {
        started.push_back(std::move(queued_.front()));
        queued_.pop_front();
      }
    }
    for (auto& transfer : started) StartOne(std::move(transfer));
    return true;
  }

  void StartOne(std::unique_ptr<CurlTransfer> transfer) {
    CURL* const easy = transfer->Prepare(config_, *allowed_);
    if (easy == nullptr || curl_multi_add_handle(multi_.get(), easy) != 0) {
      Report(std::move(transfer), CURLE_OUT_OF_MEMORY);
      return;
    }
    const Id id = transfer->id();
    active_.emplace(id, std::move(transfer));
  }

  bool FinishSome() {
    bool any = false;
    int left = 0;
    while (const CURLMsg* const message =
               curl_multi_info_read(multi_.get(), &left)) {
      if (message->msg != CURLMSG_DONE) continue;
      const CURLcode code = message->data.result;
      CURL* const easy = message->easy_handle;
      CurlTransfer* self = nullptr;
      curl_easy_getinfo(easy, CURLINFO_PRIVATE, &self);
      curl_multi_remove_handle(multi_.get(), easy);
      auto node = active_.extract(self->id());
      Report(std::move(node.mapped()), code);
      any = true;
    }
    return any;
  }

  void Report(std::unique_ptr<CurlTransfer> transfer, CURLcode code) {
    transfer->done()(transfer->Finish(code));
    const Id id = transfer->id();
    transfer.reset();
    const MutexLock lock(&mu_);
    live_.erase(id);
    ended_.NotifyAll();
  }

  const StorageConfig config_;
  const std::shared_ptr<const AllowedReads> allowed_;
  const std::unique_ptr<CURLM, Freed<curl_multi_cleanup>> multi_;
  std::thread thread_;
  // Used by the loop's thread; after its end by the destructor.
  std::map<Id, std::unique_ptr<CurlTransfer>> active_;

  mutable Mutex mu_;
  CondVar ended_;
  bool stopping_ ABSL_GUARDED_BY(mu_) = false;
  Id last_id_ ABSL_GUARDED_BY(mu_) = 0;
  std::deque<std::unique_ptr<CurlTransfer>> queued_ ABSL_GUARDED_BY(mu_);
  std::set<Id> cancelled_ ABSL_GUARDED_BY(mu_);
  // Begun, and `done` has not returned.
  std::set<Id> live_ ABSL_GUARDED_BY(mu_);
};

CurlTransport::CurlTransport(std::unique_ptr<Loop> loop)
    : loop_(std::move(loop)) {}
CurlTransport::~CurlTransport() = default;

absl::StatusOr<std::unique_ptr<CurlTransport>> CurlTransport::Create(
    const StorageConfig& config, std::shared_ptr<const AllowedReads> allowed) {
  if (!InitCurl()) return Internal("libcurl: its global set-up failed");
  auto loop = std::make_unique<Loop>(config, std::move(allowed));
  RETURN_IF_ERROR(loop->Start());
  return std::unique_ptr<CurlTransport>(new CurlTransport(std::move(loop)));
}

CurlTransport::Id CurlTransport::Begin(HttpRequest request, Done done) {
  return loop_->Begin(std::move(request), std::move(done));
}

void CurlTransport::Cancel(Id id) { loop_->Cancel(id); }

bool CurlTransport::Saturated() const { return loop_->Saturated(); }

}  // namespace leat::worker
