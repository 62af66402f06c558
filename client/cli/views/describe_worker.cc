// SPDX-License-Identifier: Apache-2.0
#include <utility>

#include "client/cli/base/text.h"
#include "client/cli/views/describe.h"
#include "client/cli/views/describe_text.h"
#include "core/counted.h"
#include "fmt/format.h"
#include "fmt/ranges.h"

namespace leat::cli {
namespace {

std::string Latency(const Json& latency) {
  return fmt::format("mean {:.1f}  p50 {:.1f}  p95 {:.1f}  max {:.1f}",
                     Number(latency, "mean_ms"), Number(latency, "p50_ms"),
                     Number(latency, "p95_ms"), Number(latency, "max_ms"));
}

// Adds a section per GPU: its properties and its activity.
void AddDevices(const Json& worker, View* view) {
  for (const Json& device : Items(worker, "devices")) {
    Section section;
    section.title = fmt::format("GPU {}", Whole(device, "index"));
    const uint64_t engines = Whole(device, "jpeg_engines");
    const std::string nvjpeg = Text(device, "nvjpeg_version");
    section.facts = {{"Name", Text(device, "name")},
                     {"UUID", Text(device, "uuid")},
                     {"Compute capability", Text(device, "compute")},
                     {"nvJPEG", nvjpeg.empty() ? "none" : nvjpeg},
                     {"JPEG engines",
                      engines == 0 ? "none"
                                   : fmt::format("{} × {} cores", engines,
                                                 Whole(device, "jpeg_cores"))}};
    for (const Json& stats : Items(At(worker, "stats"), "devices")) {
      if (Whole(stats, "index") != Whole(device, "index")) continue;
      const std::vector<std::pair<std::string, Cell>> does = {
          {"Memory held",
           fmt::format("{} of {}", Size(Whole(stats, "memory_bytes")),
                       Size(Whole(device, "memory_bytes")))},
          {"Busy (%)", Percent(Number(stats, "busy_fraction"))},
          {"Slots in use", fmt::format("{} of {}", Whole(stats, "slots_in_use"),
                                       Whole(stats, "slots"))},
          {"Groups",
           fmt::format("{}, {} failed, {} halved", Whole(stats, "groups_total"),
                       Whole(stats, "groups_failed_total"),
                       Whole(stats, "splits_total"))},
          {"Rows, exact", fmt::format("{}, {} of coefficients, {} of these of "
                                      "the file's codes",
                                      Whole(stats, "rows_exact_total"),
                                      Whole(stats, "rows_coefficients_total"),
                                      Whole(stats, "rows_codes_total"))},
          {"Rows, nvjpeg",
           fmt::format("{} by engines, {} by CUDA, {} by the host",
                       Whole(stats, "rows_hardware_total"),
                       Whole(stats, "rows_cuda_total"),
                       Whole(stats, "rows_host_total"))}};
      section.facts.insert(section.facts.end(), does.begin(), does.end());
    }
    view->sections.push_back(std::move(section));
  }
}

// Returns "75.0 % hits".
std::string HitsText(double hits, double misses) {
  return fmt::format("{} % hits",
                     Percent(hits == 0 ? 0 : hits / (hits + misses)));
}

std::string HitsText(const Json& stats, std::string_view cache) {
  return HitsText(Number(stats, fmt::format("{}_hits_total", cache)),
                  Number(stats, fmt::format("{}_misses_total", cache)));
}

// Describes the records that the worker has taken from peers, and given to
// them.
std::string PeersText(const Json& stats) {
  const auto count = [&](std::string_view outcome) {
    return Whole(stats, fmt::format("peer_records_{}_total", outcome));
  };
  return fmt::format("{} found, {} missing, {} failed, {} refused; {} given",
                     count("found"), count("missing"), count("failed"),
                     count("refused"), count("given"));
}

// Adds a cache's content of each dataset: "imagenet   2.0 MiB, 20 entries, ...",
// and beside its files: "imagenet, coefficients   3.9 MiB, 20 entries, ...".
void AddCached(const Json& stats, std::string_view field, std::string title,
               View* view) {
  Section section;
  section.title = std::move(title);
  for (const Json& each : Items(stats, field)) {
    section.facts.emplace_back(
        Text(each, "dataset"),
        fmt::format("{}, {}, {}", Size(Whole(each, "bytes")),
                    Counted(Whole(each, "entries"), "entry", "entries"),
                    HitsText(Number(each, "hits_total"),
                             Number(each, "misses_total"))));
    for (const Json& form : Items(each, "forms"))
      section.facts.emplace_back(
          fmt::format("{}, {}", Text(each, "dataset"), Text(form, "form")),
          fmt::format("{}, {}, {}, {} ms saved", Size(Whole(form, "bytes")),
                      Counted(Whole(form, "entries"), "entry", "entries"),
                      Counted(Whole(form, "hits_total"), "decode"),
                      Whole(form, "saved_ms_total")));
  }
  if (!section.facts.empty()) view->sections.push_back(std::move(section));
}

// Adds nothing for a worker that has decoded no image whose forms it may keep.
void AddFormAccount(const Json& stats, View* view) {
  const uint64_t lent = Whole(stats, "forms_lent_ms_total");
  if (lent == 0) return;
  view->sections.push_back(
      {.title = "Decoded forms",
       .facts = {{"Decoding saved",
                  fmt::format("{} ms", Whole(stats, "forms_saved_ms_total"))},
                 {"Lent", fmt::format("{} ms", lent)},
                 {"Spent on making them",
                  fmt::format("{} ms", Whole(stats, "forms_spent_ms_total"))},
                 {"Made in idle time",
                  fmt::format("{}, in {} ms; {} given up for rows; {} wait",
                              Whole(stats, "idle_forms_made_total"),
                              Whole(stats, "idle_forms_ms_total"),
                              Whole(stats, "idle_forms_given_up_total"),
                              Whole(stats, "idle_forms_waiting"))}}});
}

// Adds nothing for a worker without TLS.
void AddCertificate(const Json& stats, Section* who) {
  for (const auto& [field, fact] :
       {std::pair("certificate_begins_at", "Certificate begins"),
        std::pair("certificate_expires_at", "Certificate expires")})
    if (const std::string time = Text(stats, field); !time.empty())
      who->facts.emplace_back(fact, time);
}

// Adds nothing for a worker without a quota of processors.
void AddQuota(const Json& stats, Section* who) {
  if (const uint64_t periods = Whole(stats, "quota_periods_total"); periods > 0)
    who->facts.emplace_back(
        "Quota of processors",
        fmt::format("used up in {} of {}", Whole(stats, "quota_used_up_total"),
                    Counted(periods, "period")));
}

// Adds nothing for a worker that has read local files only.
void AddStorage(const Json& stats, View* view) {
  const uint64_t requests = Whole(stats, "storage_requests_total");
  const uint64_t kept = Whole(stats, "disk_cache_bytes");
  const uint64_t ahead = Whole(stats, "rows_ahead");
  if (requests + kept + ahead == 0) return;
  Section section;
  section.title = "Storage";
  section.facts = {
      {"Requests", std::to_string(requests)},
      {"Retries", std::to_string(Whole(stats, "storage_retries_total"))},
      {"Hedges", std::to_string(Whole(stats, "storage_hedges_total"))},
      {"Disk cache",
       fmt::format("{}, {}", Size(kept), HitsText(stats, "disk_cache"))},
      {"Read ahead", fmt::format("{}, {}", Counted(ahead, "row"),
                                 Size(Whole(stats, "bytes_ahead")))}};
  for (const Json& why : Items(stats, "storage_waits"))
    if (why.is_string())
      section.facts.emplace_back("Waits for",
                                 Cell(why.get<std::string>(), Tone::kWarn));
  view->sections.push_back(std::move(section));
}

std::string AbilitiesText(const Json& worker) {
  const std::vector<std::string> abilities = Strings(worker, "abilities");
  return abilities.empty() ? "-"
                           : fmt::format("{}", fmt::join(abilities, ", "));
}

// Adds how it decodes, and what it lacks or does otherwise than other workers.
void AddTroubles(const Json& worker, Section* to) {
  for (const Json& own : Items(worker, "decoders"))
    to->facts.emplace_back(
        fmt::format("Decodes {}",
                    EnumWord(Text(own, "decoder_class"), "DECODER_CLASS_")),
        DecodersText(own));
  for (const Json& lacked : Items(worker, "lacked"))
    to->facts.emplace_back(
        "Lacks", Cell(fmt::format("{}: {}; it owns no shards of jobs that need "
                                  "it",
                                  Text(lacked, "name"), Text(lacked, "why")),
                      Tone::kWarn));
  for (const Json& failure : Items(worker, "storage_failures"))
    to->facts.emplace_back(
        "Cannot read",
        Cell(fmt::format("{}: {} (for {})", Text(failure, "root"),
                         Text(failure, "error"), Text(failure, "lasting")),
             Tone::kBad));
  if (const std::string differ = Text(worker, "decoders_differ");
      !differ.empty())
    to->facts.emplace_back(
        "Owns less",
        Cell(fmt::format("{}; it owns none of their shards", differ),
             Tone::kWarn));
  if (const std::string why = Text(worker, "not_confined"); !why.empty())
    to->facts.emplace_back("Not confined", Cell(why, Tone::kWarn));
  if (const std::string open = Text(worker, "insecure_listener"); !open.empty())
    to->facts.emplace_back("Lets in everybody", Cell(open, Tone::kWarn));
}

}  // namespace

View DescribeWorker(const Json& worker, absl::Time now) {
  View view;
  view.data = worker;
  view.names = {Text(worker, "name")};
  const Json& stats = At(worker, "stats");
  std::vector<std::string> decoders;
  for (const std::string& name : Strings(worker, "decoder_classes")) {
    decoders.push_back(EnumWord(name, "DECODER_CLASS_"));
  }
  const std::string state = EnumWord(Text(worker, "state"), "WORKER_STATE_");
  Section who;
  who.facts = {
      {"Worker", {Text(worker, "name"), Tone::kBold}},
      {"State",
       {state, state == "ready"  ? Tone::kGood
               : state == "lost" ? Tone::kBad
                                 : Tone::kWarn}},
      {"Address", Text(worker, "address")},
      {"Host",
       fmt::format("{} (pid {})", Text(worker, "host"), Whole(worker, "pid"))},
      {"Version", Text(worker, "version")},
      {"Joined", When(worker, "joined_at", now)},
      {"Last heartbeat", When(worker, "last_heartbeat_at", now)},
      {"Threads", Text(worker, "threads")},
      {"Decoder classes", fmt::format("{}", fmt::join(decoders, ", "))},
      {"Abilities", AbilitiesText(worker)},
      {"Shards owned", Text(worker, "shards_owned")},
      {"Weight", fmt::format("{:.2f}", Number(worker, "weight"))}};
  AddTroubles(worker, &who);
  AddCertificate(stats, &who);
  AddQuota(stats, &who);
  Section load;
  load.title = "Load";
  load.facts = {
      {"Rate (rows/s)", Rate(Number(stats, "rows_per_s"))},
      {"Capacity (rows/s)", Rate(Number(stats, "capacity_rows_per_s"))},
      {"Busy (%)", Percent(Number(stats, "busy_fraction"))},
      {"Rows served", Text(stats, "rows_total")},
      {"Rows shared", Text(stats, "rows_shared_total")},
      {"Rows queued", Text(stats, "rows_queued")},
      {"Row latency (ms)", Latency(At(stats, "row_latency"))},
      {"Streams", Text(stats, "streams")},
      {"Sent", Size(Whole(stats, "bytes_sent_total"))},
      {"Payload copies", Text(stats, "payload_copies_total")},
      {"Cache", fmt::format("{} of {}, {}", Size(Whole(stats, "cache_bytes")),
                            Size(Whole(stats, "cache_limit_bytes")),
                            HitsText(stats, "cache"))},
      {"Records of other workers", PeersText(stats)},
      {"Rows kept for others", Size(Whole(stats, "shared_rows_bytes"))},
      {"Buffers in use", fmt::format("{} of {}", Whole(stats, "buffers_in_use"),
                                     Whole(stats, "buffers_total"))},
      {"Memory", Size(Whole(stats, "rss_bytes"))},
      {"Bad samples", Text(stats, "bad_samples_total")},
      {"Damaged streams", Text(stats, "damaged_streams_total")}};
  view.sections = {std::move(who), std::move(load)};
  AddCached(stats, "cached_datasets", "Cached in memory", &view);
  AddFormAccount(stats, &view);
  AddStorage(stats, &view);
  AddCached(stats, "disk_cached_datasets", "Cached on disk", &view);
  AddDevices(worker, &view);
  return view;
}

}  // namespace leat::cli
