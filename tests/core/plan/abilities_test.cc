// SPDX-License-Identifier: Apache-2.0
#include "core/plan/abilities.h"

#include <string>

#include "core/pipeline/operators.h"
#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

Graph Reads(const std::string& reader) { return {{{reader, {}, {}}}, {}}; }

TEST(Abilities, AreThoseOfTheJobsReaders) {
  JobSpec spec;
  spec.pipeline = Reads("readers.image_folder");
  EXPECT_THAT(AbilitiesFor(spec), IsEmpty());
  spec.pipeline = Reads("readers.parquet");
  EXPECT_THAT(AbilitiesFor(spec), ElementsAre("parquet"));
  EXPECT_THAT(AbilitiesFor(spec.pipeline.nodes[0]), ElementsAre("parquet"));
  spec.pipeline = {};
  spec.sources = {{"web", Reads("readers.image_folder")},
                  {"a", Reads("readers.parquet")},
                  {"b", Reads("readers.parquet")}};
  EXPECT_THAT(AbilitiesFor(spec), ElementsAre("parquet"));
  spec.sources[1].pipeline.nodes[0].op = "no.such.reader";
  spec.sources.pop_back();
  EXPECT_THAT(AbilitiesFor(spec), IsEmpty());
}

TEST(Abilities, OfOperatorsHaveValidNamesAndARemedy) {
  int found = 0;
  for (const OperatorInfo& info : AllOperators()) {
    const std::string_view ability = AbilityFor(info.name);
    if (ability.empty()) continue;
    ++found;
    EXPECT_EQ(CheckAbility(ability), absl::OkStatus()) << info.name;
    EXPECT_NE(HowToHave(ability), HowToHave("no such")) << ability;
  }
  EXPECT_EQ(found, 1) << "the table has an operator that does not exist";
}

TEST(Abilities, AreComparedAsSets) {
  const Abilities both = {"a", "b"}, one = {"b"};
  EXPECT_TRUE(HasAll(both, one));
  EXPECT_TRUE(HasAll(one, {}));
  EXPECT_FALSE(HasAll(one, both));
  EXPECT_FALSE(HasAll({}, one));
}

TEST(Abilities, HostileNamesAreRefused) {
  EXPECT_EQ(CheckAbility("own:blur@1f2e"), absl::OkStatus());
  EXPECT_EQ(CheckAbility(std::string(kMaxAbilityLength, 'a')),
            absl::OkStatus());
  for (const std::string& name :
       {std::string(), std::string(kMaxAbilityLength + 1, 'a'),
        std::string("a b"), std::string("a\n"), std::string("\0", 1),
        std::string("<b>"), std::string("\xc3\xa9")})
    EXPECT_TRUE(absl::IsInvalidArgument(CheckAbility(name))) << name;
  EXPECT_THAT(std::string(Message(CheckAbility("a b"))),
              HasSubstr("character 32 at 1"));
}

}  // namespace
}  // namespace leat
