// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/listing.h"

#include <algorithm>
#include <array>

#include "client/cli/base/suggestions.h"
#include "client/cli/base/text.h"
#include "client/cli/views/bottleneck.h"
#include "client/cli/views/describe_sources.h"
#include "client/cli/views/describe_text.h"
#include "core/status.h"

namespace leat::cli {
namespace {

constexpr std::array<Kind, 6> kKinds = {{
    {"workers", "worker", "w", "name"},
    {"jobs", "job", "j", "job.spec.name"},
    {"datasets", "dataset", "ds", "dataset.name"},
    {"shards", "shard", "sh", "shard"},
    {"consumers", "consumer", "c", "consumer"},
    {"pools", "pool", "p", "name"},
}};

// A trainer that waits less than this is not limited by Leat.
constexpr double kStalled = 0.05;
// All owners of a shard are shown (≤ 4); a dataset may have more jobs.
constexpr size_t kMaxJoined = 4;
// Columns of a reader, whose arguments may be thousands of names.
constexpr size_t kMaxReader = 160;

// Returns how many files there are of each kind.
std::string PassedOver(const Json& list) {
  std::vector<std::string> kinds;
  for (const Json& each : list)
    kinds.push_back(
        fmt::format("{} {}", Whole(each, "count"), Text(each, "what")));
  return JoinFew(kinds, kMaxJoined);
}

std::string Count(const Json& item, std::string_view path) {
  return std::to_string(Whole(item, path));
}

// Returns a count that is bad unless 0.
Cell Bad(const Json& item, std::string_view path) {
  const uint64_t count = Whole(item, path);
  return {std::to_string(count), count > 0 ? Tone::kWarn : Tone::kPlain};
}

Cell Stall(double fraction) {
  return {Percent(fraction), fraction >= 0.5        ? Tone::kBad
                             : fraction >= kStalled ? Tone::kWarn
                                                    : Tone::kPlain};
}

// Returns a worker's classes, and whether it decodes unlike some jobs.
Cell Decoders(const Json& worker) {
  std::vector<std::string> names = Strings(worker, "decoder_classes");
  for (std::string& name : names) name = EnumWord(name, "DECODER_CLASS_");
  std::string text = JoinFew(names, kMaxJoined);
  if (Text(worker, "decoders_differ").empty()) return text;
  return {text + " (unlike some jobs)", Tone::kWarn};
}

Cell State(const std::string& word) {
  Tone tone = Tone::kPlain;
  if (word == "ready") tone = Tone::kGood;
  if (word == "draining" || word == "indexing") tone = Tone::kWarn;
  if (word == "lost" || word == "failed") tone = Tone::kBad;
  return {word, tone};
}

Table DatasetsTable(const Json& datasets, absl::Time now) {
  Table table;
  table.columns = {{"NAME"},
                   {"ID", 4},
                   {"STATE"},
                   {"SAMPLES", 0, false, true},
                   {"CLASSES", 6, false, true},
                   {"SHARDS", 5, false, true},
                   {"SIZE(MiB)", 3, false, true},
                   {"JOBS", 2},
                   {"AGE", 1, false, true},
                   {"LOOKED", 1, true, true},
                   {"INDEX(MiB)", 0, true, true},
                   {"FINGERPRINT", 0, true},
                   {"READER", 0, true},
                   {"PASSED OVER", 0, true},
                   {"FAILURE", 0, true}};
  for (const Json& item : datasets) {
    table.rows.push_back(
        {{Text(item, "dataset.name"), Tone::kBold},
         Text(item, "dataset.id").substr(0, 12),
         State(Text(item, "state")),
         Count(item, "dataset.shards.num_samples"),
         std::to_string(Items(item, "dataset.classes").size()),
         std::to_string(NumShards(At(item, "dataset"))),
         Mebibytes(Whole(item, "dataset.bytes")),
         JoinFew(Strings(item, "jobs"), kMaxJoined),
         AgeSince(Text(item, "indexed_at"), now),
         AgeSince(Text(item, "looked_at"), now),
         Mebibytes(Whole(item, "index_bytes")),
         HexOfBase64(Text(item, "dataset.fingerprint")).substr(0, 12),
         ClipMiddle(Text(item, "dataset.reader"), kMaxReader),
         PassedOver(Items(item, "passed_over")),
         Text(item, "failure")});
  }
  return table;
}

// Returns the fraction of the shard cached at its primary owner; "-": unknown.
std::string KeptShare(const Json& shard) {
  return At(shard, "kept_share").is_number()
             ? fmt::format("{:.0f}%", 100 * Number(shard, "kept_share"))
             : "-";
}

Table ShardsTable(const Json& shards) {
  Table table;
  table.columns = {{"SHARD", 0, false, true},
                   {"FIRST SAMPLE", 0, false, true},
                   {"SAMPLES", 0, false, true},
                   {"OWNERS"},
                   {"KEPT", 0, true, true}};
  for (const Json& item : shards) {
    const std::vector<std::string> owners = Strings(item, "owners");
    table.rows.push_back({Count(item, "shard"), Count(item, "first_sample"),
                          Count(item, "num_samples"),
                          owners.empty() ? Cell("none", Tone::kBad)
                                         : Cell(JoinFew(owners, kMaxJoined)),
                          KeptShare(item)});
  }
  return table;
}

Table PoolsTable(const Json& pools) {
  Table table;
  table.columns = {{"NAME"},
                   {"DESIRED", 0, false, true},
                   {"WORKERS", 0, false, true},
                   {"DRAINING", 2, false, true},
                   {"MIN", 0, false, true},
                   {"MAX", 0, false, true},
                   {"DEMAND(rows/s)", 3, false, true},
                   {"REASON", 4},
                   {"DRAIN", 0, true}};
  for (const Json& item : pools) {
    const bool scaled = Whole(item, "max") > 0;
    const uint64_t serving =
        Whole(item, "workers") -
        std::min(Whole(item, "draining"), Whole(item, "workers"));
    const bool met = !scaled || serving == Whole(item, "desired");
    table.rows.push_back(
        {{Text(item, "name"), Tone::kBold},
         Count(item, "desired"),
         {Count(item, "workers"), met ? Tone::kPlain : Tone::kWarn},
         Count(item, "draining"),
         scaled ? Count(item, "min") : "-",
         scaled ? Count(item, "max") : "-",
         Rate(Number(item, "demand_rows_per_s")),
         Text(item, "reason"),
         JoinFew(Strings(item, "drain"), kMaxJoined)});
  }
  return table;
}

std::string_view EmptyHint(std::string_view plural) {
  if (plural == "workers") {
    return "; start one: leat-worker --coordinator HOST:PORT";
  }
  if (plural == "consumers") return "; no training script pulls batches now";
  if (plural == "shards") return "";
  if (plural == "pools") {
    return "; set one: leat pool set NAME --min N --max N";
  }
  return "; a training script creates them: service.job(...)";
}

}  // namespace

const Kind* FindKind(std::string_view word) {
  for (const Kind& kind : kKinds) {
    if (word == kind.plural || word == kind.singular || word == kind.shorter) {
      return &kind;
    }
  }
  return nullptr;
}

std::string_view KindList() {
  return "workers, jobs, datasets, shards, consumers, pools";
}

std::string PassedOverLine(const Json& each) {
  const uint64_t count = Whole(each, "count");
  return fmt::format("{} {}: {}{}", count, Text(each, "what"),
                     Text(each, "first"), count > 1 ? ", ..." : "");
}

uint64_t NumShards(const Json& dataset) {
  const uint64_t sizes = Items(dataset, "shards.sizes").size();
  const uint64_t size = Whole(dataset, "shards.shard_size");
  const uint64_t samples = Whole(dataset, "shards.num_samples");
  if (sizes > 0 || size == 0) return sizes;
  return samples / size + (samples % size > 0 ? 1 : 0);
}

Table WorkersTable(const Json& workers, absl::Time now) {
  Table table;
  table.columns = {{"NAME"},
                   {"STATE"},
                   {"SHARDS", 2, false, true},
                   {"RATE(rows/s)", 0, false, true},
                   {"BUSY(%)", 1, false, true},
                   {"THREADS", 4, false, true},
                   {"CACHE(MiB)", 5, false, true},
                   {"BAD", 3, false, true},
                   {"AGE", 6, false, true},
                   {"BEAT", 7, false, true},
                   {"CAPACITY(rows/s)", 0, true, true},
                   {"QUEUED(rows)", 0, true, true},
                   {"STREAMS", 0, true, true},
                   {"SENT(MiB)", 0, true, true},
                   {"RSS(MiB)", 0, true, true},
                   {"DECODERS", 0, true},
                   {"POOL", 0, true},
                   {"VERSION", 0, true},
                   {"HOST", 0, true},
                   {"PID", 0, true, true},
                   {"ADDRESS", 8}};
  for (const Json& item : workers) {
    // The last statistics of a lost worker are out of date.
    const bool lost = Text(item, "state") == "WORKER_STATE_LOST";
    const std::string busy = Percent(Number(item, "stats.busy_fraction"));
    table.rows.push_back({{Text(item, "name"), Tone::kBold},
                          State(EnumWord(Text(item, "state"), "WORKER_STATE_")),
                          Count(item, "shards_owned"),
                          lost ? "-" : Rate(Number(item, "stats.rows_per_s")),
                          lost ? "-" : busy,
                          Count(item, "threads"),
                          Mebibytes(Whole(item, "stats.cache_bytes")),
                          Bad(item, "stats.bad_samples_total"),
                          AgeSince(Text(item, "joined_at"), now),
                          AgeSince(Text(item, "last_heartbeat_at"), now),
                          Rate(Number(item, "stats.capacity_rows_per_s")),
                          Count(item, "stats.rows_queued"),
                          Count(item, "stats.streams"),
                          Mebibytes(Whole(item, "stats.bytes_sent_total")),
                          Mebibytes(Whole(item, "stats.rss_bytes")),
                          Decoders(item),
                          Text(item, "pool"),
                          Text(item, "version"),
                          Text(item, "host"),
                          Count(item, "pid"),
                          Text(item, "address")});
  }
  return table;
}

Table JobsTable(const Json& jobs, absl::Time now) {
  Table table;
  table.columns = {{"NAME"},
                   {"EPOCH", 0, false, true},
                   {"STEP", 0, false, true},
                   {"RATE(rows/s)", 0, false, true},
                   {"STALL(%)", 1, false, true},
                   {"LIMITED BY", 2},
                   {"CONSUMERS", 4, false, true},
                   {"BAD", 3, false, true},
                   {"AGE", 5, false, true},
                   {"DATASET", 6},
                   {"BATCH", 7, false, true},
                   {"SOURCES", 0, true},
                   {"SHARED(%)", 0, true, true},
                   {"REACHED", 0, true, true},
                   {"ORDER", 0, true},
                   {"LAST BATCH", 0, true},
                   {"DECODER", 0, true},
                   {"PLAN", 0, true}};
  for (const Json& item : jobs) {
    const bool placed = HasPosition(item);
    table.rows.push_back(
        {{Text(item, "job.spec.name"), Tone::kBold},
         placed ? Count(item, "epoch") : "-",
         placed ? Progress(item, "") : "-",
         Rate(Number(item, "rows_per_s")),
         Stall(Number(item, "stall_fraction")),
         LimitText(item),
         Count(item, "consumers"),
         Bad(item, "bad_samples_total"),
         AgeSince(Text(item, "created_at"), now),
         Text(item, "job.dataset.name"),
         Count(item, "job.spec.batch"),
         SourceNames(At(item, "job.spec")),
         Percent(Number(item, "shared_fraction")),
         AgeSince(Text(item, "position_at"), now),
         EnumWord(Text(item, "job.spec.order"), "ORDER_"),
         EnumWord(Text(item, "job.spec.last_batch"), "LAST_BATCH_"),
         EnumWord(Text(item, "job.spec.decoder_class"), "DECODER_CLASS_"),
         HexOfBase64(Text(item, "job.plan_hash")).substr(0, 12)});
  }
  return table;
}

Table ConsumersTable(const Json& consumers, absl::Time now) {
  Table table;
  table.columns = {{"NAME"},
                   {"JOB"},
                   {"HOST", 4},
                   {"PID", 5, false, true},
                   {"EPOCH", 0, false, true},
                   {"STEP", 0, false, true},
                   {"RATE(rows/s)", 0, false, true},
                   {"STALL(%)", 1, false, true},
                   {"WAIT P95(ms)", 2, false, true},
                   {"AGE", 6, false, true},
                   {"REPORT", 3, false, true},
                   {"TRANSPORT", 0, true},
                   {"MEMORY", 0, true},
                   {"ROWS", 0, true, true},
                   {"RECEIVED(MiB)", 0, true, true},
                   {"HEDGED(rows)", 0, true, true},
                   {"FAILED OVER(rows)", 0, true, true}};
  for (const Json& item : consumers) {
    table.rows.push_back({{Text(item, "consumer"), Tone::kBold},
                          Text(item, "stats.job"),
                          Text(item, "stats.host"),
                          Count(item, "stats.pid"),
                          Count(item, "stats.epoch"),
                          Progress(item, "stats."),
                          Rate(Number(item, "stats.rows_per_s")),
                          Stall(Number(item, "stats.stall_fraction")),
                          Rate(Number(item, "stats.wait.p95_ms")),
                          AgeSince(Text(item, "opened_at"), now),
                          AgeSince(Text(item, "last_report_at"), now),
                          Text(item, "stats.transport"),
                          Text(item, "stats.memory"),
                          Count(item, "stats.rows_total"),
                          Mebibytes(Whole(item, "stats.bytes_received_total")),
                          Count(item, "stats.hedged_rows_total"),
                          Count(item, "stats.failed_over_rows_total")});
  }
  return table;
}

std::vector<absl::Status> KeepNamed(const Kind& kind,
                                    const std::vector<std::string>& wanted,
                                    Json& answer) {
  const Json& items = Items(answer, kind.plural);
  std::vector<std::string> names, ids;
  std::vector<size_t> places;  // of the names
  for (const Json& item : items) {
    ids.push_back(Text(item, "dataset.id"));
    // A dataset's name means its last listing; others have their IDs.
    if (Text(item, "state") == "replaced") continue;
    places.push_back(ids.size() - 1);
    names.push_back(Text(item, kind.name));
  }
  std::vector<absl::Status> errors;
  std::vector<size_t> kept;
  for (const std::string& name : wanted) {
    absl::StatusOr<size_t> found = FindName(kind.singular, name, names);
    if (found.ok()) found = places[*found];
    if (!found.ok() && kind.plural == "datasets") {
      const absl::StatusOr<size_t> by_id = FindName(kind.singular, name, ids);
      if (by_id.ok()) found = by_id;
    }
    if (!found.ok())
      errors.push_back(found.status());
    else if (std::find(kept.begin(), kept.end(), *found) == kept.end())
      kept.push_back(*found);
  }
  Json list = Json::array();
  for (const size_t place : kept) list.push_back(items[place]);
  answer[std::string(kind.plural)] = std::move(list);
  return errors;
}

View ListingView(const Kind& kind, Json answer, absl::Time now) {
  const Json& items = Items(answer, kind.plural);
  View view;
  for (const Json& item : items) view.names.push_back(Text(item, kind.name));
  Section section;
  if (kind.plural == "workers") section.table = WorkersTable(items, now);
  if (kind.plural == "jobs") section.table = JobsTable(items, now);
  if (kind.plural == "datasets") section.table = DatasetsTable(items, now);
  if (kind.plural == "shards") section.table = ShardsTable(items);
  if (kind.plural == "consumers") section.table = ConsumersTable(items, now);
  if (kind.plural == "pools") section.table = PoolsTable(items);
  if (items.empty()) {
    view.note = fmt::format("no {}{}", kind.plural, EmptyHint(kind.plural));
  }
  view.sections.push_back(std::move(section));
  view.data = std::move(answer);
  return view;
}

}  // namespace leat::cli
