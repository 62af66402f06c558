// SPDX-License-Identifier: Apache-2.0
//
// A service that answers from text, and a terminal that is a string.
#pragma once

#include <cstring>
#include <functional>
#include <map>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "client/cli/base/environment.h"
#include "client/cli/run.h"
#include "core/status.h"

namespace leat::cli {

inline constexpr char kWorkers[] = R"({"workers": [
 {"name": "node1", "address": "10.0.0.1:7000", "state": "WORKER_STATE_READY",
  "version": "0.2.0", "threads": 8,
  "decoder_classes": ["DECODER_CLASS_EXACT"], "weight": 1.0,
  "decoders": [{"decoder_class": "DECODER_CLASS_EXACT",
   "digest": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=",
   "libraries": "libjpeg-turbo 2.1.5"}],
  "decoders_differ": "its exact decoders are 1a2b (x), but 2 plans began with 3c4d (y) there",
  "shards_owned": "12", "host": "node1", "pid": "4711", "pool": "photos",
  "stats": {"rows_per_s": 1652.4, "capacity_rows_per_s": 2100.0,
   "rows_total": "900000", "bytes_sent_total": "1073741824",
   "payload_copies_total": "0", "busy_fraction": 0.93,
   "cache_bytes": "1048576", "cache_limit_bytes": "1073741824",
   "cache_hits_total": "3", "cache_misses_total": "1",
   "forms_saved_ms_total": "900", "forms_lent_ms_total": "30",
   "forms_spent_ms_total": "800", "idle_forms_made_total": "70",
   "idle_forms_ms_total": "140", "idle_forms_waiting": "6",
   "row_latency": {"p95_ms": 12.5}, "damaged_streams_total": "41", "rss_bytes": "104857600",
   "storage_requests_total": "5000", "storage_retries_total": "12",
   "storage_hedges_total": "3", "disk_cache_hits_total": "900",
   "disk_cache_misses_total": "100", "disk_cache_bytes": "2097152",
   "cached_datasets": [{"dataset": "train", "bytes": "1048576",
    "entries": "10", "hits_total": "3", "misses_total": "1",
    "forms": [{"form": "coefficients", "bytes": "524288", "entries": "5",
     "hits_total": "40", "saved_ms_total": "123"}]}],
   "disk_cached_datasets": [{"dataset": "val", "bytes": "2097152",
    "entries": "20", "hits_total": "900", "misses_total": "100"}],
   "rows_ahead": "64", "bytes_ahead": "6553600"},
  "joined_at": "2026-11-21T01:00:00Z",
  "last_heartbeat_at": "2026-11-21T01:59:59.500Z"},
 {"name": "node2", "address": "10.0.0.2:7000", "state": "WORKER_STATE_LOST",
  "version": "0.2.0", "threads": 8, "shards_owned": "0", "host": "node2",
  "joined_at": "2026-11-20T01:00:00Z"}]})";

inline constexpr char kJobJson[] = R"({"spec": {"name": "resnet50",
   "pipeline": {"nodes": [
     {"op": "readers.image_folder", "inputs": [],
      "args": {"path": {"string_value": "/data/train"},
               "repeat": {"int_value": "1"}}},
     {"op": "decode", "inputs": [{"node": 0, "output": 0}], "args": {}},
     {"op": "coin_flip", "inputs": [],
      "args": {"probability": {"float_value": 0.5}}},
     {"op": "flip", "inputs": [{"node": 1, "output": 0}],
      "args": {"horizontal": {"ref": {"node": 2, "output": 0}},
               "size": {"ints_value": {"values": ["224", "224"]}}}}],
    "outputs": [{"name": "image", "ref": {"node": 3, "output": 0}},
                {"name": "label", "ref": {"node": 0, "output": 1}}]},
   "seed": "7", "batch": 1024, "order": "ORDER_GLOBAL_SHUFFLE",
   "last_batch": "LAST_BATCH_DROP", "num_parts": 0,
   "decoder_class": "DECODER_CLASS_EXACT",
   "on_bad_sample": "BAD_SAMPLE_POLICY_REPLACE"},
  "dataset": {"id": "abcdef0123456789", "name": "train",
   "shards": {"num_samples": "1281167", "shard_size": "1024", "sizes": []},
   "classes": ["tench", "goldfish", "great_white_shark"]},
  "schema": [{"name": "image", "dtype": "D_TYPE_UINT8",
              "shape": ["224", "224", "3"]},
             {"name": "label", "dtype": "D_TYPE_INT32", "shape": []}],
  "plan_hash": "AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="})";

