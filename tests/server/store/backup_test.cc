// SPDX-License-Identifier: Apache-2.0
#include "server/store/backup.h"

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/pipeline/long_list.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/server/coordinator/world.h"
#include "tests/server/store/store_fixture.h"

namespace leat::server {
namespace {

using BackUpTest = StoreTest;

TEST_F(BackUpTest, HasTheBlocksOfDatasetsAndOfLongLists) {
  Open();
  World world({}, std::move(store_));
  const LongList files = *LongListOf(std::vector<std::string>(70'000, "/a"));
  const LongList labels = *LongListOf(std::vector<int64_t>(70'000, 3));
  for (const LongList* list : {&files, &labels})
    ASSERT_TRUE(world
                    ->PutBlock({list->blocks[0], list->bytes}, *list->values,
                               world.now())
                    .ok());
  JobSpec spec = SpecOf("j", "/d");
  spec.pipeline.nodes[0] = {
      "readers.files", {}, {{"files", files}, {"labels", labels}}};
  world.MakeJob(spec, world.Join("a"));
  const absl::StatusOr<BackedUp> done = BackUpState(dir_, root_ / "copy");
  ASSERT_TRUE(done.ok()) << done.status();
  EXPECT_EQ(done->datasets, 1u);
  EXPECT_EQ(done->blocks, 3u);
  EXPECT_EQ(done->block_bytes, files.bytes + labels.bytes + 5) << "\"index\"";
  EXPECT_THAT(done->without, testing::IsEmpty());
  const auto copies = FileBlocks::Open(root_ / "copy" / "blocks");
  ASSERT_TRUE(copies.ok()) << copies.status();
  for (const LongList* list : {&files, &labels})
    EXPECT_TRUE((*copies)->Check(list->blocks[0], /*again=*/true).ok());
}

}  // namespace
}  // namespace leat::server
