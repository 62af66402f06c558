// SPDX-License-Identifier: Apache-2.0
//
// Times in a trace are microseconds since its first event, as numbers with
// decimals: since 1970 they would not fit into a double.
#include "client/cli/trace.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "client/cli/text.h"
#include "fmt/format.h"

namespace leat::cli {
namespace {

constexpr uint64_t kFirstGroupTrack = 100'000;
constexpr uint64_t kConsumerTrack = 1;

struct Event {
  std::string name;
  uint64_t process = 0, track = 0;
  int64_t begin_ns = 0, end_ns = 0;
  Json args;
};

// Puts groups that overlap on tracks of their own: the first track that is
// free.
class Tracks {
 public:
  uint64_t Take(int64_t begin_ns, int64_t end_ns) {
    auto free = std::find_if(ends_.begin(), ends_.end(),
                             [&](int64_t end) { return end <= begin_ns; });
    if (free == ends_.end()) free = ends_.insert(ends_.end(), 0);
    *free = end_ns;
    return kFirstGroupTrack + static_cast<uint64_t>(free - ends_.begin());
  }
  size_t count() const { return ends_.size(); }

 private:
  std::vector<int64_t> ends_;
};

std::string KindName(const Json& span) {
  return EnumWord(Text(span, "kind"), "SPAN_KIND_");
}

Event EventOf(const Json& span, uint64_t process) {
  Event event{.name = KindName(span),
              .process = process,
              .track = Whole(span, "thread"),
              .begin_ns = static_cast<int64_t>(Whole(span, "begin_ns")),
              .end_ns = static_cast<int64_t>(Whole(span, "end_ns")),
              .args = {{"epoch", Whole(span, "epoch")},
                       {"step", Whole(span, "step")},
                       {"consumer", Text(span, "consumer")}}};
  event.end_ns = std::max(event.end_ns, event.begin_ns);
  if (const uint64_t rows = Whole(span, "rows"); rows > 0)
    event.args["rows"] = rows;
  if (Text(span, "failed") == "true") event.args["failed"] = true;
  return event;
}

// A worker's spans as events. Those without a thread are groups, and what
// belongs to a group.
void AddWorker(const Json& spans, uint64_t process, std::vector<Event>* events,
               std::map<uint64_t, std::string>* tracks) {
  std::vector<const Json*> groups;
  std::map<uint64_t, std::vector<const Json*>> parts;  // by group
  for (const Json& span : spans) {
    if (Whole(span, "thread") > 0) {
      events->push_back(EventOf(span, process));
      tracks->emplace(events->back().track,
                      fmt::format("thread {}", events->back().track));
    } else if (KindName(span) == "rows") {
      groups.push_back(&span);
    } else {
      parts[Whole(span, "parent")].push_back(&span);
    }
  }
  std::sort(groups.begin(), groups.end(), [](const Json* a, const Json* b) {
    return Whole(*a, "begin_ns") < Whole(*b, "begin_ns");
  });
  Tracks free;
  for (const Json* group : groups) {
    Event event = EventOf(*group, process);
    event.track = free.Take(event.begin_ns, event.end_ns);
    tracks->emplace(event.track,
                    fmt::format("groups {}", event.track - kFirstGroupTrack));
    for (const Json* part : parts[Whole(*group, "id")]) {
      Event inside = EventOf(*part, process);
      inside.track = event.track;
      inside.begin_ns =
          std::clamp(inside.begin_ns, event.begin_ns, event.end_ns);
      inside.end_ns = std::clamp(inside.end_ns, inside.begin_ns, event.end_ns);
      events->push_back(std::move(inside));
    }
    events->push_back(std::move(event));
  }
}

// A stage of a consumer, as its counters say.
const Json& StageOf(const Json& consumer, std::string_view stage) {
  static const Json none;
  for (const Json& each : Items(consumer, "stats.stages"))
    if (Text(each, "stage") == stage) return each;
  return none;
}

uint64_t Grown(const Json& before, const Json& after, std::string_view field) {
  const uint64_t from = Whole(before, field), to = Whole(after, field);
  return to > from ? to - from : 0;
}

// One event for the while, with the shares of it.
void AddConsumer(const Json& before, const Json& after, const Collected& of,
                 uint64_t process, std::vector<Event>* events) {
  const auto length =
      static_cast<double>(std::max<int64_t>(1, of.end_ns - of.begin_ns));
  const auto share = [&](std::string_view stage, std::string_view field) {
    return std::min(
        1.0, static_cast<double>(
                 Grown(StageOf(before, stage), StageOf(after, stage), field)) /
                 length);
  };
  events->push_back(
      {.name = "reported",
       .process = process,
       .track = kConsumerTrack,
       .begin_ns = of.begin_ns,
       .end_ns = of.end_ns,
       .args = {{"waits_share", share("STAGE_TRAIN", "input_ns_total")},
                {"receives_share", share("STAGE_RECEIVE", "busy_ns_total")},
                {"rows", Grown(before, after, "stats.rows_total")},
                {"epoch", Whole(after, "stats.epoch")},
                {"step", Whole(after, "stats.step")}}});
}

Json NameEvent(const char* what, uint64_t process, uint64_t track,
               std::string name) {
  return {{"ph", "M"},
          {"name", what},
          {"pid", process},
          {"tid", track},
          {"ts", 0},
          {"dur", 0},
          {"args", {{"name", std::move(name)}}}};
}

Json JsonOf(const Event& event, int64_t start_ns) {
  return {{"ph", "X"},
          {"name", event.name},
          {"cat", "leat"},
          {"pid", event.process},
          {"tid", event.track},
          {"ts", static_cast<double>(event.begin_ns - start_ns) / 1e3},
          {"dur", static_cast<double>(event.end_ns - event.begin_ns) / 1e3},
          {"args", event.args}};
}

const Json* FindConsumer(const Json& answer, std::string_view name) {
  for (const Json& each : Items(answer, "consumers"))
    if (Text(each, "consumer") == name) return &each;
  return nullptr;
}

}  // namespace

TraceFile MakeTrace(const Collected& collected) {
  TraceFile file;
  Json names = Json::array();
  std::vector<Event> events;
  uint64_t process = 0;
  for (const Json& worker : collected.workers) {
    const std::string name = Text(worker, "worker");
    if (worker.contains("error")) {
      file.errors.push_back(
          fmt::format("worker {}: {}", name, Text(worker, "error")));
      continue;
    }
    ++file.workers;
    ++process;
    file.dropped += Whole(worker, "dropped");
    file.spans += Items(worker, "spans").size();
    std::map<uint64_t, std::string> tracks;
    AddWorker(Items(worker, "spans"), process, &events, &tracks);
    names.push_back(NameEvent("process_name", process, 0, "worker " + name));
    for (auto& [track, title] : tracks)
      names.push_back(NameEvent("thread_name", process, track, title));
  }
  for (const Json& after : Items(collected.after, "consumers")) {
    const std::string name = Text(after, "consumer");
    const Json* const before = FindConsumer(collected.before, name);
    if (before == nullptr || Text(after, "stats.job") != collected.job)
      continue;
    ++file.consumers;
    ++process;
    AddConsumer(*before, after, collected, process, &events);
    names.push_back(NameEvent("process_name", process, 0, "consumer " + name));
    names.push_back(
        NameEvent("thread_name", process, kConsumerTrack, "reported"));
  }
  std::sort(events.begin(), events.end(), [](const Event& a, const Event& b) {
    return std::pair(a.begin_ns, -a.end_ns) < std::pair(b.begin_ns, -b.end_ns);
  });
  const int64_t start = events.empty() ? 0 : events.front().begin_ns;
  Json all = std::move(names);
  for (const Event& event : events) all.push_back(JsonOf(event, start));
  const Json trace = {{"displayTimeUnit", "ms"},
                      {"otherData",
                       {{"job", collected.job},
                        {"begin_unix_ns", start},
                        {"dropped_spans", file.dropped}}},
                      {"traceEvents", std::move(all)}};
  file.json = trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  return file;
}

}  // namespace leat::cli
