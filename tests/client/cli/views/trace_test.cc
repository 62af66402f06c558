// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/trace.h"

#include <map>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

// Returns the events of "X", and checks that they have what a viewer needs.
std::vector<Json> EventsIn(const std::string& text) {
  const Json trace = Json::parse(text);
  std::vector<Json> events;
  for (const Json& event : trace.at("traceEvents")) {
    for (const char* field : {"ph", "ts", "dur", "pid", "tid", "name"})
      EXPECT_TRUE(event.contains(field)) << field << " of " << event.dump();
    EXPECT_GE(event.at("dur").get<double>(), 0);
    if (event.at("ph") == "X") events.push_back(event);
  }
  return events;
}

const Json& Named(const std::vector<Json>& events, const std::string& name) {
  for (const Json& event : events)
    if (event.at("name") == name) return event;
  static const Json none = Json::object();
  ADD_FAILURE() << "no event " << name;
  return none;
}

// The activities of consumers, which come last.
constexpr char kOfConsumers[] = R"(,
    {"coordinator": "10.0.0.9:7411", "dropped": 1, "spans": [
      {"id": 30, "kind": "SPAN_KIND_STEP", "begin_ns": 500000,
       "end_ns": 6000000, "epoch": 0, "step": 7, "consumer": "c"},
      {"id": 40, "kind": "SPAN_KIND_STEP", "begin_ns": 1500000,
       "end_ns": 7000000, "epoch": 0, "step": 8, "consumer": "c"},
      {"id": 31, "parent": 30, "kind": "SPAN_KIND_WAIT", "begin_ns": 5000000,
       "end_ns": 6000000, "epoch": 0, "step": 7, "consumer": "c"},
      {"id": 32, "parent": 30, "kind": "SPAN_KIND_REQUEST", "begin_ns": 600000,
       "end_ns": 5500000, "rows": 2, "worker": "node1", "epoch": 0, "step": 7,
       "consumer": "c"},
      {"id": 33, "parent": 32, "kind": "SPAN_KIND_RECEIVE",
       "begin_ns": 5000000, "end_ns": 5600000, "rows": 2, "epoch": 0,
       "step": 7, "consumer": "c"}]}])";

void AddConsumers(std::string* spans) {
  ASSERT_EQ(spans->back(), ']');
  spans->pop_back();
  *spans += kOfConsumers;
}

TEST(Trace, WritesWhatWorkersAndConsumersDidForAViewer) {
  Shell shell;
  AddConsumers(&shell.service.spans);
  ASSERT_EQ(shell.Run({"trace", "resnet50", "--duration", "2s", "-o", "-"}), 0);
  EXPECT_THAT(shell.service.calls,
              ElementsAre("consumers", "spans resnet50 2s 1", "consumers"));
  const std::vector<Json> events = EventsIn(shell.out);
  // Six spans of a worker, five of a consumer, and another's report.
  ASSERT_EQ(events.size(), 12u);
  const Json& queue = Named(events, "queue");
  EXPECT_EQ(queue.at("ts"), 500.0);
  EXPECT_EQ(queue.at("dur"), 1000.0);
  EXPECT_EQ(queue.at("args").at("step"), 7);
  const Json& row = Named(events, "row");
  EXPECT_EQ(row.at("tid"), 3);
  EXPECT_EQ(row.at("args").at("failed"), true);
  EXPECT_EQ(Named(events, "decode").at("tid"), 3);
  EXPECT_EQ(Named(events, "reported").at("args").at("step"), 120);
  EXPECT_EQ(Named(events, "wait").at("dur"), 1000.0);
  EXPECT_EQ(Named(events, "request").at("args").at("worker"), "node1");
  // Received rows are inside their request, whose end is by another clock.
  EXPECT_EQ(Named(events, "receive").at("dur"), 500.0);
  EXPECT_EQ(Named(events, "receive").at("tid"),
            Named(events, "request").at("tid"));
  EXPECT_NE(Named(events, "wait").at("pid"), queue.at("pid"));
  EXPECT_THAT(shell.err, HasSubstr("11 spans of 1 worker, 2 consumers; 4 spans "
                                   "found no room"));
  EXPECT_THAT(shell.err, HasSubstr("worker node2: no answer"));
}

TEST(Trace, GroupsThatOverlapHaveTracksOfTheirOwn) {
  Shell shell;
  AddConsumers(&shell.service.spans);
  ASSERT_EQ(shell.Run({"trace", "resnet50", "-o", "-"}), 0);
  std::map<std::pair<int, int>, std::vector<std::pair<double, double>>> tracks;
  for (const Json& event : EventsIn(shell.out)) {
    const double begin = event.at("ts");
    tracks[{event.at("pid"), event.at("tid")}].emplace_back(
        begin, begin + event.at("dur").get<double>());
  }
  // One of a thread, two of groups; waits, two of steps, requests; a report.
  EXPECT_EQ(tracks.size(), 8u);
  for (const auto& [track, spans] : tracks)
    for (const auto& [begin, end] : spans)
      for (const auto& [other_begin, other_end] : spans)
        EXPECT_TRUE(end <= other_begin || other_end <= begin ||
                    (begin <= other_begin && other_end <= end) ||
                    (other_begin <= begin && end <= other_end))
            << track.first << "/" << track.second;
}

TEST(Trace, AnOddAnswerIsNoReasonToFail) {
  const TraceFile file = MakeTrace(
      {.job = "j",
       .workers = Json::parse(R"([{"worker": 3}, {"spans": [{}, 7, {"kind":
           "SPAN_KIND_ROWS", "begin_ns": 9, "end_ns": 2}]},
           {"coordinator": 1, "spans": [{}, 7, {"consumer": [], "kind": "SPAN_KIND_STEP"}]},
           {"coordinator": "c", "error": "it is of a version that traces nothing"}])"),
       .before = Json::object(),
       .after = Json::parse(R"({"consumers": [{"consumer": "c"}]})")});
  for (const Json& event : EventsIn(file.json))
    EXPECT_TRUE(event.contains("args"));
}

TEST(Trace, WrongUseAndUnknownJobsAreErrors) {
  Shell shell;
  EXPECT_EQ(shell.Run({"trace", "resnet51", "-o", "-"}), 3);
  EXPECT_THAT(shell.err, HasSubstr("resnet50"));
  EXPECT_EQ(shell.Run({"trace", "resnet50", "--duration", "soon"}), 2);
  EXPECT_EQ(shell.Run({"trace", "resnet50", "--ratio", "2"}), 2);
  EXPECT_EQ(shell.Run({"trace"}), 2);
  EXPECT_EQ(shell.Run({"trace", "resnet50", "-o", "/nowhere/trace.json"}), 1);
  EXPECT_THAT(shell.err, HasSubstr("/nowhere/trace.json: cannot be written"));
}

}  // namespace
}  // namespace leat::cli
