// SPDX-License-Identifier: Apache-2.0
#include "server/observe/cluster_events.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/status.h"

namespace leat::server {
namespace {

constexpr std::array<std::string_view, 6> kKinds = {
    "consumer", "coordinator", "dataset", "finding", "job", "worker"};
constexpr size_t kMaxSubject = 600;

// Valid UTF-8 stays valid.
void Cut(std::string* text) {
  size_t end = ClusterEvents::kMaxText;
  if (text->size() <= end) return;
  while (end > 0 && (static_cast<unsigned char>((*text)[end]) & 0xc0) == 0x80)
    --end;
  text->resize(end);
}

}  // namespace

absl::Status CheckSubject(std::string_view subject) {
  if (subject.empty()) return absl::OkStatus();
  const std::string_view kind = subject.substr(0, subject.find('/'));
  const bool known =
      std::find(kKinds.begin(), kKinds.end(), kind) != kKinds.end();
  if (known && subject.size() <= kMaxSubject && !subject.ends_with('/'))
    return absl::OkStatus();
  return InvalidArgument(
      "events of \"{}\": want KIND or KIND/NAME, where KIND is one of {}",
      subject.substr(0, 64), fmt::join(kKinds, ", "));
}

bool IsAbout(std::string_view subject, std::string_view wanted) {
  if (wanted.empty() || subject == wanted) return true;
  return wanted.find('/') == std::string_view::npos &&
         subject.size() > wanted.size() && subject.starts_with(wanted) &&
         subject[wanted.size()] == '/';
}

void ClusterEvents::Note(ClusterEvent event) {
  Cut(&event.message);
  if (event.subjects.size() > kMaxSubjects) event.subjects.resize(kMaxSubjects);
  for (std::string& subject : event.subjects) Cut(&subject);
  std::shared_ptr<const ClusterEvent> forgotten;  // freed without the lock
  MutexLock lock(&mu_);
  event.sequence = ++last_;
  ring_.push_back(std::make_shared<const ClusterEvent>(std::move(event)));
  if (ring_.size() <= config_.max_events) return;
  forgotten = std::move(ring_.front());
  ring_.pop_front();
}

void ClusterEvents::WakeWatchers() {
  std::vector<Wake> wakes;
  {
    MutexLock lock(&mu_);
    if (std::exchange(woken_, last_) == last_) return;
    for (auto& [id, watcher] : watchers_)
      if (std::exchange(watcher.waiting, false)) wakes.push_back(watcher.wake);
  }
  for (const Wake& wake : wakes) wake();
}

absl::StatusOr<uint64_t> ClusterEvents::Watch(Wake wake) {
  MutexLock lock(&mu_);
  if (watchers_.size() >= config_.max_watchers)
    return ResourceExhausted(
        "{} callers follow the events, the limit: end one of them, or ask "
        "without following",
        watchers_.size());
  const uint64_t id = next_watcher_++;
  watchers_[id].wake = std::move(wake);
  return id;
}

void ClusterEvents::Unwatch(uint64_t watcher) {
  MutexLock lock(&mu_);
  watchers_.erase(watcher);
}

absl::StatusOr<EventPage> ClusterEvents::Read(const EventQuery& query,
                                              uint64_t watcher) {
  EventPage page;
  MutexLock lock(&mu_);
  if (stopped_) return Unavailable("the coordinator is stopping");
  const uint64_t first = last_ + 1 - ring_.size();
  const uint64_t after = std::min(query.after, last_);
  if (after + 1 < first) page.missed = first - after - 1;
  page.sequence = std::max(after, first - 1);
  while (page.sequence < last_ && page.events.size() < config_.page) {
    const auto& event = ring_[page.sequence - first + 1];
    page.sequence = event->sequence;
    const bool about =
        query.subject.empty() ||
        std::ranges::any_of(event->subjects, [&](const std::string& subject) {
          return IsAbout(subject, query.subject);
        });
    if (about && event->at >= query.since) page.events.push_back(event);
  }
  page.more = page.sequence < last_;
  if (const auto it = watchers_.find(watcher);
      it != watchers_.end() && !page.more && page.events.empty())
    it->second.waiting = true;
  return page;
}

void ClusterEvents::Stop() {
  std::vector<Wake> wakes;
  {
    MutexLock lock(&mu_);
    stopped_ = true;
    for (const auto& [id, watcher] : watchers_) wakes.push_back(watcher.wake);
  }
  for (const Wake& wake : wakes) wake();
}

}  // namespace leat::server
