// SPDX-License-Identifier: Apache-2.0
//
// Datasets assigns listings to workers, and holds the calls that wait for them:
// creations of jobs, and refreshes of datasets.
//
//   Create(a) and Create(b) want dataset d   Indexing::Ask(d), once
//   worker w is ready                        AssignListings: w is told
//   w is lost                                GiveUp: another is told, or, after
//                                            three, a and b fail
//   w uploads                                Listed: a durable event, then
//                                            FinishListing: a and b go on
//   w's upload is refused                    Refuse: a and b fail with the
//                                            reason; a damaged one is tried
//                                            again
//
// Each Create is a JobCreation, which decides on its next step. Sources:
// datasets.cc has the listings, job_calls.cc the calls.
//
// Thread-compatible; the owner locks.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "server/coordinator/parts/announcer.h"
#include "server/coordinator/parts/config.h"
#include "server/coordinator/parts/decoder_choice.h"
#include "server/coordinator/parts/deferred_actions.h"
#include "server/coordinator/parts/expiry.h"
#include "server/coordinator/parts/sessions.h"
#include "server/coordinator/parts/tables.h"
#include "server/coordinator/parts/transactions.h"
#include "server/jobs/indexing.h"
#include "server/jobs/job_creations.h"

namespace leat::server {

class Datasets {
 public:
  using Done = AnsweredTransaction::Done;
  // All pointers outlive it.
  struct Uses {
    const CoordinatorConfig* config;
    const State* state;
    Membership* membership;
    Sessions* sessions;
    Announcer* announcer;
    Transactions* transactions;
    Tables* tables;
    DecoderChoice* decoders;
    Expiry* expiry;
    LastLooks* looks;
  };

  Datasets(const Uses& uses, uint64_t first_request_id,
           std::function<void()> wake)
      : uses_(uses),
        wake_(std::move(wake)),
        indexing_(uses.config->indexing, first_request_id) {}

  // --- Calls that wait; see Coordinator's functions

  // Answers through the creation's `done`. kResourceExhausted: too many wait.
  void Create(uint64_t id, JobCreation creation, Now now,
              DeferredActions* deferred);
  size_t waiting() const { return creations_.size(); }
  void CancelWait(uint64_t id);
  void DeleteJob(const std::string& name, Done done, DeferredActions* deferred);
  void Refresh(const std::string& key, Now now, Done done,
               DeferredActions* deferred);
  void Delete(const std::string& key, Done done, DeferredActions* deferred);

  // --- Listings

  // Checks that a header of the current attempt fits.
  absl::Status CheckUpload(const IndexHeader& header);
  // Makes the listing durable. All blocks of the header are there.
  void Listed(const IndexHeader& header, Now now, const Done& done,
              DeferredActions* deferred);
  absl::Status NoteLooked(const DatasetLooked& looked, Now now,
                          DeferredActions* deferred);
  absl::Status Fail(const std::string& dataset_id, uint64_t request_id,
                    const absl::Status& why, Now now,
                    DeferredActions* deferred);
  void Refuse(const std::string& dataset_id, uint64_t request_id,
              const absl::Status& why, Now now, DeferredActions* deferred);
  // Prolongs the attempt. kNotFound: it is not the current one.
  absl::Status Prolong(const std::string& dataset_id, uint64_t request_id,
                       Now now);
  // Prolongs the attempt, and keeps what another one needs to go on. Errors: as
  // Coordinator::NoteProgress.
  absl::Status NoteProgress(const IndexProgress& progress, Now now) {
    return indexing_.NoteProgress(progress, now);
  }
  // Takes how far a worker is with its listings, for people.
  void NoteUnderWay(const std::vector<ListingUnderWay>& listings) {
    for (const ListingUnderWay& each : listings) indexing_.NoteUnderWay(each);
  }
  // Reports that the worker is gone: its listings wait again, or are given up,
  // which the calls that wait for them are told.
  void LoseWorker(const std::string& worker, Now now,
                  DeferredActions* deferred);
  // Assigns waiting listings to ready workers.
  void AssignListings(Now now, DeferredActions* deferred);

  void Tick(Now now, DeferredActions* deferred);
  MonotonicTime NextDeadline() const;  // max(): never
  // Answers all waiting calls.
  void Stop(DeferredActions* deferred);

  const Indexing& indexing() const { return indexing_; }

 private:
  class JobTransaction;
  class JobDeletion;
  class ListingTransaction;
  class Deletion;

  void BeginJob(uint64_t creation, Now now, DeferredActions* deferred);
  void WriteJob(uint64_t creation, DeferredActions* deferred);
  void JobWritten(uint64_t creation, const std::string& name,
                  DeferredActions* deferred);
  void Answer(uint64_t creation, JobCreation::Answer answer,
              DeferredActions* deferred);
  void AnswerLate(Now now, DeferredActions* deferred);
  // Says to the calls what they wait for.
  void TellWaiting(Now now, DeferredActions* deferred);
  // Asks for a listing of what `as` lists.
  void AskAgain(const std::string& reader_id, const Indexing::Request& as,
                Now now, DeferredActions* deferred);
  void NoteListed(const IndexHeader& header, const std::string& before, Now now,
                  DeferredActions* deferred);
  void GiveUp(const std::vector<Indexing::GivenUp>& given_up, Now now,
              DeferredActions* deferred);
  void FinishListing(const std::string& reader_id, const absl::Status& status,
                     Now now, DeferredActions* deferred);
  // Asks for a dataset that the creation waits for.
  absl::Status AskFor(const JobCreation& creation, const std::string& id,
                      Now now);
  // Asks for as many as may be listed at a time. An error: for none.
  absl::Status AskForAll(const JobCreation& creation, Now now);
  // A listing has ended: asks for the next ones that creations wait for.
  void AskForMore(Now now, DeferredActions* deferred);
  // Returns what has changed in the datasets of the existing job.
  std::string ChangesOf(const JobCreation& creation) const;
  void GoOn(const std::string& reader_id, const Indexing::Request& request,
            const absl::Status& status, Now now, DeferredActions* deferred);
  void DropUnwantedOf(const JobCreation& creation);

  const Uses uses_;
  const std::function<void()> wake_;
  Indexing indexing_;
  JobCreations creations_;
  RefreshWaits refreshes_;
};

}  // namespace leat::server
