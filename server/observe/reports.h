// SPDX-License-Identifier: Apache-2.0
//
// Reports: the findings about a coordinator, computed from a snapshot.
//
// The coordinator fills a Snapshot under its lock: numbers, and the first few
// of each kind by name. The sentences are made from it without the lock, and
// need nothing else, so a test makes them from a snapshot written by hand:
//
//   Snapshot{.workers = 3, .ready = 0} ─► NO_WORKERS "none of 3 workers is
//   ready: consumers keep asking those that they know"
//
// Immutable once taken.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "server/state/decoders.h"
#include "server/state/state.h"
#include "server/state/types.h"

namespace leat::server {

// How many findings of one kind are listed individually.
inline constexpr size_t kMaxAlike = 5;

struct Snapshot {
  struct LostWorker {
    std::string name, host;
  };
  struct FailingWorker {
    std::string name, host;
    std::string root, error;  // of the first failure
    size_t failures = 1;
  };
  // Workers with the same problem: the first few, and how many.
  struct AlikeWorkers {
    struct Worker {
      std::string name, host, what;
    };
    std::vector<Worker> first;
    size_t total = 0;
    void Add(std::string_view name, std::string_view host, std::string what) {
      if (total++ < kMaxAlike)
        first.push_back(
            {std::string(name), std::string(host), std::move(what)});
    }
    size_t more() const { return total - first.size(); }
  };
  struct Stalled {
    std::string consumer, job;
    double fraction = 0;
  };
  struct Unreached {
    std::string consumer, job, host, worker, why;
  };
  struct BadJob {
    std::string job;
    uint64_t met = 0;
    std::string first_reason;
    absl::Status verdict;  // not OK: the job is given up
  };
  struct ChangedDataset {
    std::string job, dataset, changes;
  };
  struct FailedListing {
    std::string reader, message;
    std::string dataset{};  // the beginning of its ID
    std::string worker{};   // that is retrying it
  };
  struct DamagedIndex {
    std::string dataset, what, mending;
  };
  // Names of jobs: the first few, and how many.
  struct Jobs {
    std::vector<std::string> first;
    size_t total = 0;
  };
  struct Regressed {
    std::string worker;
    uint64_t seen = 0, sequence = 0;
  };

  // Workers. Lists hold the first kMaxAlike; the numbers count all.
  size_t workers = 0, ready = 0, lost = 0, failing = 0;
  bool held = false;      // silent ones keep their shards
  bool may_come = false;  // earlier workers may reconnect
  std::vector<LostWorker> first_lost;
  std::vector<FailingWorker> first_failing;
  AlikeWorkers unconfined;  // with the reason
  AlikeWorkers insecure;    // with the address
  // With the reason why their changed files are not in use.
  AlikeWorkers not_reloaded;
  // With the text of TextOfExpiry: certificates whose end is a warning, and
  // those whose end is an error (core/cluster/certificate_term.h).
  AlikeWorkers expiring, expiring_soon;
  std::map<DecoderClass, Jobs> without_decoder;
  // READY workers that decode unlike some jobs, and the decoders of the jobs.
  std::vector<std::shared_ptr<const WorkerRegistration>> first_unlike;
  size_t unlike = 0;
  std::vector<DecoderGroup> decoder_groups;
  // Jobs for which no READY worker has the right decoders.
  struct Undecoded {
    Decoders decoders;
    Jobs jobs;
  };
  std::map<std::pair<DecoderClass, Digest>, Undecoded> undecoded;
  // Jobs for which no READY worker of their class has all abilities.
  struct Unable {
    std::string needed;  // `"parquet"`
    std::string why;     // a worker says so; empty: none does
    std::string remedy;
    // Some workers have it all, and decode otherwise than the jobs began.
    bool only_unlike = false;
    Jobs jobs{};
  };
  std::vector<Unable> unable;
  // Jobs and datasets.
  std::vector<Stalled> stalled;
  std::vector<Unreached> unreached;
  std::vector<BadJob> bad_jobs;
  std::vector<FailedListing> failed_listings, waiting_listings;
  std::vector<ChangedDataset> changed;
  std::vector<DamagedIndex> damaged;
  // The coordinator and its store.
  std::string insecure_listener;
  std::string not_confined;      // why no filter confines it; empty: one does
  std::string own_not_reloaded;  // why its changed files are not in use
  struct Expiry {
    Duration left{};    // until its certificate expires; negative: since
    bool soon = false;  // it is an error
  };
  std::optional<Expiry> expiry;  // nullopt: it needs no finding
  absl::Status last_write;
  std::vector<SetAside> first_set_aside;
  size_t set_aside = 0;
  std::optional<Regressed> regressed;
  std::string losses;  // Store's
};

// In the order: workers, jobs, the store.
std::vector<Finding> FindingsOf(const Snapshot& snapshot);

// All codes of findings.
inline constexpr std::array<std::string_view, 24> kFindingCodes = {
    "BAD_SAMPLES",     "CERTIFICATE_EXPIRES", "CONSUMER_STALLED",
    "DATASET_CHANGED", "INDEX_DAMAGED",       "INDEX_FAILED",
    "INDEX_WAITS",     "INSECURE_LISTENER",   "JOB_GIVEN_UP",
    "NOT_CONFINED",    "NOT_RELOADED",        "NO_ABILITY",
    "NO_DECODER",      "NO_WORKERS",          "STATE_FAILED",
    "STATE_FULL",      "STATE_REGRESSED",     "STATE_SALVAGED",
    "STATE_SET_ASIDE", "WORKERS_SILENT",      "WORKER_DECODERS",
    "WORKER_LOST",     "WORKER_STORAGE",      "WORKER_UNREACHED"};
// A service that accepts every caller keeps this finding.
inline constexpr std::string_view kNeverMuted = "INSECURE_LISTENER";
// kInvalidArgument: no finding has this code (lists them).
absl::Status CheckFindingCode(std::string_view code);

}  // namespace leat::server
