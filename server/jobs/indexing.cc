// SPDX-License-Identifier: Apache-2.0
#include "server/jobs/indexing.h"

#include <algorithm>
#include <string>
#include <string_view>
#include <tuple>
#include <variant>
#include <vector>

#include "core/counted.h"
#include "core/plan/abilities.h"
#include "core/plan/short_lists.h"
#include "core/redaction.h"
#include "core/status.h"

namespace leat::server {
namespace {

bool LiesIn(std::string_view path, std::string_view folder) {
  if (path.starts_with("file://")) path.remove_prefix(7);
  if (!path.starts_with(folder)) return false;
  path.remove_prefix(folder.size());
  return path.empty() || path.front() == '/' || folder.ends_with('/');
}

// A dataset that is being listed may have no fingerprint yet, so a failure
// concerns it if the reader names something in the same place.
bool Concerns(const v1::StorageFailure& failure, const Node& reader) {
  const auto there = [&](const std::string& path) {
    return !path.empty() &&
           (LiesIn(path, failure.root()) || LiesIn(failure.root(), path));
  };
  return std::ranges::any_of(reader.args, [&](const auto& arg) {
    if (const auto* path = std::get_if<std::string>(&arg.second))
      return there(*path);
    const auto* paths = std::get_if<std::vector<std::string>>(&arg.second);
    return paths != nullptr && std::ranges::any_of(*paths, there);
  });
}

bool FailsToRead(const Membership::Worker& worker, const Node& reader) {
  return std::ranges::any_of(
      worker.failures, [&](const v1::StorageFailure& each) {
        return each.fingerprints().empty() || Concerns(each, reader);
      });
}

}  // namespace

absl::Status Indexing::Ask(const std::string& dataset_id, const Node& reader,
                           const std::string& reader_text, const Want& want,
                           Now now, const Over& over) {
  if (Request* request = Find(dataset_id)) {
    if (!request->worker.empty()) return absl::OkStatus();
    request->look_only &= want.look_only;
    if (!want.look) request->look.reset();
    request->over = over;
    return absl::OkStatus();
  }
  if (requests_.size() >= config_.max_requests)
    return ResourceExhausted(
        "{} datasets are being listed, the limit: try again later",
        requests_.size());
  Request& request = requests_[dataset_id];
  request.reader = reader;
  request.reader_text = reader_text;
  request.over = over;
  request.look = want.look;
  request.look_only = want.look_only;
  request.started = now.mono;
  request.deadline = MonotonicTime::max();
  std::erase_if(failures_, [&](const Failure& failure) {
    return failure.dataset_id == dataset_id;
  });
  return absl::OkStatus();
}

std::vector<Indexing::Directive> Indexing::Assign(const Membership& membership,
                                                  Now now) {
  std::vector<Directive> directives;
  if (membership.num_ready() == 0 ||
      std::none_of(requests_.begin(), requests_.end(), [](const auto& entry) {
        return entry.second.worker.empty();
      }))
    return directives;
  std::map<std::string, int> busy;
  for (const auto& [id, request] : requests_) ++busy[request.worker];
  for (auto& [id, request] : requests_) {
    if (!request.worker.empty()) continue;
    // Prefers, among the workers with the abilities, one that can read there,
    // then one that was not tried, then the least busy, then by name.
    const Abilities needed = AbilitiesFor(request.reader);
    const std::string* best = nullptr;
    std::tuple<bool, bool, int> best_rank;
    for (const auto& [name, worker] : membership.workers()) {
      if (worker.state() != WorkerState::kReady || worker.session == 0 ||
          !HasAll(worker.registration->abilities, needed))
        continue;
      const std::tuple<bool, bool, int> rank(
          FailsToRead(worker, request.reader), request.tried.contains(name),
          busy[name]);
      if (best != nullptr && !(rank < best_rank)) continue;
      best = &name;
      best_rank = rank;
    }
    if (best == nullptr) continue;
    request.worker = *best;
    request.tried.insert(*best);
    ++request.attempts;
    request.request_id = next_request_id_++;
    request.deadline = now.mono + (request.look ? config_.look_timeout
                                                : config_.attempt_timeout);
    ++busy[*best];
    directives.push_back({*best,
                          {.dataset_id = id,
                           .request_id = request.request_id,
                           .reader = request.reader,
                           .arrangement = request.over.arrangement,
                           .base = request.over.base,
                           .look = request.look,
                           .look_only = request.look_only,
                           .trail = request.trail}});
  }
  return directives;
}

// Returns false if the request was given up.
bool Indexing::Retry(const std::string& dataset_id, Request* request,
                     std::string_view reason, std::vector<GivenUp>* given_up) {
  if (request->attempts >= config_.max_attempts) {
    given_up->push_back(
        {dataset_id, Unavailable("listing {} was tried {}; the last worker, "
                                 "{}, {}",
                                 ShownReader(request->reader_text),
                                 Counted(request->attempts, "time"),
                                 request->worker, reason)});
    return false;
  }
  request->worker.clear();
  request->request_id = 0;
  request->files = 0;
  request->deadline = MonotonicTime::max();
  return true;
}

std::vector<Indexing::GivenUp> Indexing::LoseWorker(std::string_view worker) {
  std::vector<GivenUp> given_up;
  for (auto& [id, request] : requests_)
    if (request.worker == worker && !request.uploaded)
      Retry(id, &request, "was lost", &given_up);
  return given_up;
}

std::vector<Indexing::GivenUp> Indexing::TryAgain(const std::string& dataset_id,
                                                  std::string_view reason) {
  std::vector<GivenUp> given_up;
  if (Request* request = Find(dataset_id); request != nullptr)
    Retry(dataset_id, request, reason, &given_up);
  return given_up;
}

std::vector<Indexing::GivenUp> Indexing::Expire(Now now) {
  std::vector<GivenUp> given_up;
  for (auto& [id, request] : requests_)
    if (!request.worker.empty() && !request.uploaded &&
        now.mono >= request.deadline)
      Retry(id, &request, "took too long", &given_up);
  return given_up;
}

MonotonicTime Indexing::NextDeadline() const {
  MonotonicTime next = MonotonicTime::max();
  for (const auto& [id, request] : requests_)
    if (!request.uploaded) next = std::min(next, request.deadline);
  return next;
}

absl::StatusOr<Indexing::Request*> Indexing::Current(
    const std::string& dataset_id, uint64_t request_id) {
  Request* request = Find(dataset_id);
  if (request == nullptr || request->worker.empty() ||
      request->request_id != request_id)
    return NotFound("index {} of dataset {} was not requested", request_id,
                    dataset_id);
  return request;
}

Indexing::Request* Indexing::Find(const std::string& dataset_id) {
  const auto it = requests_.find(dataset_id);
  return it == requests_.end() ? nullptr : &it->second;
}

void Indexing::Fail(const std::string& dataset_id, std::string_view message,
                    Now now) {
  const auto it = requests_.find(dataset_id);
  if (it == requests_.end()) return;
  failures_.push_back(
      {dataset_id, it->second.reader_text, std::string(message), now.wall});
  while (failures_.size() > config_.max_failures) failures_.pop_front();
  requests_.erase(it);
}

absl::Status Indexing::NoteProgress(const IndexProgress& progress, Now now) {
  ASSIGN_OR_RETURN(Request * request,
                   Current(progress.dataset_id, progress.request_id));
  const bool kept = progress.trail && progress.part < config_.max_trail;
  if (kept && progress.part > request->trail.size())
    return InvalidArgument(
        "part {} of the trail of dataset {}: want {} at most", progress.part,
        progress.dataset_id, request->trail.size());
  request->deadline = now.mono + config_.attempt_timeout;
  request->walked = progress.walked;
  request->walked_total = progress.total;
  if (!kept) return absl::OkStatus();
  request->trail.resize(progress.part);
  request->trail.push_back(*progress.trail);
  if (progress.walked <= request->furthest) return absl::OkStatus();
  request->furthest = progress.walked;
  request->attempts = 1;
  return absl::OkStatus();
}

void Indexing::NoteUnderWay(const ListingUnderWay& listing) {
  const auto current = Current(listing.dataset_id, listing.request_id);
  if (!current.ok()) return;
  Request& request = **current;
  request.files = listing.files;
  // NoteProgress says how far an arrangement is.
  if (request.over.base == nullptr) request.walked = listing.samples;
}

std::string Indexing::FoundText(const Request& request) {
  if (request.over.base != nullptr)
    return request.walked == 0
               ? ""
               : fmt::format("looked at {}{} so far",
                             Counted(request.walked, "sample"),
                             request.walked_total == 0
                                 ? ""
                                 : fmt::format(" of {}", request.walked_total));
  if (request.files + request.walked == 0) return "";
  return fmt::format(
      "{}{}{} so far", request.files == 0 ? "" : Counted(request.files, "file"),
      request.files == 0 || request.walked == 0 ? "" : " and ",
      request.walked == 0 ? "" : Counted(request.walked, "sample"));
}

std::string ShownReader(std::string_view reader_text) {
  return Redacted(WithShortLists(reader_text));
}

std::string ProposedName(std::string_view reader_text, std::string_view id) {
  const std::string text = Redacted(reader_text);
  std::string path;
  size_t begin = text.find('"');
  while (path.empty() && begin != text.npos) {
    const size_t end = text.find('"', begin + 1);
    if (end == text.npos) break;
    path = text.substr(begin + 1, end - begin - 1);
    // Other texts come first in some readers, as `ext` does before `paths`.
    if (!path.starts_with('/') && path.find("://") == path.npos) path.clear();
    begin = text.find('"', end + 1);
  }
  while (path.ends_with('/')) path.pop_back();
  const std::string name = path.substr(path.rfind('/') + 1);
  return name.empty() ? std::string(id.substr(0, 12)) : name;
}

bool Indexing::Forget(std::string_view key) {
  constexpr size_t kMinPrefix = 4;
  return std::erase_if(failures_, [&](const Failure& failure) {
           return failure.dataset_id == key ||
                  ProposedName(failure.reader_text, failure.dataset_id) ==
                      key ||
                  (key.size() >= kMinPrefix &&
                   failure.dataset_id.compare(0, key.size(), key) == 0);
         }) > 0;
}

}  // namespace leat::server
