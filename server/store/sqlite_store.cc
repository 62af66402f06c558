// SPDX-License-Identifier: Apache-2.0
#include "server/store/sqlite_store.h"

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <map>
#include <random>
#include <utility>
#include <vector>

#include "core/crc32c.h"
#include "core/log.h"
#include "core/status.h"
#include "server/state/records.h"
#include "server/store/salvage.h"

namespace leat::server {
namespace {

constexpr int64_t kFormat = 1;
// A log is rewritten when it has this many events more than the live ones.
constexpr uint64_t kSlack = 256;

std::string RandomId() {
  std::random_device random;
  std::string id;
  for (int i = 0; i < 16; ++i) id += static_cast<char>(random());
  return id;
}

Digest MetaChecksum(int64_t format, std::string_view id,
                    const HighWater& base) {
  return Sha256()
      .UpdateField("leat.meta")
      .UpdateU64(static_cast<uint64_t>(format))
      .UpdateField(id)
      .UpdateU64(base.sequence)
      .UpdateField(AsText(base.hash))
      .Finish();
}

absl::Status Damaged(const std::string& file, const std::string& what) {
  return DataLoss(
      "{} is damaged: {}. Restore it from a backup, or start with "
      "--accept-data-loss to go on with what can be read (the damaged files "
      "are kept)",
      file, what);
}

constexpr char kTables[] =
    "CREATE TABLE meta(id INTEGER PRIMARY KEY CHECK(id=1), format INTEGER,"
    " store_id BLOB, base_seq INTEGER, base_hash BLOB, checksum BLOB);"
    "CREATE TABLE events(seq INTEGER PRIMARY KEY, crc INTEGER NOT NULL,"
    " hash BLOB NOT NULL, record BLOB NOT NULL)";

// Removes the access tokens. Returns their names.
std::vector<std::string> DropAccess(Salvaged* salvaged) {
  std::map<std::string, std::string> names;
  std::erase_if(salvaged->events, [&](const Event& event) {
    const auto& kind = event.kind;
    if (const auto* revoked = std::get_if<AccessRevoked>(&kind))
      names.erase(revoked->id);
    const auto* created = std::get_if<AccessCreated>(&kind);
    if (created != nullptr) names[created->token.id] = created->token.name;
    return created != nullptr || std::holds_alternative<AccessRevoked>(kind);
  });
  std::vector<std::string> dropped;
  for (const auto& [id, name] : names)
    dropped.push_back(fmt::format("{} ({})", name, id));
  return dropped;
}

absl::Status AsDamage(const absl::Status& status, const std::string& file) {
  if (status.code() != absl::StatusCode::kDataLoss) return status;
  const std::string_view text = Message(status);
  if (text.find("--accept-data-loss") != std::string_view::npos) return status;
  return Damaged(file, std::string(text));
}

}  // namespace

Digest ChainHash(const Digest& previous, uint64_t sequence,
                 std::string_view record) {
  return Sha256()
      .Update(AsText(previous))
      .UpdateU64(sequence)
      .UpdateField(record)
      .Finish();
}

SqliteStore::SqliteStore(StateDirectory directory)
    : file_(directory.path() + "/leat.db"), directory_(std::move(directory)) {}

absl::StatusOr<std::unique_ptr<SqliteStore>> SqliteStore::Open(
    const std::string& directory, const SqliteOptions& options) {
  ASSIGN_OR_RETURN(StateDirectory locked, StateDirectory::Open(directory));
  std::unique_ptr<SqliteStore> store(new SqliteStore(std::move(locked)));
  ASSIGN_OR_RETURN(store->blocks_, FileBlocks::Open(directory + "/blocks"));
  MutexLock lock(&store->mu_);
  absl::Status opened = AsDamage(store->OpenDatabase(options), store->file_);
  if (opened.code() == absl::StatusCode::kDataLoss &&
      options.accept_data_loss) {
    LOG_WARN("state.data_loss_accepted {}", Message(opened));
    opened = store->StartAgain(options);
  }
  RETURN_IF_ERROR(opened);
  return store;
}

std::string SqliteStore::description() const {
  return fmt::format("sqlite {}", file_.substr(0, file_.rfind('/')));
}

absl::Status SqliteStore::OpenFile(const SqliteOptions& options) {
  database_.reset();
  ASSIGN_OR_RETURN(database_, Database::Open(file_, /*read_only=*/false));
  RETURN_IF_ERROR(database_->Exec(
      "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL;"
      "PRAGMA journal_size_limit=16777216; PRAGMA trusted_schema=OFF"));
  if (options.max_bytes != 0)
    RETURN_IF_ERROR(database_->Exec(
        fmt::format("PRAGMA max_page_count={}", options.max_bytes / 4096)));
  return absl::OkStatus();
}

absl::Status SqliteStore::OpenDatabase(const SqliteOptions& options) {
  RETURN_IF_ERROR(OpenFile(options));
  ASSIGN_OR_RETURN(Statement tables,
                   database_->Prepare("SELECT count(*) FROM sqlite_schema"));
  ASSIGN_OR_RETURN([[maybe_unused]] const bool row, tables.Step());
  const bool fresh = tables.Int(0) == 0;
  tables.Reset();
  if (fresh) RETURN_IF_ERROR(CreateTables());
  RETURN_IF_ERROR(ReadMeta());
  RETURN_IF_ERROR(Verify());
  RETURN_IF_ERROR(CheckHighWater());
  RETURN_IF_ERROR(CheckStructure());
  return database_->Exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

// The mark is written first: a database without a mark is then always damaged.
absl::Status SqliteStore::CreateTables() {
  ASSIGN_OR_RETURN(const std::optional<HighWater> mark,
                   directory_.ReadHighWater());
  if (mark && mark->sequence > 0)
    return Damaged(file_, fmt::format("it is gone or empty, but had {} events",
                                      mark->sequence));
  RETURN_IF_ERROR(database_->Exec(std::string("BEGIN IMMEDIATE;") + kTables));
  head_ = base_ = HighWater{};
  RETURN_IF_ERROR(WriteMeta(base_));
  if (!mark) RETURN_IF_ERROR(directory_.WriteHighWater(base_));
  return database_->Exec("COMMIT");
}

absl::Status SqliteStore::WriteMeta(const HighWater& base) {
  const std::string id = RandomId();
  const Digest checksum = MetaChecksum(kFormat, id, base);
  ASSIGN_OR_RETURN(
      Statement insert,
      database_->Prepare("INSERT OR REPLACE INTO meta VALUES(1,?,?,?,?,?)"));
  return insert.Bind(1, kFormat)
      .Bind(2, id)
      .Bind(3, static_cast<int64_t>(base.sequence))
      .Bind(4, AsText(base.hash))
      .Bind(5, AsText(checksum))
      .Run();
}

absl::Status SqliteStore::ReadMeta() {
  ASSIGN_OR_RETURN(Statement select,
                   database_->Prepare("SELECT format, store_id, base_seq,"
                                      " base_hash, checksum FROM meta"));
  ASSIGN_OR_RETURN(const bool row, select.Step());
  if (!row) return DataLoss("its meta row is gone");
  const int64_t format = select.Int(0);
  const auto hash = DigestOf("a hash", select.Blob(3));
  base_ = {static_cast<uint64_t>(select.Int(2)), hash.value_or(Digest{})};
  if (select.Blob(4) != AsText(MetaChecksum(format, select.Blob(1), base_)))
    return DataLoss("its meta row does not match its checksum");
  if (format != kFormat)
    return FailedPrecondition(
        "{} has format {}; this version reads format {}: use the version that "
        "wrote it",
        file_, format, kFormat);
  return absl::OkStatus();
}

absl::Status SqliteStore::Verify() {
  EventLog log;
  RETURN_IF_ERROR(ReadEvents(&*database_, base_, &log));
  RETURN_IF_ERROR(log.damage);
  head_ = log.head;
  sequence_ = head_.sequence;
  num_events_ = log.events.size();
  loaded_ = std::move(log.events);
  return absl::OkStatus();
}

// SQLite checks its own structure; Verify checks the chain of hashes.
absl::Status SqliteStore::CheckStructure() {
  ASSIGN_OR_RETURN(Statement check,
                   database_->Prepare("PRAGMA quick_check(1)"));
  ASSIGN_OR_RETURN([[maybe_unused]] const bool row, check.Step());
  if (const std::string result = check.Blob(0); result != "ok")
    return DataLoss("{}", result);
  return absl::OkStatus();
}

absl::Status SqliteStore::CheckHighWater() {
  ASSIGN_OR_RETURN(const std::optional<HighWater> mark,
                   directory_.ReadHighWater());
  if (!mark)
    return Damaged(file_, fmt::format("{}/high-water is gone, so that a loss "
                                      "would not be noticed",
                                      directory_.path()));
  if (mark->sequence > head_.sequence)
    return Damaged(file_, fmt::format("STATE_REGRESSED: its last event is {}, "
                                      "but {} was kept before",
                                      head_.sequence, mark->sequence));
  if (mark->sequence == head_.sequence && mark->hash != head_.hash)
    return Damaged(file_, fmt::format("event {} is not the one that was kept",
                                      head_.sequence));
  return directory_.WriteHighWater(head_);
}

absl::Status SqliteStore::Replay(
    const std::function<absl::Status(const Event&)>& apply) {
  std::vector<Event> events;
  {
    MutexLock lock(&mu_);
    events = std::move(loaded_);
  }
  for (const Event& event : events)
    if (absl::Status status = apply(event); !status.ok())
      return AsDamage(DataLoss("an event does not fit: {}", Message(status)),
                      file_);
  return absl::OkStatus();
}

absl::Status SqliteStore::Insert(const Event& event, HighWater* head) {
  const std::string record = EncodeEvent(event);
  HighWater next{head->sequence + 1, {}};
  next.hash = ChainHash(head->hash, next.sequence, record);
  ASSIGN_OR_RETURN(Statement insert,
                   database_->Prepare("INSERT INTO events VALUES(?,?,?,?)"));
  RETURN_IF_ERROR(insert.Bind(1, static_cast<int64_t>(next.sequence))
                      .Bind(2, int64_t{Crc32c(record)})
                      .Bind(3, AsText(next.hash))
                      .Bind(4, record)
                      .Run());
  *head = next;
  return absl::OkStatus();
}

// A commit that failed may have reached the disk, so it is not retried.
absl::Status SqliteStore::Commit(const HighWater& head) {
  absl::Status status = database_->Exec("COMMIT");
  if (status.ok()) {
    head_ = head;
    sequence_ = head.sequence;
    status = directory_.WriteHighWater(head);
    if (!status.ok())
      failure_ = Internal(
          "the state store has failed: {}; restart the "
          "coordinator when that is repaired",
          Message(status));
    return failure_;
  }
  database_->Exec("ROLLBACK").IgnoreError();
  if (status.code() == absl::StatusCode::kInternal)
    failure_ = Internal(
        "the state store has failed: {}; restart the "
        "coordinator when that is repaired",
        Message(status));
  return status;
}

absl::Status SqliteStore::Append(const Event& event) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(failure_);
  RETURN_IF_ERROR(database_->Exec("BEGIN IMMEDIATE"));
  HighWater head = head_;
  if (absl::Status status = Insert(event, &head); !status.ok()) {
    database_->Exec("ROLLBACK").IgnoreError();
    return status;
  }
  RETURN_IF_ERROR(Commit(head));
  ++num_events_;
  return absl::OkStatus();
}

absl::Status SqliteStore::Compact(std::span<const Event> live) {
  MutexLock lock(&mu_);
  RETURN_IF_ERROR(failure_);
  if (num_events_ <= 2 * live.size() + kSlack) return absl::OkStatus();
  RETURN_IF_ERROR(database_->Exec("BEGIN IMMEDIATE; DELETE FROM events"));
  HighWater head = head_;
  absl::Status status = WriteMeta(head_);
  for (const Event& event : live) {
    if (!status.ok()) break;
    status = Insert(event, &head);
  }
  if (!status.ok()) {
    database_->Exec("ROLLBACK").IgnoreError();
    return status;
  }
  const HighWater base = head_;
  RETURN_IF_ERROR(Commit(head));
  LOG_INFO("state.compacted events_before={} events_after={}", num_events_,
           live.size());
  base_ = base;
  num_events_ = live.size();
  return database_->Exec("PRAGMA wal_checkpoint(TRUNCATE)");
}

// Reads what is left, moves the damaged files aside, and writes a new database
// in one transaction, whose numbers continue those of the old one. The mark is
// never lowered: if the process dies in between, the empty database is refused.
absl::Status SqliteStore::StartAgain(const SqliteOptions& options) {
  Salvaged salvaged;
  if (database_) salvaged = Salvage(&*database_);
  absl::StatusOr<std::optional<HighWater>> mark = directory_.ReadHighWater();
  const HighWater& last = salvaged.last;
  HighWater base{last.sequence, {}};
  bool whole = false;  // no event was lost
  if (mark.ok() && *mark) {
    base.sequence = std::max(base.sequence, (*mark)->sequence);
    whole = (*mark)->sequence < last.sequence ||
            ((*mark)->sequence == last.sequence && (*mark)->hash == last.hash);
  }
  ++base.sequence;  // so that its hash differs from the mark's
  const std::vector<std::string> dropped =
      whole ? std::vector<std::string>() : DropAccess(&salvaged);
  database_.reset();
  const std::string aside =
      fmt::format("{}.damaged-{}", file_,
                  std::chrono::duration_cast<std::chrono::seconds>(
                      std::chrono::system_clock::now().time_since_epoch())
                      .count());
  if (std::rename(file_.c_str(), aside.c_str()) != 0 && errno != ENOENT)
    return ErrnoStatus(errno, fmt::format("cannot rename {}", file_));
  for (const char* suffix : {"-wal", "-shm"})
    std::rename((file_ + suffix).c_str(), (aside + suffix).c_str());
  RETURN_IF_ERROR(OpenFile(options));
  RETURN_IF_ERROR(database_->Exec(std::string("BEGIN IMMEDIATE;") + kTables));
  RETURN_IF_ERROR(WriteMeta(base));
  HighWater head = base;
  for (const Event& event : salvaged.events)
    RETURN_IF_ERROR(Insert(event, &head));
  RETURN_IF_ERROR(Commit(head));
  RETURN_IF_ERROR(ReadMeta());
  RETURN_IF_ERROR(Verify());
  LOG_WARN("state.salvaged events={} kept_as={} access_tokens_dropped=\"{}\"",
           salvaged.events.size(), aside, fmt::join(dropped, ", "));
  losses_ = fmt::format(
      "the state was damaged and was read up to event {}{}; the damaged files "
      "are {}*",
      last.sequence,
      whole ? ", its last"
            : ": what was changed later is lost, deletions and drains too",
      aside);
  if (!dropped.empty())
    losses_ += fmt::format(
        "; access tokens are refused, since any of them may have been revoked: "
        "{}",
        fmt::join(dropped, ", "));
  return absl::OkStatus();
}

}  // namespace leat::server
