// SPDX-License-Identifier: Apache-2.0
//
// The scenes of leat_scene: which workers and trainings there are, from when
// until when, and their load.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "leat/v1/types.pb.h"
#include "tests/server/coordinator/world.h"

namespace leat::server {

// The work of a stage's places, summed.
struct Did {
  double items = 0, busy = 0, input = 0, output = 0, idle = 0;

  // Adds `seconds` of `places`, by shares.
  void Add(double seconds, double places, double busy_share,
           double input_share = 0, double output_share = 0) {
    busy += seconds * places * busy_share;
    input += seconds * places * input_share;
    output += seconds * places * output_share;
    idle += seconds * places *
            std::max(0.0, 1 - busy_share - input_share - output_share);
  }
  v1::StageStats* Tell(
      v1::Stage stage, uint32_t places,
      google::protobuf::RepeatedPtrField<v1::StageStats>* to) const {
    const auto ns = [](double s) { return static_cast<uint64_t>(s * 1e9); };
    v1::StageStats* const stats = to->Add();
    stats->set_stage(stage);
    stats->set_places(places);
    stats->set_items_total(static_cast<uint64_t>(items));
    stats->set_busy_ns_total(ns(busy));
    stats->set_input_ns_total(ns(input));
    stats->set_output_ns_total(ns(output));
    stats->set_idle_ns_total(ns(idle));
    return stats;
  }
};

struct Worker {
  std::string name, host = "rack-1";
  uint32_t threads = 8;
  double speed = 1;  // speed of its threads
  bool has_gpu = false;
  int from = 0, until = 1 << 30;  // seconds
  SessionId session = 0;
  double rows = 0, requests = 0, hits = 0, misses = 0;
  Did open, read, decode, augment, device, send;

  bool IsAt(int second) const { return second >= from && second < until; }
  double Capacity() const { return (has_gpu ? 330 : 55) * threads * speed; }
};

struct Trainer {
  std::string name, host;
  SessionId session = 0;
  double rows = 0, steps = 0;
  Did receive, train;
};

struct Training {
  JobSpec spec;
  double wants = 1200;  // rows/s of each trainer
  int from = 0, until = 1 << 30;
  uint64_t samples = 1'281'167;
  std::vector<Trainer> trainers;
  std::string dataset = {};
  std::string fails = {};  // why listing its dataset fails
  bool begun = false;
  std::shared_ptr<const JobInfo> info = nullptr;  // null: it has no job

  bool IsAt(int second) const { return second >= from && second < until; }
};

struct Plan {
  int seconds = 0;
  std::vector<Worker> workers;
  std::vector<Training> trainings;
  int slow_from = 0, slow_until = 0;  // storage
  std::string drained;                // a worker
};

inline std::vector<Worker> Nodes(size_t count,
                                 const std::string& prefix = "node-") {
  std::vector<Worker> nodes;
  for (size_t i = 0; i < count; ++i)
    nodes.push_back({.name = fmt::format("{}{:02}", prefix, i + 1),
                     .host = fmt::format("rack-{}", i / 8 + 1),
                     .speed = 0.95 + 0.02 * static_cast<double>(i % 5)});
  return nodes;
}

inline Training TrainingOf(const std::string& name, size_t trainers,
                           double wants,
                           const std::string& path = "/data/imagenet/train",
                           const std::string& host = "gpu-") {
  Training training{.spec = SpecOf(name, path, 256), .wants = wants};
  training.dataset = path.substr(path.find('/', 1) + 1);
  for (size_t i = 0; i < trainers; ++i)
    training.trainers.push_back(
        {.name = fmt::format("{}{}/{}", host, i / 4 + 1, 4000 + i),
         .host = fmt::format("{}{}", host, i / 4 + 1)});
  return training;
}

// A training that four workers are too few for, and six are enough.
inline Plan Hour(int at) {
  Plan plan{.seconds = at, .workers = Nodes(6)};
  plan.workers[4].from = plan.workers[5].from = 23 * 60;
  plan.trainings = {TrainingOf("resnet50", 4, 590)};
  plan.trainings[0].from = 8;
  plan.slow_from = 41 * 60;
  plan.slow_until = 45 * 60;
  return plan;
}

inline Plan Many() {
  Plan plan{.seconds = 900, .workers = Nodes(40)};
  for (size_t i = 0; i < plan.workers.size(); ++i) {
    plan.workers[i].has_gpu = i % 5 == 4;
    if (i == 17) plan.workers[i].speed = 0.4;
    if (i == 22) plan.workers[i].speed = 0.7;
  }
  const char* const names[] = {"bert.images",  "clip-b32",       "clip-l14",
                               "convnext",     "detr",           "dinov2",
                               "mae.pretrain", "resnet50",       "sam-finetune",
                               "swin-t",       "vit-l.pretrain", "yolo"};
  for (size_t i = 0; i < std::size(names); ++i) {
    plan.trainings.push_back(
        TrainingOf(names[i], i % 4 == 3 ? 8 : 2, 1000,
                   fmt::format("/data/set-{}", i % 3 + 1),
                   fmt::format("gpu{}-", static_cast<char>('a' + i))));
    plan.trainings.back().from = 20 * static_cast<int>(i);
    if (i == 4 || i == 9) plan.trainings.back().until = 400;
  }
  return plan;
}

inline Plan Failed() {
  Plan plan{.seconds = 120, .workers = Nodes(3)};
  plan.trainings = {
      TrainingOf("resnet50", 2, 500),
      TrainingOf("vit-l.pretrain", 2, 100, "/data/laion", "h100-")};
  plan.trainings[1].spec.on_bad_sample = BadSamplePolicy::kReplace;
  plan.trainings[1].spec.max_bad = 0.00001;
  for (const char* const path : {"/data/imagenet21k/train", "/mnt/coco"}) {
    Training training = TrainingOf("lost", 0, 0, path);
    training.spec.name += std::to_string(plan.trainings.size());
    training.fails = fmt::format("{}: No such file or directory", path);
    training.from = 30;
    plan.trainings.push_back(training);
  }
  return plan;
}

inline Plan Lost() {
  Plan plan = Hour(12 * 60);
  plan.workers[1].until = 9 * 60;
  plan.workers[2].until = 11 * 60;
  plan.workers[4].from = plan.workers[5].from = 60;
  plan.drained = plan.workers[5].name;
  return plan;
}

inline Plan Names() {
  const std::string host =
      "ip-10-180-224-117.eu-central-1.compute.internal.training.example.com";
  Plan plan{.seconds = 200,
            .workers = Nodes(5, "leat-worker-pool-large-memory-" + host + "-")};
  for (Worker& each : plan.workers) each.host = host;
  plan.trainings = {
      TrainingOf("vision.pretraining.vit_huge_patch14_dinov2_lvd142m.in22k_ft_"
                 "in1k.batch4096.lr3e-4.seed1234.attempt-0017",
                 5, 500,
                 "s3://research-datasets-eu-central-1/very/long/prefix/of/a/"
                 "dataset/with-a-name-that-does-not-end/v2026.03/train",
                 host + "-"),
      TrainingOf("short", 1, 400, "/data/coco")};
  return plan;
}

inline std::optional<Plan> PlanOf(const std::string& name) {
  if (name == "none") return Plan{.seconds = 20};
  if (name == "start") return Hour(48);
  if (name == "hour") return Hour(55 * 60);
  if (name == "lost") return Lost();
  if (name == "failed") return Failed();
  if (name == "many") return Many();
  if (name == "names") return Names();
  return std::nullopt;
}

}  // namespace leat::server
