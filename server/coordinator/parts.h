// SPDX-License-Identifier: Apache-2.0
//
// Parts: all that a Coordinator's lock guards. Each part decides on one
// subject, and has pointers to the parts that it needs. Internal to the
// coordinator.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>

#include "absl/status/status.h"
#include "core/cluster/certificate_term.h"
#include "core/status.h"
#include "server/coordinator/parts/announcer.h"
#include "server/coordinator/parts/config.h"
#include "server/coordinator/parts/datasets.h"
#include "server/coordinator/parts/decoder_choice.h"
#include "server/coordinator/parts/expiry.h"
#include "server/coordinator/parts/issued_tokens.h"
#include "server/coordinator/parts/pools.h"
#include "server/coordinator/parts/sessions.h"
#include "server/coordinator/parts/settling.h"
#include "server/coordinator/parts/tables.h"
#include "server/coordinator/parts/transactions.h"
#include "server/jobs/bad_sample_ledger.h"
#include "server/jobs/damaged_indexes.h"
#include "server/jobs/dataset_looks.h"
#include "server/jobs/last_positions.h"
#include "server/membership/unreached.h"
#include "server/observe/finding_watch.h"
#include "server/store/store.h"

namespace leat::server {

inline absl::Status Stopping() {
  return Unavailable("the coordinator is stopping");
}

struct Parts {
  // All arguments outlive it.
  Parts(const CoordinatorConfig& its_config, const Store* its_store,
        ClusterEvents* events, std::shared_ptr<KeptShares> shares,
        uint64_t instance, const std::function<void()>& its_wake)
      : config(its_config),
        store(its_store),
        kept(std::move(shares)),
        wake(its_wake),
        membership(config.membership),
        sessions(&membership),
        settling(&membership, &sessions),
        announcer(events),
        bad_samples(config.max_bad_samples),
        finding_watch(config.finding_gone_after),
        transactions(&state, config.max_transactions, wake),
        tables(config, &state, &sessions, kept, wake),
        decoders(&state, &membership, &sessions, &tables, &transactions, wake),
        expiry({&state, &sessions.consumers(), &tables, &transactions,
                &announcer, &bad_samples, &looks, &positions, &damaged},
               config.job_ttl, wake),
        // Numbers of an earlier start are invalid now.
        datasets({&config, &state, &membership, &sessions, &announcer,
                  &transactions, &tables, &decoders, &expiry, &looks},
                 (instance << 32) | 1, wake),
        pools(&state, &membership, &sessions, &tables, &transactions, wake),
        tokens(&state, &sessions, &transactions, instance, wake) {}
  Parts(const Parts&) = delete;
  Parts& operator=(const Parts&) = delete;

  const CoordinatorConfig& config;
  const Store* const store;                // synchronises itself
  const std::shared_ptr<KeptShares> kept;  // the same
  const std::function<void()> wake;

  State state;
  Membership membership;
  Sessions sessions;
  Settling settling;
  Announcer announcer;
  BadSampleLedger bad_samples;
  LastLooks looks;
  LastPositions positions;
  DamagedIndexes damaged;
  UnreachedTable unreached;
  FindingWatch finding_watch;
  Transactions transactions;
  Tables tables;
  DecoderChoice decoders;
  Expiry expiry;
  Datasets datasets;
  Pools pools;
  IssuedTokens tokens;

  bool shut_down = false;
  std::optional<MonotonicTime> started_at;  // the first time that is known
  bool workers_came = false;                // at least one has registered
  std::optional<CertificateTerm> certificate;
  std::string not_reloaded;                         // as in Snapshot
  MonotonicTime collect_at = MonotonicTime::min();  // when blocks are collected

  // Reports the time: the first call starts the parts.
  void Seen(Now now, DeferredActions* deferred);
};

}  // namespace leat::server
