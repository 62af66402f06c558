// SPDX-License-Identifier: Apache-2.0
#include "server/store/salvage.h"

#include <algorithm>

#include "core/crc32c.h"
#include "core/log.h"
#include "core/status.h"
#include "server/state/records.h"

namespace leat::server {
HighWater BaseOf(Database* database) {
  HighWater base;
  absl::StatusOr<Statement> meta =
      database->Prepare("SELECT base_seq, base_hash FROM meta");
  if (!meta.ok()) return base;
  const absl::StatusOr<bool> row = meta->Step();
  if (!row.ok() || !*row) return base;
  base.sequence = static_cast<uint64_t>(meta->Int(0));
  const std::string hash = meta->Blob(1);
  if (hash.size() == base.hash.size())
    std::copy(hash.begin(), hash.end(), base.hash.begin());
  return base;
}

absl::Status ReadEvents(Database* database, const HighWater& base,
                        EventLog* log) {
  log->head = base;
  ASSIGN_OR_RETURN(
      Statement select,
      database->Prepare("SELECT seq, crc, hash, record FROM events "
                        "ORDER BY seq"));
  while (true) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return absl::OkStatus();
    const auto sequence = static_cast<uint64_t>(select.Int(0));
    const uint64_t expected = log->head.sequence + 1;
    const std::string record = select.Blob(3), hash = select.Blob(2);
    const Digest chained = ChainHash(log->head.hash, expected, record);
    absl::Status damage;
    if (sequence != expected)
      damage =
          DataLoss("event {} follows event {}", sequence, log->head.sequence);
    else if (int64_t{Crc32c(record)} != select.Int(1))
      damage = DataLoss("event {} does not match its checksum", sequence);
    else if (!std::equal(chained.begin(), chained.end(), hash.begin(),
                         hash.end(), [](uint8_t a, char b) {
                           return a == static_cast<uint8_t>(b);
                         }))
      damage = DataLoss("event {} breaks the chain of hashes", sequence);
    absl::StatusOr<Event> event = DecodeEvent(record);
    if (damage.ok() && !event.ok())
      damage = Annotate(event.status(), fmt::format("event {}", sequence));
    if (!damage.ok()) {
      log->damage = DataLoss("{}", Message(damage));
      return absl::OkStatus();
    }
    log->head = {expected, chained};
    log->events.push_back(*std::move(event));
  }
}

Salvaged Salvage(Database* database) {
  Salvaged salvaged;
  EventLog log;
  ReadEvents(database, BaseOf(database), &log).IgnoreError();
  salvaged.last = log.head;
  State state;
  for (Event& event : log.events) {
    // An event that this version cannot use is set aside at the start, and
    // kept. Only an event whose dependency was lost is lost with it.
    if (absl::Status fits = state.Check(event); absl::IsNotFound(fits)) {
      LOG_WARN("state.event_lost {}", Message(fits));
      continue;
    }
    state.Replay(event);
    salvaged.events.push_back(std::move(event));
  }
  return salvaged;
}

}  // namespace leat::server
