// SPDX-License-Identifier: Apache-2.0
#include "client/cli/views/bottleneck.h"

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Not;

TEST(Bottleneck, SaysTheVerdictItsFiguresAndWhatToChange) {
  Shell shell;
  ASSERT_EQ(shell.Run({"bottleneck", "resnet50", "--since", "5m"}), 0);
  EXPECT_THAT(shell.service.calls, ElementsAre("bottleneck resnet50 5m"));
  EXPECT_THAT(shell.out, HasSubstr("Limited by  decode and augment\n"));
  EXPECT_THAT(shell.out,
              HasSubstr("  the trainer waits for batches: 41.5 % of its time\n"
                        "  decode threads decode and augment: 93.0 % of their "
                        "time\n"));
  EXPECT_THAT(shell.out, HasSubstr("Change: add workers, or threads"));
  EXPECT_THAT(shell.out, HasSubstr("Seen: 58s of 2 workers and 1 consumer\n"));
  EXPECT_THAT(shell.out, Not(HasSubstr("About")));
}

TEST(Bottleneck, NamesWhoItIsAbout) {
  const View view =
      BottleneckView(Json{{"limit", "straggler"}, {"subject", "node7"}});
  ASSERT_EQ(view.sections[0].facts.size(), 3u);
  EXPECT_EQ(view.sections[0].facts[1].second.text, "one straggler");
  EXPECT_EQ(view.sections[0].facts[2].second.text, "node7");
  EXPECT_THAT(view.names, ElementsAre("straggler"));
}

TEST(Bottleneck, StandsInListsWithItsAge) {
  EXPECT_EQ(LimitText(Json{{"limited_by", "not known yet"},
                           {"limited_by_seen", "6s"}}),
            "not known yet (6 s)");
  EXPECT_EQ(LimitText(Json{{"limited_by", "trainer"}}), "trainer");
  EXPECT_EQ(LimitText(Json{{"limited_by", ""}}), "");
  Shell shell;
  ASSERT_EQ(shell.Run({"get", "jobs"}), 0);
  EXPECT_THAT(shell.out, HasSubstr("decode and augment (58 s)"));
  const View view = BottleneckView(Json{{"limit", "unknown"}, {"seen", "6s"}});
  EXPECT_EQ(view.sections[0].facts[1].second.text, "not known yet");
}

TEST(Bottleneck, AsksForAMinuteUnlessToldOtherwise) {
  Shell shell;
  EXPECT_EQ(shell.Run({"bottleneck", "resnet50"}), 0);
  EXPECT_THAT(shell.service.calls, ElementsAre("bottleneck resnet50 1m"));
}

TEST(Bottleneck, AJobMayStandBehindItsKind) {
  Shell shell;
  EXPECT_EQ(shell.Run({"bottleneck", "job/resnet50"}), 0);
  EXPECT_THAT(shell.service.calls, ElementsAre("bottleneck resnet50 1m"));
  EXPECT_EQ(shell.Run({"bottleneck", "worker/resnet50"}), 3);
}

TEST(Bottleneck, WrongUseAndAnUnknownJobAreErrors) {
  Shell shell;
  EXPECT_EQ(shell.Run({"bottleneck", "resnet50", "--since", "soon"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("--since \"soon\": want a time"));
  EXPECT_EQ(shell.Run({"bottleneck", "resnet50", "--since", "99h"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("500ms or 2m, at most 24h"));
  EXPECT_EQ(shell.Run({"bottleneck", "resnet51"}), 3);
  EXPECT_THAT(shell.err, HasSubstr("resnet50"));
}

}  // namespace
}  // namespace leat::cli