inline std::string JobsJson() {
  return std::string(R"({"jobs": [{"job": )") + kJobJson +
         R"json(, "created_at": "2026-11-21T01:30:00Z", "consumers": "2",
   "epoch": "3", "step": "120", "steps_per_epoch": "1251",
   "gpu_use": "GPU_USE_YES", "gpu_reason": "",
   "rows_per_s": 1650.0, "stall_fraction": 0.12, "bad_samples_total": "4",
   "limited_by": "decode and augment", "limited_by_seen": "58s",
   "bad_samples": [{"sample": "17", "record": "n01/a\u001b[31m.jpg",
     "reason": "Premature end of JPEG file", "count": "4"}]},
  {"job": {"spec": {"name": "status", "batch": 8},
           "dataset": {"name": "train"}}, "consumers": "0"}]})json";
}

inline constexpr char kDatasets[] = R"json({"datasets": [
 {"dataset": {"id": "abcdef0123456789", "name": "train",
   "reader": "readers.image_folder(path=\"/data/train\")",
   "fingerprint": "AAEC", "bytes": "148000000000",
   "shards": {"num_samples": "1281167", "shard_size": "1024", "sizes": []},
   "classes": ["tench", "goldfish"]},
  "indexed_at": "2026-11-21T01:00:00Z", "state": "ready",
  "jobs": ["resnet50"], "index_bytes": "40000000"}]})json";
inline constexpr char kShards[] = R"({"shards": [
 {"shard": 0, "first_sample": "0", "num_samples": "1024",
  "owners": ["node1"], "kept_share": 0.875},
 {"shard": 1, "first_sample": "1024", "num_samples": "1024", "owners": []}]})";
inline constexpr char kConsumers[] = R"({"consumers": [
 {"consumer": "trainer0-77", "stats": {"job": "resnet50", "host": "trainer0",
  "pid": "77", "epoch": "3", "step": "120", "steps_per_epoch": "1251",
  "rows_per_s": 825.0, "stall_fraction": 0.12, "wait": {"p95_ms": 80.5},
  "transport": "grpc"}, "opened_at": "2026-11-21T01:31:00Z",
  "last_report_at": "2026-11-21T01:59:58Z"}]})";

inline constexpr char kBottleneck[] = R"({"job": "resnet50",
 "limit": "decode_cpu", "subject": "",
 "summary": "the decode threads are busy, and their records are there",
 "figures": [
  {"what": "the trainer waits for batches", "value": 41.5,
   "unit": "% of its time"},
  {"what": "decode threads decode and augment", "value": 93,
   "unit": "% of their time"},
  {"what": "decode threads wait for records", "value": 0.5,
   "unit": "% of their time"}],
 "advice": "add workers, or threads: leat-worker --threads",
 "seen": "58s", "workers": 2, "consumers": 1})";

inline constexpr char kPools[] = R"({"pools": [
 {"name": "cpu", "min": 1, "max": 8, "desired": 3, "workers": 4,
  "draining": 1, "reason": "job train waits for 30 % of its time",
  "drain": ["cpu.12_3"], "version": "7", "demand_rows_per_s": 412.5},
 {"name": "default", "min": 0, "max": 0, "desired": 1, "workers": 1,
  "draining": 0, "reason": "it is not scaled", "drain": [],
  "version": "7"}]})";

