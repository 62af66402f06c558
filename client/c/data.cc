// SPDX-License-Identifier: Apache-2.0
//
// The C interface: tensors, statistics, pipelines.
#include <variant>

#include "client/c/status.h"
#include "client/coordinator/message_json.h"
#include "core/pipeline/operators.h"
#include "core/status.h"
#include "nlohmann/json.hpp"
#include "rpc/wire/messages.h"

namespace leat::client {
namespace {

using nlohmann::json;

std::string_view Name(ArgType type) {
  switch (type) {
    case ArgType::kBool:
      return "bool";
    case ArgType::kInt:
      return "int";
    case ArgType::kFloat:
      return "float";
    case ArgType::kString:
      return "string";
    case ArgType::kInts:
      return "ints";
    case ArgType::kFloats:
      return "floats";
    case ArgType::kStrings:
      return "strings";
  }
  return "";
}

struct ToJsonVisitor {
  json operator()(const NodeRef&) const { return nullptr; }
  json operator()(const LongList&) const { return nullptr; }  // no default
  template <class T>
  json operator()(const T& value) const {
    return value;
  }
};

json OperatorJson(const OperatorInfo& info) {
  json args = json::array();
  for (const ArgInfo& arg : info.args) {
    json item = {{"name", arg.name},
                 {"type", Name(arg.type)},
                 {"default", nullptr},
                 {"required", !arg.default_value.has_value()},
                 {"per_sample", arg.per_sample},
                 {"min", nullptr},
                 {"max", nullptr},
                 {"choices", arg.choices},
                 {"doc", arg.doc}};
    if (arg.default_value)
      item["default"] = std::visit(ToJsonVisitor(), *arg.default_value);
    if (arg.min <= arg.max) {
      item["min"] = arg.min;
      item["max"] = arg.max;
    }
    args.push_back(std::move(item));
  }
  return {{"name", info.name},       {"doc", info.doc},
          {"inputs", info.inputs},   {"variadic", info.variadic},
          {"outputs", info.outputs}, {"outputs_of", info.outputs_of},
          {"random", info.random},   {"args", std::move(args)}};
}

json SchemaJson(const BatchSchema& schema) {
  json fields = json::array();
  for (const Field& field : schema.fields)
    fields.push_back({{"name", field.name},
                      {"dtype", leat::Name(field.dtype)},
                      {"shape", field.shape}});
  return fields;
}

absl::StatusOr<std::string> CheckPipeline(std::string_view graph_json) {
  v1::Graph proto;
  RETURN_IF_ERROR(FromJson(graph_json, "pipeline", &proto));
  ASSIGN_OR_RETURN(const Graph graph, rpc::FromCaller(proto));
  ASSIGN_OR_RETURN(const CheckedGraph checked, Check(graph));
  return SchemaJson(checked.schema).dump();
}

json StatsJson(const BatchesStats& stats) {
  json workers = json::array();
  for (const WorkerTraffic& worker : stats.workers)
    workers.push_back({{"worker", worker.worker},
                       {"address", worker.address},
                       {"rows", worker.rows},
                       {"bytes", worker.bytes},
                       {"rows_per_s", worker.rows_per_s},
                       {"failures", worker.failures}});
  return {{"steps", stats.steps},
          {"rows", stats.rows},
          {"bytes", stats.bytes},
          {"rows_per_s", stats.rows_per_s},
          {"stall_fraction", stats.stall_fraction},
          {"wait",
           {{"count", stats.wait.count},
            {"mean_ms", stats.wait.mean_ms},
            {"p50_ms", stats.wait.p50_ms},
            {"p95_ms", stats.wait.p95_ms},
            {"max_ms", stats.wait.max_ms}}},
          {"hedged_rows", stats.hedged_rows},
          {"failed_over_rows", stats.failed_over_rows},
          {"duplicate_rows", stats.duplicate_rows},
          {"payload_copies", stats.payload_copies},
          {"damaged_streams", stats.damaged_streams},
          {"unproven_streams", stats.unproven_streams},
          {"transport", stats.transport},
          {"workers", std::move(workers)}};
}

}  // namespace
}  // namespace leat::client

