// SPDX-License-Identifier: Apache-2.0
//
// Times in a trace are microseconds since its first event, as numbers with
// decimals: since 1970 they would not fit into a double.
#include "client/cli/views/trace.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "client/cli/base/text.h"
#include "fmt/format.h"

namespace leat::cli {
namespace {

constexpr uint64_t kFirstGroupTrack = 100'000;
constexpr uint64_t kFirstRequestTrack = 200'000;
constexpr uint64_t kConsumerTrack = 1, kWaitTrack = 2;

struct Event {
  std::string name;
  uint64_t process = 0, track = 0;
  int64_t begin_ns = 0, end_ns = 0;
  Json args;
};

// Puts overlapping groups on separate tracks: each on the first free one.
class Tracks {
 public:
  explicit Tracks(uint64_t first) : first_(first) {}
  uint64_t Take(int64_t begin_ns, int64_t end_ns) {
    auto free = std::find_if(ends_.begin(), ends_.end(),
                             [&](int64_t end) { return end <= begin_ns; });
    if (free == ends_.end()) free = ends_.insert(ends_.end(), 0);
    *free = end_ns;
    return first_ + static_cast<uint64_t>(free - ends_.begin());
  }

 private:
  const uint64_t first_;
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
  if (const std::string worker = Text(span, "worker"); !worker.empty())
    event.args["worker"] = worker;
  if (Text(span, "failed") == "true") event.args["failed"] = true;
  return event;
}

using SpanList = std::vector<const Json*>;
using TrackNames = std::map<uint64_t, std::string>;

// Puts overlapping spans on tracks from `first` on with the title `title`, each
// with its parts inside: the spans that name it as their parent.
void AddOverlapping(SpanList spans, const std::map<uint64_t, SpanList>& parts,
                    uint64_t process, uint64_t first, std::string_view title,
                    std::vector<Event>* events, TrackNames* tracks) {
  std::sort(spans.begin(), spans.end(), [](const Json* a, const Json* b) {
    return Whole(*a, "begin_ns") < Whole(*b, "begin_ns");
  });
  Tracks free(first);
  for (const Json* span : spans) {
    Event event = EventOf(*span, process);
    event.track = free.Take(event.begin_ns, event.end_ns);
    tracks->emplace(event.track,
                    fmt::format("{} {}", title, event.track - first));
    const auto found = parts.find(Whole(*span, "id"));
    for (const Json* part : found == parts.end() ? SpanList() : found->second) {
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

// Converts a worker's spans to events. Those without a thread are groups, and
// parts of groups.
void AddWorker(const Json& spans, uint64_t process, std::vector<Event>* events,
               TrackNames* tracks) {
  SpanList groups;
  std::map<uint64_t, SpanList> parts;  // by group
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
  AddOverlapping(std::move(groups), parts, process, kFirstGroupTrack, "groups",
                 events, tracks);
}

// Converts a consumer's spans to events. Its trainer waits for one step at a
// time.
void AddConsumerSpans(const SpanList& spans, uint64_t process,
                      std::vector<Event>* events, TrackNames* tracks) {
  SpanList steps, requests;
  std::map<uint64_t, SpanList> received;  // by request
  for (const Json* span : spans) {
    const std::string kind = KindName(*span);
    if (kind == "step") {
      steps.push_back(span);
    } else if (kind == "request") {
      requests.push_back(span);
    } else if (kind == "wait") {
      events->push_back(EventOf(*span, process));
      events->back().track = kWaitTrack;
      tracks->emplace(kWaitTrack, "waits");
    } else {
      received[Whole(*span, "parent")].push_back(span);
    }
  }
  AddOverlapping(std::move(steps), {}, process, kFirstGroupTrack, "steps",
                 events, tracks);
  AddOverlapping(std::move(requests), received, process, kFirstRequestTrack,
                 "requests", events, tracks);
}

// Returns a stage of a consumer, from its counters.
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

// Adds one event for the whole time, with its shares.
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

// Assembles the file.
class TraceMaker {
 public:
  explicit TraceMaker(const Collected& collected) : collected_(collected) {}

  TraceFile Make() {
    for (const Json& each : collected_.workers) {
      const bool is_worker = !each.contains("coordinator");
      if (each.contains("error")) {
        file_.errors.push_back(
            is_worker ? fmt::format("worker {}: {}", Text(each, "worker"),
                                    Text(each, "error"))
                      : fmt::format("spans of consumers: the coordinator: {}",
                                    Text(each, "error")));
        continue;
      }
      const Json& spans = Items(each, "spans");
      file_.dropped += Whole(each, "dropped");
      file_.spans += spans.size();
      if (is_worker)
        Worker(each, spans);
      else
        for (const Json& span : spans)
          of_consumers_[Text(span, "consumer")].push_back(&span);
    }
    for (const Json& after : Items(collected_.after, "consumers")) {
      const std::string name = Text(after, "consumer");
      const Json* const before = FindConsumer(collected_.before, name);
      if (before != nullptr && Text(after, "stats.job") == collected_.job)
        Consumer(name, before, &after);
    }
    // Consumers that came or went meanwhile.
    while (!of_consumers_.empty())
      Consumer(of_consumers_.begin()->first, nullptr, nullptr);
    file_.json = Written();
    return std::move(file_);
  }

 private:
  void Name(uint64_t process, std::string name, const TrackNames& tracks) {
    names_.push_back(NameEvent("process_name", process, 0, std::move(name)));
    for (const auto& [track, title] : tracks)
      names_.push_back(NameEvent("thread_name", process, track, title));
  }
  void Worker(const Json& worker, const Json& spans) {
    ++file_.workers;
    TrackNames tracks;
    AddWorker(spans, ++process_, &events_, &tracks);
    Name(process_, "worker " + Text(worker, "worker"), tracks);
  }
  // null: its reports are unknown.
  void Consumer(const std::string& name, const Json* before,
                const Json* after) {
    ++file_.consumers;
    ++process_;
    TrackNames tracks;
    if (before != nullptr && after != nullptr) {
      AddConsumer(*before, *after, collected_, process_, &events_);
      tracks.emplace(kConsumerTrack, "reported");
    }
    AddConsumerSpans(of_consumers_[name], process_, &events_, &tracks);
    Name(process_, "consumer " + name, tracks);
    of_consumers_.erase(std::string(name));
  }
  std::string Written() {
    std::sort(events_.begin(), events_.end(),
              [](const Event& a, const Event& b) {
                return std::pair(a.begin_ns, -a.end_ns) <
                       std::pair(b.begin_ns, -b.end_ns);
              });
    const int64_t start = events_.empty() ? 0 : events_.front().begin_ns;
    Json all = std::move(names_);
    for (const Event& event : events_) all.push_back(JsonOf(event, start));
    const Json trace = {{"displayTimeUnit", "ms"},
                        {"otherData",
                         {{"job", collected_.job},
                          {"begin_unix_ns", start},
                          {"dropped_spans", file_.dropped}}},
                        {"traceEvents", std::move(all)}};
    return trace.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  }

  const Collected& collected_;
  TraceFile file_;
  uint64_t process_ = 0;
  Json names_ = Json::array();
  std::vector<Event> events_;
  std::map<std::string, SpanList> of_consumers_;
};

}  // namespace

TraceFile MakeTrace(const Collected& collected) {
  return TraceMaker(collected).Make();
}

}  // namespace leat::cli
