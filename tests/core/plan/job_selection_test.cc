// SPDX-License-Identifier: Apache-2.0
//
// Hashes and differences of selections and seeds.
#include <set>
#include <string>

#include "core/plan/job.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

JobSpec PetsSpec() {
  JobSpec spec{.name = "train"};
  spec.pipeline.nodes = {
      {"readers.image_folder", {}, {{"path", std::string("/data")}}}};
  spec.seed = 7;
  spec.batch = 12;
  return spec;
}

JobSpec PetsMixture() {
  JobSpec spec = PetsSpec();
  spec.sources = {{.name = "a", .pipeline = spec.pipeline, .selection = {}},
                  {.name = "b", .pipeline = spec.pipeline, .selection = {}}};
  spec.pipeline = {};
  spec.shares = {{0, {1, 1}}};
  spec.last_batch = LastBatch::kStream;
  return spec;
}

JobInfo PetsJob(const JobSpec& spec) {
  DatasetInfo dataset{.id = "abc",
                      .name = "data",
                      .reader = "r",
                      .shards = ShardTable::Uniform(100, 10).value()};
  dataset.content.fill(5);
  JobInfo job{.spec = spec, .datasets = {}};
  job.datasets.assign(NumSources(spec), dataset);
  job.plan_hash = PlanHash(spec, job.datasets);
  return job;
}

struct SeenHashes {
  std::set<Digest> plans, positions;
  bool AddNew(const JobSpec& spec) {
    const JobInfo job = PetsJob(spec);
    const bool new_plan = plans.insert(job.plan_hash).second;
    return positions.insert(PositionHash(job, 1)).second && new_plan;
  }
};

const Selection kBalancedPets = {.balanced = true, .shares = {}};
const Selection kPetShares = {.balanced = false,
                              .shares = {{"a", 1}, {"b", 2}}};

TEST(PlanHash, SeesSelectionsAndTheSeedOfOperators) {
  SeenHashes hashes;
  JobSpec spec = PetsSpec();
  EXPECT_TRUE(hashes.AddNew(spec));
  spec.augment_seed = 8;
  EXPECT_TRUE(hashes.AddNew(spec));
  spec.selection = kBalancedPets;
  EXPECT_TRUE(hashes.AddNew(spec));
  spec.augment_seed.reset();
  EXPECT_TRUE(hashes.AddNew(spec));
  spec.selection = kPetShares;
  EXPECT_TRUE(hashes.AddNew(spec));
  spec.selection.shares[0].share = 1.5;
  EXPECT_TRUE(hashes.AddNew(spec));
}

TEST(PlanHash, SeesTheSelectionsOfSources) {
  SeenHashes hashes;
  JobSpec spec = PetsMixture();
  EXPECT_TRUE(hashes.AddNew(spec));
  spec.sources[1].selection = kBalancedPets;
  EXPECT_TRUE(hashes.AddNew(spec));
  std::swap(spec.sources[0].selection, spec.sources[1].selection);
  EXPECT_TRUE(hashes.AddNew(spec));
  spec.augment_seed = 8;
  EXPECT_TRUE(hashes.AddNew(spec));
}

TEST(PlanHash, DoesNotSeeWhatChangesNoRow) {
  JobSpec spec = PetsSpec();
  const Digest hash = PetsJob(spec).plan_hash;
  spec.augment_seed = spec.seed;
  EXPECT_EQ(PetsJob(spec).plan_hash, hash);
  spec.selection = kPetShares;
  const Digest of_shares = PetsJob(spec).plan_hash;
  std::swap(spec.selection.shares[0], spec.selection.shares[1]);
  EXPECT_EQ(PetsJob(spec).plan_hash, of_shares);
}

TEST(Difference, ShowsSelectionsAndSeeds) {
  JobSpec other = PetsSpec();
  other.selection = kBalancedPets;
  EXPECT_EQ(Difference(PetsSpec(), other),
            "selection \"all samples\" != \"balanced\"");
  JobSpec shares = PetsSpec();
  shares.selection = kPetShares;
  EXPECT_EQ(Difference(other, shares), "selection \"balanced\" != \"a=1 b=2\"");
  std::swap(shares.selection.shares[0], shares.selection.shares[1]);
  other.selection = kPetShares;
  EXPECT_EQ(Difference(other, shares), "");
  other = PetsSpec();
  other.augment_seed = 8;
  EXPECT_EQ(Difference(PetsSpec(), other), "augment_seed 7 != 8");
  other.augment_seed = 7;
  EXPECT_EQ(Difference(PetsSpec(), other), "");
  JobSpec mixture = PetsMixture();
  mixture.sources[1].selection = kBalancedPets;
  EXPECT_EQ(Difference(PetsMixture(), mixture),
            "source \"b\": selection \"all samples\" != \"balanced\"");
}

}  // namespace
}  // namespace leat