using leat::client::NullArgument;
using leat::client::ToC;

char* leat_operators_json(void) {
  nlohmann::json operators = nlohmann::json::array();
  for (const leat::OperatorInfo& info : leat::AllOperators())
    operators.push_back(leat::client::OperatorJson(info));
  return ToC(operators.dump());
}

leat_status* leat_pipeline_check(const char* graph_json, char** schema_json) {
  if (graph_json == nullptr) return NullArgument(__func__, "graph_json");
  if (schema_json == nullptr) return NullArgument(__func__, "schema_json");
  const auto schema = leat::client::CheckPipeline(graph_json);
  if (!schema.ok()) return ToC(schema.status());
  *schema_json = ToC(*schema);
  return nullptr;
}

char* leat_batches_stats_json(const leat_batches* batches) {
  if (batches == nullptr) return nullptr;
  return ToC(leat::client::StatsJson(batches->batches->stats()).dump());
}

leat_epilogue leat_batches_epilogue(const leat_batches* batches, size_t index) {
  if (batches == nullptr || index >= batches->batches->epilogue().size())
    return leat_epilogue{.channels = 1};
  const leat::TensorEpilogue& epilogue = batches->batches->epilogue()[index];
  return {.dtype = epilogue.dtype.empty() ? nullptr : epilogue.dtype.data(),
          .channels = epilogue.channels,
          .table = epilogue.table.empty() ? nullptr : epilogue.table.data(),
          .table_bytes = epilogue.table.size(),
          .perm = epilogue.perm.empty() ? nullptr : epilogue.perm.data(),
          .rank = epilogue.perm.size()};
}

uint64_t leat_batch_epoch(const leat_batch* batch) {
  return batch == nullptr ? 0 : batch->batch.epoch();
}
uint64_t leat_batch_step(const leat_batch* batch) {
  return batch == nullptr ? 0 : batch->batch.step();
}
uint32_t leat_batch_rows(const leat_batch* batch) {
  return batch == nullptr ? 0 : batch->batch.rows();
}
size_t leat_batch_num_tensors(const leat_batch* batch) {
  return batch == nullptr ? 0 : batch->batch.tensors().size();
}

leat_tensor leat_batch_tensor(const leat_batch* batch, size_t index) {
  if (index >= leat_batch_num_tensors(batch)) return leat_tensor{};
  const leat::Tensor& tensor = batch->batch.tensors()[index];
  return {.name = batch->names[2 * index].c_str(),
          .dtype = batch->names[2 * index + 1].c_str(),
          .shape = tensor.shape.data(),
          .rank = tensor.shape.size(),
          .data = tensor.data,
          .bytes = tensor.bytes,
          .device = tensor.device};
}

void leat_batch_free(leat_batch* batch) {
  if (batch == nullptr || batch->owners.fetch_sub(1) != 1) return;
  const std::unique_ptr<leat_batch> owned(batch);
  void* const stream = batch->stream;
  // After an error the buffer is lost, since it is not used again.
  if (stream != nullptr) owned->batch.ReleaseOnStream(stream).IgnoreError();
}

void leat_batch_retain(leat_batch* batch) {
  if (batch != nullptr) ++batch->owners;
}

int leat_batch_use_on_stream(leat_batch* batch, void* stream) {
  if (batch == nullptr) return 0;
  void* before = nullptr;
  if (!batch->stream.compare_exchange_strong(before, stream) &&
      before != stream)
    return 0;
  batch->batch.UseOnStream(stream);
  return 1;
}

leat_status* leat_batch_release_on_stream(leat_batch* batch, void* stream) {
  if (batch == nullptr) return NullArgument(__func__, "batch");
  const std::unique_ptr<leat_batch> owned(batch);
  return ToC(owned->batch.ReleaseOnStream(stream));
}
