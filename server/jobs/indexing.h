// SPDX-License-Identifier: Apache-2.0
//
// Indexing decides which worker lists which dataset, or looks at it again.
// Datasets are identified by their readers here, and arrangements of them by
// reader and arrangement (PreparedSource::listing_id), because a dataset that is
// not listed yet has no other identity.
//
// A dataset is listed once, by one worker, however many jobs wait for it. If
// that worker is lost, or takes longer than `attempt_timeout`, another worker
// is asked, up to `max_attempts` in all. An attempt does not count if it kept
// more of an arrangement's listing than any before. A request waits while no
// ready worker has what its reader needs (core/plan/abilities.h).
//
// Thread-compatible; the owner locks. Reads no clock.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/membership/membership.h"
#include "server/state/types.h"

namespace leat::server {

struct IndexingConfig {
  int max_attempts = 3;
  Duration attempt_timeout = std::chrono::minutes(30);
  // For a look, which takes a second unless storage hangs.
  Duration look_timeout = std::chrono::seconds(30);
  size_t max_requests = 64;   // concurrent listings, waiting ones included
  size_t max_failures = 100;  // remembered, for people
  size_t max_trail = 4096;    // parts of a listing's trail; others are lost
};

// The name for people of a dataset that is not listed: the last part of its
// path, as of one that is. A reader without a path has the beginning of its id.
std::string ProposedName(std::string_view reader_text, std::string_view id);

// The reader's text for people: its lists are cut, and secrets left out.
std::string ShownReader(std::string_view reader_text);

// An arrangement that is listed over a dataset; no base: the reader's dataset is
// listed.
struct ArrangedOver {
  Arrangement arrangement{};
  std::shared_ptr<const DatasetInfo> base{};
};

class Indexing {
 public:
  using Over = ArrangedOver;
  struct Request {
    Node reader;
    std::string reader_text;
    Over over;
    uint64_t request_id = 0;
    std::string worker;  // empty: no worker was ready
    int attempts = 0;
    std::set<std::string> tried;
    MonotonicTime started, deadline;
    bool uploaded = false;  // being made durable
    // State of storage at the last listing; nullopt: list without a look.
    std::optional<IndexBlock> look;
    bool look_only = false;  // no caller wants another listing
    // Calls with smaller numbers had arrived when the attempt began, so its
    // result is new enough for them.
    uint64_t covers = 0;
    // The listing's progress (v1::ListingUnderWay, v1::IndexProgress), and the
    // blocks that were kept of an arrangement's, in order.
    uint64_t files = 0, walked = 0, walked_total = 0;
    uint64_t furthest = 0;  // `walked`, of any attempt that kept a part
    std::vector<IndexBlock> trail{};
  };
  // A Want says what a caller wants of a dataset: a look, a listing, or both.
  struct Want {
    std::optional<IndexBlock> look{};
    bool look_only = false;
  };
  struct Failure {
    std::string dataset_id, reader_text, message;
    WallTime at;
  };
  // A message to send to a worker.
  struct Directive {
    std::string worker;
    IndexDirective directive;
  };
  struct GivenUp {
    std::string dataset_id;
    absl::Status why;
  };

  Indexing(const IndexingConfig& config, uint64_t first_request_id)
      : config_(config), next_request_id_(first_request_id) {}

  // Joins the request of `dataset_id`, or creates one. A request that has not
  // begun serves all callers: it lists unless all want only a look, and it
  // skips the look if any caller wants that. kResourceExhausted: too many.
  absl::Status Ask(const std::string& dataset_id, const Node& reader,
                   const std::string& reader_text, const Want& want, Now now,
                   const Over& over = {});
  // Assigns waiting requests to ready workers. Returns the messages to send.
  std::vector<Directive> Assign(const Membership& membership, Now now);
  // Reports that `worker` is gone: its requests wait again, or are given up.
  std::vector<GivenUp> LoseWorker(std::string_view worker);
  // Reports that the current attempt has failed.
  std::vector<GivenUp> TryAgain(const std::string& dataset_id,
                                std::string_view reason);
  // Ends attempts that take too long.
  std::vector<GivenUp> Expire(Now now);
  MonotonicTime NextDeadline() const;

  // Returns the request if this is the current attempt; kNotFound otherwise.
  absl::StatusOr<Request*> Current(const std::string& dataset_id,
                                   uint64_t request_id);
  Request* Find(const std::string& dataset_id);
  // Has the contract of Datasets::NoteProgress.
  absl::Status NoteProgress(const IndexProgress& progress, Now now);
  // Takes what the current attempt has found so far; ignores another's.
  void NoteUnderWay(const ListingUnderWay& listing);
  // Returns how far it is, as "120000 files so far"; "": not known.
  static std::string FoundText(const Request& request);
  void Finish(const std::string& dataset_id) { requests_.erase(dataset_id); }
  void Fail(const std::string& dataset_id, std::string_view message, Now now);
  // Forgets failures of the dataset with this ID, or with a prefix of it of at
  // least 4 digits. Returns false if there are none.
  bool Forget(std::string_view key);

  const std::map<std::string, Request>& requests() const { return requests_; }
  const std::deque<Failure>& failures() const { return failures_; }

 private:
  bool Retry(const std::string& dataset_id, Request* request,
             std::string_view reason, std::vector<GivenUp>* given_up);

  const IndexingConfig config_;
  uint64_t next_request_id_;
  std::map<std::string, Request> requests_;  // by dataset
  std::deque<Failure> failures_;             // oldest first
};

}  // namespace leat::server