// Returns one answer of WatchEvents: numbers from `first` on.
inline std::string EventsJson(uint64_t first, int count, uint64_t instance = 7,
                              uint64_t missed = 0) {
  std::string events;
  for (uint64_t i = first; i < first + static_cast<uint64_t>(count); ++i)
    events += fmt::format(
        R"({}{{"sequence": {}, "at": "2026-11-21T01:59:{:02}.250Z",
            "type": "worker.lost", "severity": "warn",
            "subjects": ["worker/node{}"],
            "message": "worker node{} sends no heartbeat; its shards go to others"}})",
        i == first ? "" : ", ", i, i % 60, i, i);
  return fmt::format(
      R"({{"events": [{}], "sequence": {}, "instance": {}, "missed": {}}})",
      events, first + count - 1, instance, missed);
}

struct FakeService {
  // The answers of each call of WatchEvents, and its end. By default a call has
  // one answer without events.
  struct Watched {
    std::vector<std::string> answers;
    absl::Status status;
  };
  std::vector<Watched> watched;
  std::map<std::string, std::string> answers = {
      {"workers", kWorkers},     {"jobs", JobsJson()},
      {"datasets", kDatasets},   {"shards", kShards},
      {"consumers", kConsumers}, {"bottleneck", kBottleneck},
      {"pools", kPools},
  };
  std::string findings = "[]";
  absl::Status connect;               // result of connecting
  std::vector<absl::Status> failing;  // of the next calls, first to last
  std::vector<std::string> calls;
  // The pools that a watcher receives, one after the other.
  std::vector<std::string> pools_seen;
  Rows rows;
  // The answer of CollectSpans.
  std::string spans = R"([
    {"worker": "node1", "address": "10.0.0.1:7412", "dropped": 3, "spans": [
      {"id": 10, "parent": 1, "kind": "SPAN_KIND_ROWS", "begin_ns": 1000000,
       "end_ns": 5000000, "rows": 2, "epoch": 0, "step": 7, "consumer": "c"},
      {"id": 11, "parent": 10, "kind": "SPAN_KIND_QUEUE", "begin_ns": 1000000,
       "end_ns": 2000000, "rows": 2, "epoch": 0, "step": 7, "consumer": "c"},
      {"id": 12, "parent": 10, "kind": "SPAN_KIND_SEND", "begin_ns": 4000000,
       "end_ns": 5000000, "rows": 2, "epoch": 0, "step": 7, "consumer": "c"},
      {"id": 13, "parent": 10, "kind": "SPAN_KIND_ROW", "begin_ns": 2000000,
       "end_ns": 4000000, "thread": 3, "rows": 1, "epoch": 0, "step": 7,
       "consumer": "c", "failed": true},
      {"id": 14, "parent": 13, "kind": "SPAN_KIND_DECODE", "begin_ns": 2500000,
       "end_ns": 3500000, "thread": 3, "epoch": 0, "step": 7, "consumer": "c"},
      {"id": 20, "parent": 2, "kind": "SPAN_KIND_ROWS", "begin_ns": 1500000,
       "end_ns": 4500000, "rows": 2, "epoch": 0, "step": 8, "consumer": "c"}
    ]},
    {"worker": "node2", "address": "10.0.0.2:7412", "error": "no answer"}])";
  std::string explained = R"([
    {"row": 0, "padding": false, "pass": 0,
     "record": {"sample": 5, "root": "/data", "file": "x.tfrecord", "key": "",
                "offset": 64, "size": 9, "index": 2, "shard": 0,
                "index_in_shard": 5},
     "draws": [{"node": 2, "op": "uniform", "name": "scale", "values": [0.25],
                "text": "", "unknown": ""},
               {"node": 4, "op": "random_crop", "name": "", "values": [],
                "text": "", "unknown": "not read"}]},
    {"row": 1, "padding": false, "pass": 0, "draws": []}])";
};

