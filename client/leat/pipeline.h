// SPDX-License-Identifier: Apache-2.0
//
// Pipelines and job specs in C++, without writing JSON.
//
//     leat::PipelineBuilder p;
//     auto [encoded, label] = p.ImageFolder("/data/train");
//     auto image = p.Op("decode", {encoded});
//     image = p.Op("random_resized_crop", {image},
//                  {{"size", std::vector<int64_t>{224, 224}}});
//     image = p.Op("flip", {image}, {{"horizontal", p.Op("coin_flip", {})}});
//     p.Output("image", image).Output("label", label);
//     std::string spec =
//         p.SpecJson({.name = "train", .batch = 256, .seed = 7});
//
// A value is a handle into its builder. Nothing is checked here: the
// coordinator, and Service::CreateJob before it, reject an invalid pipeline and
// say what is wrong. Texts are UTF-8; other bytes become U+FFFD.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace leat {

// An output of a node.
struct PipelineValue {
  uint32_t node = 0;
  uint32_t output = 0;
};

// The value of an argument: a constant, or a node that returns one for each
// sample.
using PipelineArg =
    std::variant<bool, int64_t, double, std::string, std::vector<int64_t>,
                 std::vector<double>, PipelineValue, std::vector<std::string>>;

// The facts of a job besides its pipeline, for SpecJson.
struct JobOptions {
  std::string name;
  uint32_t batch = 0;  // rows of the global batch
  uint64_t seed = 0;   // of the order, and of random operators
  // The seed of random operators, if they have another.
  std::optional<uint64_t> augment_seed = std::nullopt;
  std::string order = "global";     // "sequential", "global", "shard"
  std::string last_batch = "drop";  // "drop", "fill", "pad", "partial",
                                    // "stream", "mask"
  uint32_t num_parts = 0;           // 0: global row layout
  bool rotate_parts = false;        // parts rotate by one each epoch
  bool mix_parts = false;       // parts are cut from one order of all samples
  uint32_t shuffle_window = 0;  // shards; 0: the service's default
  std::string decoder_class = "exact";  // "exact", "nvjpeg",
                                        // "nvjpeg_shared", "auto"
  std::string on_bad_sample = "fail";   // "fail", "replace", "zero"
  // The share of the dataset's samples that may be bad under "replace" and
  // "zero", 0 to 1; beyond it the job fails. Unset: any share.
  std::optional<double> max_bad = std::nullopt;
  // Rows of classes in shares: all classes that have samples evenly, or by name;
  // "*" stands for the classes without a name here. Set at most one.
  bool balanced = false;
  std::map<std::string, double> class_weights = std::map<std::string, double>();
};

// Collects operators and outputs.
class PipelineBuilder {
 public:
  PipelineBuilder();  // an empty pipeline
  ~PipelineBuilder();
  PipelineBuilder(PipelineBuilder&&) noexcept;
  PipelineBuilder& operator=(PipelineBuilder&&) noexcept;

  // Adds an operator and returns its first output (the others: the same node,
  // output 1, ...).
  PipelineValue Op(std::string name, std::vector<PipelineValue> inputs,
                   std::map<std::string, PipelineArg> args = {});
  // Adds readers.image_folder; returns the encoded image and its label.
  std::pair<PipelineValue, PipelineValue> ImageFolder(std::string path,
                                                      int64_t repeat = 1);
  // Adds a field to the batch, after the fields added before.
  PipelineBuilder& Output(std::string name, PipelineValue value);

  // Returns the JSON form of leat.v1.Graph.
  std::string GraphJson() const;
  // Returns the JSON form of leat.v1.JobSpec. CreateJob refuses a word that
  // JobOptions does not list.
  std::string SpecJson(const JobOptions& options) const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace leat
