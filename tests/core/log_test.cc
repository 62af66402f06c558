// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <thread>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat {
namespace {

using ::testing::HasSubstr;
using ::testing::MatchesRegex;

constexpr auto kInfo = spdlog::level::info;

// Returns the text that `write` writes to stderr.
template <class Function>
std::string Logged(LogFormat format, Function write) {
  testing::internal::CaptureStderr();
  InitLog("leat-test", format, kInfo);
  write();
  return testing::internal::GetCapturedStderr();
}

TEST(Log, WritesOneLineOfTextAnEvent) {
  const std::string text = Logged(LogFormat::kText, [] {
    LOG_INFO("job.created job={} samples={}", "a", 5);
  });
  EXPECT_THAT(text,
              MatchesRegex("[0-9-]+T[0-9:]+\\.[0-9][0-9][0-9]Z info  leat-test "
                           "job.created job=a samples=5\n"));
}

TEST(Log, WritesOneJsonObjectAnEvent) {
  const std::string text =
      Logged(LogFormat::kJson, [] { LOG_WARN("path={}", "a\"b\\\n\xff"); });
  EXPECT_THAT(text,
              MatchesRegex("\\{\"time\":\"[0-9-]+T[0-9:.]+Z\",\"level\":"
                           "\"warn\",\"program\":\"leat-test\",\"thread\":"
                           "[0-9]+,\"message\":.*\\}\n"));
  EXPECT_THAT(text, HasSubstr(R"("message":"path=a\"b\\\n\ufffd"})"));
}

TEST(Log, HasTheFieldsOfAnEventAsKeysInJson) {
  const auto fields = [](const std::string& message) {
    const std::string text =
        Logged(LogFormat::kJson, [&] { LOG_WARN("{}", message); });
    const size_t begin = text.find(",\"event\":");
    if (begin == text.npos) return std::string();
    return text.substr(begin + 1, text.rfind(",\"message\":") - begin - 1);
  };
  EXPECT_EQ(
      fields("worker.left worker=node1 session=1"),
      R"("event":"worker.left","fields":{"worker":"node1","session":"1"})");
  EXPECT_EQ(fields("a.b"), R"("event":"a.b","fields":{})");
  EXPECT_EQ(fields(R"(a.b e="no "x" here: y = z" k= path=/a b/c n=2)"),
            R"("event":"a.b","fields":{"e":"no \"x\" here: y = z","k":"",)"
            R"("path":"/a b/c","n":"2"})");
  // Text in a value cannot replace another key.
  EXPECT_EQ(fields(R"(a.b job=x e="y" job="z")"),
            R"("event":"a.b","fields":{"job":"x","e":"y"})");
  EXPECT_EQ(fields("a.b some words k=v \"= ="),
            R"("event":"a.b","fields":{"k":"v \"= ="})");
  for (const char* other : {"", "no event k=v", "A.b k=v", "path=x", "a..\xff"})
    EXPECT_EQ(fields(other), "") << other;
}

TEST(Log, AQuotedValueEndsWhereTheFormatSays) {
  const std::string hostile = R"(no "x": ask a" job="b" \)";
  const auto write = [&] {
    LOG_WARN("a.b n={} e=\"{}\" note=\"{{}} {:>2}\" path={}", 1, hostile, "c",
             "\"d\"");
  };
  EXPECT_THAT(
      Logged(LogFormat::kText, write),
      HasSubstr(
          R"(a.b n=1 e="no \"x\": ask a\" job=\"b\" \\" note="{}  c" path="d")"));
  EXPECT_THAT(
      Logged(LogFormat::kJson, write),
      HasSubstr(R"("fields":{"n":"1","e":"no \"x\": ask a\" job=\"b\" \\",)"
                R"("note":"{}  c","path":"d"})"));
}

TEST(Log, CannotBeForgedByNewlinesOrEscapes) {
  const std::string text = Logged(LogFormat::kText, [] {
    LOG_ERROR("path={}", "a\nb\x1b[31m\r\x7f\u009b2J\u202ec\xff");
  });
  EXPECT_THAT(text,
              HasSubstr("path=a\\nb\\x1b[31m\\r\\x7f\\x9b2J\\u202ec\\xff\n"));
}

TEST(Log, BoundsALine) {
  const std::string text = Logged(
      LogFormat::kText, [] { LOG_ERROR("{}", std::string(1 << 20, 'x')); });
  EXPECT_LT(text.size(), 17u << 10);
  EXPECT_TRUE(text.ends_with("x\n"));
}

TEST(Log, LevelChangesAtRunTime) {
  const std::string text = Logged(LogFormat::kText, [] {
    LOG_DEBUG("one");
    EXPECT_TRUE(SetLogLevel("debug").ok());
    EXPECT_EQ(LogLevel(), "debug");
    LOG_DEBUG("two");
    EXPECT_TRUE(SetLogLevel("error").ok());
    LOG_WARN("three");
    LOG_ERROR("four");
  });
  EXPECT_THAT(text, Not(HasSubstr("one")));
  EXPECT_THAT(text, HasSubstr("debug leat-test two\n"));
  EXPECT_THAT(text, Not(HasSubstr("three")));
  EXPECT_THAT(text, HasSubstr("error leat-test four\n"));
}

TEST(Log, EveryLevelHasItsName) {
  for (std::string_view level : {"trace", "debug", "info", "warn", "error"}) {
    EXPECT_TRUE(SetLogLevel(level).ok());
    EXPECT_EQ(LogLevel(), level);
  }
}

TEST(Log, UnknownLevelIsAnErrorAndChangesNothing) {
  ASSERT_TRUE(SetLogLevel("warn").ok());
  const absl::Status status = SetLogLevel("loud");
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_EQ(Message(status),
            "log level \"loud\": want trace, debug, info, warn or error");
  EXPECT_EQ(LogLevel(), "warn");
}

TEST(Log, ArgumentsOfAnEventThatIsOffAreNotEvaluated) {
  ASSERT_TRUE(SetLogLevel("error").ok());
  int evaluated = 0;
  LOG_INFO("{}", ++evaluated);
  EXPECT_EQ(evaluated, 0);
}

TEST(Log, LinesOfThreadsDoNotMix) {
  const std::string text = Logged(LogFormat::kText, [] {
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([] {
        for (int i = 0; i < 50; ++i) {
          LOG_INFO("{}", std::string(100, 'x'));
          (void)SetLogLevel(i % 2 == 0 ? "info" : "debug");
        }
      });
    for (std::thread& thread : threads) thread.join();
  });
  const std::string want = "leat-test " + std::string(100, 'x') + "\n";
  int lines = 0;
  for (size_t at = 0; (at = text.find(want, at)) != std::string::npos; ++at)
    ++lines;
  EXPECT_EQ(lines, 200);
}

}  // namespace
}  // namespace leat
