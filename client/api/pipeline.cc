// SPDX-License-Identifier: Apache-2.0
#include "client/leat/pipeline.h"

#include <cctype>

#include "nlohmann/json.hpp"

namespace leat {
namespace {

using nlohmann::json;

json Ref(const PipelineValue& value) {
  return {{"node", value.node}, {"output", value.output}};
}

struct ArgToJson {
  json operator()(bool value) const { return {{"bool_value", value}}; }
  json operator()(int64_t value) const { return {{"int_value", value}}; }
  json operator()(double value) const { return {{"float_value", value}}; }
  json operator()(const std::string& value) const {
    return {{"string_value", value}};
  }
  json operator()(const std::vector<int64_t>& values) const {
    return {{"ints_value", {{"values", values}}}};
  }
  json operator()(const std::vector<double>& values) const {
    return {{"floats_value", {{"values", values}}}};
  }
  json operator()(const std::vector<std::string>& values) const {
    return {{"strings_value", {{"values", values}}}};
  }
  json operator()(const PipelineValue& value) const {
    return {{"ref", Ref(value)}};
  }
};

// Turns "drop" into "LAST_BATCH_DROP".
std::string Enum(std::string prefix, const std::string& word) {
  for (const char c : word)
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return prefix;
}

std::string OrderName(const std::string& order) {
  if (order == "global" || order == "shard")
    return Enum("ORDER_", order) + "_SHUFFLE";
  return Enum("ORDER_", order);
}

// A byte that is no UTF-8, as in a path of another encoding, becomes U+FFFD.
std::string TextOf(const json& value) {
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace

struct PipelineBuilder::State {
  json nodes = json::array();
  json outputs = json::array();
};

PipelineBuilder::PipelineBuilder() : state_(std::make_unique<State>()) {}
PipelineBuilder::~PipelineBuilder() = default;
PipelineBuilder::PipelineBuilder(PipelineBuilder&&) noexcept = default;
PipelineBuilder& PipelineBuilder::operator=(PipelineBuilder&&) noexcept =
    default;

PipelineValue PipelineBuilder::Op(std::string name,
                                  std::vector<PipelineValue> inputs,
                                  std::map<std::string, PipelineArg> args) {
  json node = {{"op", std::move(name)},
               {"inputs", json::array()},
               {"args", json::object()}};
  for (const PipelineValue& input : inputs)
    node["inputs"].push_back(Ref(input));
  for (const auto& [key, value] : args)
    node["args"][key] = std::visit(ArgToJson(), value);
  state_->nodes.push_back(std::move(node));
  return {static_cast<uint32_t>(state_->nodes.size() - 1), 0};
}

std::pair<PipelineValue, PipelineValue> PipelineBuilder::ImageFolder(
    std::string path, int64_t repeat) {
  const PipelineValue encoded =
      Op("readers.image_folder", {},
         {{"path", std::move(path)}, {"repeat", repeat}});
  return {encoded, {encoded.node, 1}};
}

PipelineBuilder& PipelineBuilder::Output(std::string name,
                                         PipelineValue value) {
  state_->outputs.push_back({{"name", std::move(name)}, {"ref", Ref(value)}});
  return *this;
}

std::string PipelineBuilder::GraphJson() const {
  return TextOf({{"nodes", state_->nodes}, {"outputs", state_->outputs}});
}

std::string PipelineBuilder::SpecJson(const JobOptions& options) const {
  json spec = {
      {"name", options.name},
      {"pipeline", {{"nodes", state_->nodes}, {"outputs", state_->outputs}}},
      {"seed", options.seed},
      {"batch", options.batch},
      {"order", OrderName(options.order)},
      {"last_batch", Enum("LAST_BATCH_", options.last_batch)},
      {"num_parts", options.num_parts},
      {"rotate_parts", options.rotate_parts},
      {"mix_parts", options.mix_parts},
      {"shuffle_window", options.shuffle_window},
      {"decoder_class", Enum("DECODER_CLASS_", options.decoder_class)},
      {"on_bad_sample", Enum("BAD_SAMPLE_POLICY_", options.on_bad_sample)}};
  if (options.max_bad) spec["max_bad"] = *options.max_bad;
  if (options.augment_seed) spec["augment_seed"] = *options.augment_seed;
  if (options.balanced) spec["selection"]["balanced"] = true;
  for (const auto& [name, share] : options.class_weights)
    spec["selection"]["shares"].push_back({{"name", name}, {"share", share}});
  return TextOf(spec);
}

}  // namespace leat
