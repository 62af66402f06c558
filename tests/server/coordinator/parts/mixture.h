// SPDX-License-Identifier: Apache-2.0
//
// Mixtures of datasets that scripted workers list.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/coordinator/world.h"

namespace leat::server {

// A mixture with a source for each name, whose dataset is "/NAME". All have one
// share.
inline JobSpec MixtureOf(const std::string& name,
                         const std::vector<std::string>& sources) {
  JobSpec spec = SpecOf(name, "/");
  spec.pipeline = {};
  spec.last_batch = LastBatch::kStream;
  for (const std::string& source : sources)
    spec.sources.push_back({source, SpecOf(name, "/" + source).pipeline});
  spec.shares = {{0, std::vector<double>(sources.size(), 1)}};
  return spec;
}

// Returns the path that a worker is to list.
inline std::string PathOf(const IndexDirective& asked) {
  return std::get<std::string>(asked.reader.args.at("path"));
}

// Takes the listings that a worker is asked for, by path.
inline std::map<std::string, IndexDirective> AllAsked(World& world,
                                                      SessionId session) {
  std::map<std::string, IndexDirective> asked;
  for (const WorkerMessage& message : world.Take(session))
    if (const auto* directive = std::get_if<IndexDirective>(&message))
      asked[PathOf(*directive)] = *directive;
  return asked;
}

// Answers with a dataset of `samples` samples, whose name is the last part of
// its path. `version` tells its listings apart.
inline void List(World& world, const IndexDirective& asked,
                 uint64_t samples = 1000, const std::string& version = "1") {
  const std::string index = "index of " + PathOf(asked) + " " + version;
  IndexHeader header = HeaderFor(asked, index, samples);
  header.name = PathOf(asked).substr(1);
  header.fingerprint = HashOf(index);
  SetBlocks({BlockOf(index)}, &header);
  const std::string look = "look at " + index;
  header.look = BlockOf(look);
  ASSERT_TRUE(world->PutBlock(*header.look, look, world.now()).ok());
  ASSERT_TRUE(world.Upload(header, index).ok());
}

// Creates the job; `session`'s worker lists all that it is asked for.
inline std::shared_ptr<const JobInfo> MakeMixture(World& world,
                                                  const JobSpec& spec,
                                                  SessionId session) {
  const World::Box box = world.Create(spec);
  for (auto asked = AllAsked(world, session); !asked.empty();
       asked = AllAsked(world, session))
    for (const auto& [path, directive] : asked) List(world, directive);
  EXPECT_EQ(Code(box), absl::StatusCode::kOk) << Text(box);
  return Code(box) == absl::StatusCode::kOk ? (**box)->info : nullptr;
}

// Returns the names of the job's datasets, in the order of its sources.
inline std::vector<std::string> DatasetNames(const JobInfo& job) {
  std::vector<std::string> names;
  for (const DatasetInfo& dataset : job.datasets) names.push_back(dataset.name);
  return names;
}

}  // namespace leat::server
