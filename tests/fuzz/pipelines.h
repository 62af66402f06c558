// SPDX-License-Identifier: Apache-2.0
//
// Initial pipelines, with a reader that gives an encoded image and a label.
#pragma once

#include <string>
#include <vector>

#include "core/pipeline/operators.h"
#include "core/plan/checked_job.h"
#include "core/plan/job.h"

namespace leat::fuzz {

inline std::span<const ValueType> Stored() {
  static const std::vector<ValueType>& types = *new std::vector<ValueType>{
      {ValueType::Kind::kEncoded, DType::kUint8, {}},
      {ValueType::Kind::kTensor, DType::kInt32, {}}};
  return types;
}

// Returns a value that the argument can have.
inline Value Any(const ArgInfo& arg) {
  const double number = arg.min <= arg.max ? (arg.min + arg.max) / 2 : 1;
  const std::string text = arg.choices.empty() ? "x" : arg.choices[0];
  switch (arg.type) {
    case ArgType::kBool:
      return true;
    case ArgType::kInt:
      return static_cast<int64_t>(number);
    case ArgType::kFloat:
      return number;
    case ArgType::kString:
      return text;
    case ArgType::kInts:
      return std::vector<int64_t>{4, 3};
    case ArgType::kFloats:
      return std::vector<double>{1};
    case ArgType::kStrings:
      return std::vector<std::string>{text};
  }
  return true;
}

inline JobSpec Begun() {
  JobSpec spec{.name = "job", .seed = 5, .batch = 8};
  spec.pipeline.nodes = {
      {.op = "readers.image_folder", .inputs = {}, .args = {{"path", "/p"}}},
      {.op = "decode", .inputs = {{0, 0}}, .args = {}},
      {.op = "resize",
       .inputs = {{1, 0}},
       .args = {{"size", std::vector<int64_t>{4, 3}}}}};
  spec.pipeline.outputs = {{"label", {0, 1}}};
  return spec;
}

// A pipeline with every operator that accepts the resized image.
inline JobSpec WithAllOperators() {
  JobSpec spec = Begun();
  for (const OperatorInfo& info : AllOperators()) {
    if (info.name.starts_with("readers.")) continue;
    JobSpec more = spec;
    Node node{.op = info.name, .inputs = {}, .args = {}};
    node.inputs.assign(static_cast<size_t>(info.inputs), NodeRef{2, 0});
    for (const ArgInfo& arg : info.args)
      node.args[arg.name] = arg.default_value ? *arg.default_value : Any(arg);
    const auto index = static_cast<uint32_t>(more.pipeline.nodes.size());
    more.pipeline.nodes.push_back(std::move(node));
    more.pipeline.outputs.emplace_back(info.name, NodeRef{index, 0});
    if (CheckJob(more).ok()) spec = std::move(more);
  }
  return spec;
}

inline JobSpec WithDraws() {
  JobSpec spec = Begun();
  spec.pipeline.nodes.push_back({.op = "coin_flip", .inputs = {}, .args = {}});
  spec.pipeline.nodes.push_back({.op = "flip",
                                 .inputs = {{2, 0}},
                                 .args = {{"horizontal", NodeRef{3, 0}}}});
  spec.pipeline.outputs.emplace_back("image", NodeRef{4, 0});
  return spec;
}

inline JobSpec OfStoredTypes() {
  JobSpec spec = Begun();
  spec.pipeline.nodes[0] = {.op = "readers.caffe",
                            .inputs = {},
                            .args = {{"paths", std::vector<std::string>{"p"}}}};
  spec.pipeline.outputs.emplace_back("image", NodeRef{2, 0});
  return spec;
}

}  // namespace leat::fuzz
