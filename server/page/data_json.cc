// SPDX-License-Identifier: Apache-2.0
#include "server/page/data_json.h"

#include <chrono>
#include <cmath>
#include <string_view>
#include <vector>

#include "core/json.h"
#include "fmt/format.h"
#include "google/protobuf/util/json_util.h"

namespace leat::server {
namespace {

// Appends "name":[…] of messages.
template <class Messages>
void AppendMessages(std::string_view name, const Messages& messages,
                    std::string* json) {
  *json += fmt::format(",\"{}\":[", name);
  bool first = true;
  for (const auto& each : messages) {
    if (!first) *json += ',';
    first = false;
    *json += JsonOf(each);
  }
  *json += ']';
}

int64_t Milliseconds(WallTime time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(
             time.time_since_epoch())
      .count();
}

// Appends "name":[…] of numbers; those below 0 are unknown.
void AppendNumbers(std::string_view name, const std::vector<double>& numbers,
                   double unit, std::string* json) {
  if (json->back() != '{') *json += ',';
  *json += fmt::format("\"{}\":[", name);
  for (size_t i = 0; i < numbers.size(); ++i) {
    if (i > 0) *json += ',';
    if (numbers[i] < 0)
      *json += "null";
    else
      *json += fmt::format("{}", std::round(numbers[i] * unit) / unit);
  }
  *json += ']';
}

}  // namespace

std::string JsonOf(const google::protobuf::Message& message) {
  google::protobuf::util::JsonPrintOptions options;
  options.preserve_proto_field_names = true;
  std::string text;
  return google::protobuf::util::MessageToJsonString(message, &text, options)
                 .ok()
             ? text
             : "{}";
}

std::string JsonOf(const PageModel& model) {
  std::string json = fmt::format("{{\"at_ms\":{}", Milliseconds(model.at));
  json += ",\"status\":" + JsonOf(model.status);
  json += fmt::format(
      ",\"counts\":{{\"workers\":{},\"ready\":{},\"draining\":{},\"lost\":{},"
      "\"jobs\":{},\"jobs_in_use\":{},\"consumers\":{}}}",
      model.workers, model.ready, model.draining, model.lost, model.jobs,
      model.jobs_in_use, model.num_consumers);
  json += fmt::format(",\"class_of\":[{}]", fmt::join(model.class_of, ","));
  json += ",\"classes\":[";
  for (const PageModel::Class& each : model.classes) {
    if (json.back() != '[') json += ',';
    json += fmt::format(
        "{{\"name\":{},\"ready\":{},\"median_rows_per_s\":{},"
        "\"median_capacity_rows_per_s\":{}}}",
        JsonString(each.name), each.ready, each.median_rows_per_s,
        each.median_capacity_rows_per_s);
  }
  json += "],\"total\":" + JsonOf(model.total);
  json += fmt::format(",\"stages_s\":{}",
                      model.stages_of / std::chrono::seconds(1));
  AppendMessages("stages", model.stages, &json);
  json += ",\"queues\":{";
  for (const auto& [stage, levels] : model.queues)
    AppendNumbers(v1::Stage_Name(stage), levels, 1000, &json);
  json += '}';
  AppendMessages("verdicts", model.verdicts, &json);
  AppendMessages("consumers", model.consumers, &json);
  AppendMessages("datasets", model.datasets, &json);
  return json + "}";
}

std::string JsonOf(const JobHistory& history) {
  std::string json = fmt::format(
      "{{\"begin_ms\":{},\"step_ms\":{},\"consumers\":{}",
      Milliseconds(history.begin), history.step / std::chrono::milliseconds(1),
      history.consumers);
  AppendNumbers("rows_per_s", history.rows_per_s, 100, &json);
  AppendNumbers("wait_p50_ms", history.wait_p50_ms, 100, &json);
  AppendNumbers("wait_p95_ms", history.wait_p95_ms, 100, &json);
  json += ",\"strips\":[";
  for (const JobHistory::Strip& strip : history.strips) {
    if (json.back() != '[') json += ',';
    json += fmt::format("{{\"consumer\":{},\"host\":{}",
                        JsonString(strip.consumer), JsonString(strip.host));
    AppendNumbers("waiting", strip.waiting, 1000, &json);
    json += '}';
  }
  return json + "]}";
}

}  // namespace leat::server