class FakeAdmin : public Admin {
 public:
  explicit FakeAdmin(FakeService* service) : service_(service) {}
  absl::StatusOr<std::string> Get(std::string_view what,
                                  std::string_view name) override {
    if (what == "shards")
      service_->calls.push_back("dataset " + std::string(name));
    RETURN_IF_ERROR(Call(std::string(what)));
    return what == "status" ? Status() : service_->answers[std::string(what)];
  }
  absl::Status Do(std::string_view verb, std::string_view name) override {
    return Call(fmt::format("{} {}", verb, name));
  }
  absl::StatusOr<std::string> GetBottleneck(std::string_view job,
                                            absl::Duration since) override {
    RETURN_IF_ERROR(Call(
        fmt::format("bottleneck {} {}", job, absl::FormatDuration(since))));
    if (job != "resnet50") return NotFound("no such job");
    return service_->answers["bottleneck"];
  }
  absl::Status SetLogLevel(std::string_view level,
                           std::string_view worker) override {
    return Call(fmt::format("log-level {} {}", level, worker));
  }
  absl::StatusOr<std::string> CreateAccessToken(
      std::string_view role, std::string_view name,
      absl::Duration lifetime) override {
    RETURN_IF_ERROR(Call(fmt::format("access-create {} {} {}", role, name,
                                     absl::FormatDuration(lifetime))));
    return fmt::format(
        R"({{"info": {{"id": "0a1b2c3d", "name": "vision", "role": "{}"}},
             "token": "leat_0a1b2c3d_secret"}})",
        role);
  }
  absl::Status SetPool(std::string_view name, uint32_t min,
                       uint32_t max) override {
    return Call(fmt::format("pool-set {} {} {}", name, min, max));
  }
  absl::Status WatchPool(
      std::string_view name, absl::Duration,
      const std::function<bool(const std::string&)>& on_pool) override {
    RETURN_IF_ERROR(Call("pool-watch " + std::string(name)));
    while (!service_->pools_seen.empty()) {
      const std::string pool = service_->pools_seen.front();
      service_->pools_seen.erase(service_->pools_seen.begin());
      if (!on_pool(pool)) break;
    }
    return absl::OkStatus();
  }
  absl::Status WatchEvents(
      const EventsQuery& query,
      const std::function<bool(std::string_view)>& on_events) override {
    RETURN_IF_ERROR(Call(fmt::format(
        "events after {} of {} about \"{}\"{}{}", query.after, query.instance,
        query.subject, query.follow ? " follow" : "",
        query.since ? " since " + absl::FormatDuration(*query.since) : "")));
    FakeService::Watched call{{EventsJson(1, 0)}, absl::OkStatus()};
    if (!service_->watched.empty()) {
      call = service_->watched.front();
      service_->watched.erase(service_->watched.begin());
    }
    for (const std::string& answer : call.answers)
      if (!on_events(answer)) return absl::OkStatus();
    return call.status;
  }
  absl::Status MuteFinding(std::string_view code,
                           absl::Duration lifetime) override {
    return Call(
        fmt::format("mute {} {}", code, absl::FormatDuration(lifetime)));
  }

 private:
  absl::Status Call(std::string what) {
    service_->calls.push_back(std::move(what));
    if (service_->failing.empty()) return absl::OkStatus();
    absl::Status status = service_->failing.front();
    service_->failing.erase(service_->failing.begin());
    return status;
  }
  std::string Status() const {
    std::string workers = service_->answers["workers"];
    const std::string jobs = service_->answers["jobs"];
    workers.back() = ',';
    return workers + jobs.substr(1, jobs.size() - 2) +
           R"(, "version": "0.2.0", "address": "127.0.0.1:7411",
              "state_store": "memory", "started_at": "2026-11-20T23:00:00Z",
              "datasets": "1", "findings": )" +
           service_->findings + "}";
  }
  FakeService* service_;
};

class FakeConnection : public Connection {
 public:
  explicit FakeConnection(FakeService* service)
      : service_(service), admin_(service) {}
  Admin& admin() override { return admin_; }
  absl::StatusOr<Rows> ReadRows(std::string_view job, uint64_t epoch,
                                uint64_t step, uint32_t count) override {
    service_->calls.push_back(
        fmt::format("rows {} {} {} {}", job, epoch, step, count));
    if (job != "resnet50") return NotFound("no such job");
    return service_->rows;
  }
  absl::StatusOr<std::string> Explain(std::string_view job, uint64_t epoch,
                                      uint64_t step,
                                      std::optional<uint32_t> row) override {
    service_->calls.push_back(fmt::format("explain {} {} {} {}", job, epoch,
                                          step,
                                          row ? std::to_string(*row) : "all"));
    if (job != "resnet50") return NotFound("no such job");
    if (row && *row >= 2) return OutOfRange("row {}: rows 0 to 1", *row);
    return service_->explained;
  }
  absl::StatusOr<std::string> CollectSpans(std::string_view job,
                                           absl::Duration duration,
                                           double ratio) override {
    service_->calls.push_back(fmt::format(
        "spans {} {} {}", job, absl::FormatDuration(duration), ratio));
    if (job != "resnet50") return NotFound("no such job");
    return service_->spans;
  }

 private:
  FakeService* service_;
  FakeAdmin admin_;
};

// Runs `leat` and keeps its output.
struct Shell {
  FakeService service;
  std::map<std::string, std::string> variables;
  ConnectOptions connected;
  // The result of a connection, besides service.connect.
  std::function<absl::Status(const ConnectOptions&)> connects;
  std::string typed;
  bool terminal = false;
  bool full = false;  // standard output fails, as on a full disk
  size_t width = 0, height = 0;
  int pauses = 0;
  std::function<void()> on_pause;
  bool clock_runs = false;  // pauses advance it
  absl::Duration paused = absl::ZeroDuration();
  std::function<absl::StatusOr<Ended>(const std::vector<std::string>&)> spawn;
  std::function<absl::StatusOr<HttpReply>(const HttpCall&)> http;
  // Called by several threads at once.
  std::function<std::optional<TlsProbe>(const ConnectOptions&)> probe;
  std::string out, err;

  int Run(std::vector<std::string> args) {
    std::istringstream in(typed);
    std::ostringstream out_stream, err_stream;
    if (full) out_stream.setstate(std::ios::badbit);
    Environment environment;
    environment.version = "0.2.0";
    environment.in = &in;
    environment.out = &out_stream;
    environment.err = &err_stream;
    environment.in_is_terminal = terminal;
    environment.out_is_terminal = terminal;
    environment.width = [this] { return width; };
    environment.height = [this] { return height; };
    environment.variable =
        [this](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      if (found == variables.end()) return std::nullopt;
      return found->second;
    };
    environment.connect = [this](const ConnectOptions& options)
        -> absl::StatusOr<std::unique_ptr<Connection>> {
      connected = options;
      if (connects) RETURN_IF_ERROR(connects(options));
      RETURN_IF_ERROR(service.connect);
      return std::make_unique<FakeConnection>(&service);
    };
    environment.probe_tls = [this](const ConnectOptions& options,
                                   absl::Duration) {
      return probe ? probe(options) : std::nullopt;
    };
    environment.now = [this] {
      return absl::FromCivil(absl::CivilSecond(2026, 11, 21, 2, 0, 0),
                             absl::UTCTimeZone()) +
             (clock_runs ? paused : absl::ZeroDuration());
    };
    environment.pause = [this](absl::Duration time) {
      ++pauses;
      paused += time;
      if (on_pause) on_pause();
    };
    environment.err_is_terminal = terminal;
    environment.spawn =
        [this](const std::vector<std::string>& argv, absl::Duration,
               const std::function<void(std::string_view)>& on_err)
        -> absl::StatusOr<Ended> {
      if (on_err) on_err("1 s: 5 records\n");
      if (!spawn) return NotFound("no program {}", argv[0]);
      return spawn(argv);
    };
    environment.http =
        [this](const HttpCall& call) -> absl::StatusOr<HttpReply> {
      if (!http) return absl::UnavailableError("no network");
      return http(call);
    };
    const int exit_code = RunCli(std::move(args), environment);
    out = out_stream.str();
    err = err_stream.str();
    return exit_code;
  }
};

}  // namespace leat::cli
