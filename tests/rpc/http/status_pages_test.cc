// SPDX-License-Identifier: Apache-2.0
//
// Tests a daemon's pages, which callers may read them, and metrics as text.
#include "rpc/http/status_pages.h"

#include <memory>
#include <string>
#include <vector>

#include "core/status.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/v1/types.pb.h"
#include "rpc/http/metric_page.h"
#include "rpc/http/status_server.h"

namespace leat::rpc {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

TEST(Host, IsAnAddressOrOnesOwnNameOnLoopback) {
  for (const char* own : {"127.0.0.1:7412", "localhost:7412", "[::1]:7412"}) {
    for (const char* good : {"localhost", "LOCALHOST:1", "127.0.0.1:80",
                             "10.1.2.3", "[::1]", "[fe80::1]:443"})
      EXPECT_TRUE(IsHostOf(good, own)) << good << " at " << own;
    for (const char* bad :
         {"", "evil.example", "evil.example:7412", "127.0.0.1.evil.example",
          "localhost.evil.example", "localhost:x", "[::1", "[::1]x",
          "local host", "a@localhost", "localhost/x", "1.2.3.4:80:80"})
      EXPECT_FALSE(IsHostOf(bad, own)) << bad << " at " << own;
  }
}

TEST(Host, IsAnyNameWhereCallersShowMore) {
  EXPECT_TRUE(IsHostOf("leat.cluster.example:7412", "0.0.0.0:7412"));
  EXPECT_TRUE(IsHostOf("node-7", "node-7.example:7412"));
  EXPECT_FALSE(IsHostOf("node 7", "0.0.0.0:7412"));
  EXPECT_FALSE(IsHostOf(std::string(300, 'a'), "0.0.0.0:7412"));
}

TEST(BearerToken, IsWhatFollowsTheScheme) {
  EXPECT_EQ(BearerToken("Bearer abc"), "abc");
  EXPECT_EQ(BearerToken("bearer   abc "), "abc");
  for (const char* none : {"", "Bearer", "Bearer ", "Basic abc", "abc"})
    EXPECT_EQ(BearerToken(none), "") << none;
}

TEST(HttpAddress, APortMeansLoopback) {
  EXPECT_EQ(HttpAddress("7412").value(), "127.0.0.1:7412");
  EXPECT_EQ(HttpAddress("[::]:7412").value(), "[::]:7412");
  for (const char* bad : {"", "host", "host:", ":80", "unix:/tmp/x", "h:80x"})
    EXPECT_EQ(HttpAddress(bad).status().code(),
              absl::StatusCode::kInvalidArgument)
        << bad;
}

struct Fixture {
  FakeClock clock;
  absl::Status ready, admitted;
  int made = 0;
  std::string token;
  StatusPages pages{
      {.ready = [this] { return ready; },
       .metrics = [this] { return fmt::format("made {}\n", ++made); },
       .admit =
           [this](std::string_view shown) {
             token = shown;
             return admitted;
           }},
      &clock};
};

TEST(StatusPages, ACallerWithoutTheCertificateSeesWhetherItLivesAlone) {
  Fixture f;
  for (const char* page : {"/livez", "/readyz"})
    EXPECT_EQ(f.pages.Answer({.path = page, .certified = false}).status, 200u);
  const HttpResponse refused =
      f.pages.Answer({.path = "/metrics", .token = "t", .certified = false});
  EXPECT_EQ(refused.status, 401u);
  EXPECT_THAT(*refused.body, HasSubstr("--tls-ca"));
  EXPECT_EQ(f.made, 0);
}

TEST(StatusPages, SayWhetherTheDaemonCanWork) {
  Fixture f;
  EXPECT_EQ(f.pages.Answer({.path = "/readyz"}).status, 200u);
  f.ready = Unavailable("the disk hangs");
  const HttpResponse unready = f.pages.Answer({.path = "/readyz"});
  EXPECT_EQ(unready.status, 503u);
  EXPECT_EQ(*unready.body, "the disk hangs\n");
  EXPECT_EQ(f.pages.Answer({.path = "/livez"}).status, 200u);
  EXPECT_EQ(f.pages.Answer({.path = "/"}).status, 404u);
  EXPECT_EQ(f.pages.Answer({.path = "/metrics/"}).status, 404u);
}

TEST(StatusPages, AskForATokenBeforeTheyShowMetrics) {
  Fixture f;
  const HttpRequest request = {.path = "/metrics", .token = "abc"};
  EXPECT_EQ(f.pages.Answer(request).status, 200u);
  EXPECT_EQ(f.token, "abc");
  const std::pair<absl::Status, unsigned> refusals[] = {
      {Unauthenticated("no access token"), 401},
      {PermissionDenied("for role viewer"), 403},
      {Unavailable("not told yet"), 503},
      {Internal("no rule"), 500}};
  for (const auto& [why, status] : refusals) {
    f.admitted = why;
    const HttpResponse refused = f.pages.Answer(request);
    EXPECT_EQ(refused.status, status);
    EXPECT_THAT(*refused.body, Not(HasSubstr("made")));
  }
  EXPECT_EQ(f.pages.Answer({.path = "/livez"}).status, 200u);
}

TEST(StatusPages, MakeMetricsOnceASecond) {
  Fixture f;
  const auto page = [&f] { return *f.pages.Answer({.path = "/metrics"}).body; };
  EXPECT_EQ(page(), "made 1\n");
  f.clock.Advance(std::chrono::milliseconds(999));
  EXPECT_EQ(page(), "made 1\n");
  f.clock.Advance(std::chrono::milliseconds(1));
  EXPECT_EQ(page(), "made 2\n");
}

TEST(Access, KnowsTokensOfCallersWithoutMetadata) {
  FakeClock clock;
  Access open({}, &clock);
  EXPECT_EQ(open.AdmitToken(kMetricsRule, "").value().identity, "anonymous");
  // The caller of a page has no certificate for the rules to check.
  Access by_names({.san_roles = {{"*.example.org", Role::kViewer}}}, &clock);
  EXPECT_EQ(by_names.AdmitToken(kMetricsRule, "").status().code(),
            absl::StatusCode::kUnauthenticated);
  Access access({.token = "own-token-of-16-characters"}, &clock);
  EXPECT_EQ(access.AdmitToken(kMetricsRule, "own-token-of-16-characters")
                .value()
                .identity,
            "own");
  for (const char* wrong : {"", "own-token-of-16-characterz", "other"})
    EXPECT_EQ(access.AdmitToken(kMetricsRule, wrong).status().code(),
              absl::StatusCode::kUnauthenticated)
        << wrong;
  const std::string text =
      TokenText(std::vector<uint8_t>(kTokenRandomBytes, 7));
  EXPECT_EQ(access.AdmitToken(kMetricsRule, text).status().code(),
            absl::StatusCode::kUnavailable);
  for (const auto& [role, code] :
       {std::pair(Role::kViewer, absl::StatusCode::kOk),
        std::pair(Role::kTrainer, absl::StatusCode::kOk),
        std::pair(Role::kWorker, absl::StatusCode::kPermissionDenied)}) {
    auto tokens = std::make_shared<AccessTokens>();
    tokens->tokens.push_back({.id = std::string(TokenId(text)),
                              .name = "n",
                              .role = role,
                              .sha256 = HashOf(text)});
    access.Replace(tokens);
    EXPECT_EQ(access.AdmitToken(kMetricsRule, text).status().code(), code)
        << Name(role);
  }
}

// Tests of metrics.

constexpr FieldMetric kFields[] = {
    {"rows_total", "leat_rows_total", MetricKind::kCounter, "Rows."},
    {"cache_hits_total", "leat_hits_total", MetricKind::kCounter, "Hits.",
     "cache", "memory"},
    {"disk_cache_hits_total", "leat_hits_total", MetricKind::kCounter, "Hits.",
     "cache", "disk"},
    {.field = "busy_fraction", .help = "shown elsewhere"},
    {"row_latency", "leat_row_seconds", MetricKind::kHistogram, "Times."},
};

TEST(MetricPage, IsTheTextOfAMessagesFields) {
  v1::WorkerStats stats;
  stats.set_rows_total(7);
  stats.set_cache_hits_total(3);
  stats.set_busy_fraction(0.5);
  MetricPage page;
  page.Add(kFields, stats, {{"job", "a \"b\"\n\\c"}});
  EXPECT_EQ(page.Text(),
            "# HELP leat_hits_total Hits.\n"
            "# TYPE leat_hits_total counter\n"
            "leat_hits_total{job=\"a \\\"b\\\"\\n\\\\c\",cache=\"disk\"} 0\n"
            "leat_hits_total{job=\"a \\\"b\\\"\\n\\\\c\",cache=\"memory\"} 3\n"
            "# HELP leat_rows_total Rows.\n"
            "# TYPE leat_rows_total counter\n"
            "leat_rows_total{job=\"a \\\"b\\\"\\n\\\\c\"} 7\n");
}

TEST(MetricPage, FoldsMessagesWithTheSameLabels) {
  const Metric sum = {"leat_a", MetricKind::kGauge, "A."};
  const Metric most = {"leat_b", MetricKind::kGauge, "B."};
  MetricPage page;
  for (const double value : {0.25, 1.5, 0.5}) {
    page.Add(sum, {}, value);
    page.Add(most, {}, value, Fold::kMost);
  }
  EXPECT_THAT(page.Text(), HasSubstr("leat_a 2.25\n"));
  EXPECT_THAT(page.Text(), HasSubstr("leat_b 1.5\n"));
}

TEST(MetricPage, NamesWhatHasNoSeries) {
  MetricPage page;
  page.Declare(kFields);
  EXPECT_EQ(page.Text(),
            "# HELP leat_hits_total Hits.\n"
            "# TYPE leat_hits_total counter\n"
            "# HELP leat_row_seconds Times.\n"
            "# TYPE leat_row_seconds histogram\n"
            "# HELP leat_rows_total Rows.\n"
            "# TYPE leat_rows_total counter\n");
}

TEST(MetricPage, WritesHistograms) {
  MetricPage page;
  page.AddHistogram({"leat_s_seconds", MetricKind::kHistogram, "S."}, {},
                    {{0.5, 2}, {1, 3}}, 4, 7.5);
  const std::string text = page.Text();
  for (const char* line :
       {"leat_s_seconds_count 4\n", "leat_s_seconds_sum 7.5\n",
        "leat_s_seconds_bucket{le=\"0.5\"} 2\n",
        "leat_s_seconds_bucket{le=\"1\"} 3\n",
        "leat_s_seconds_bucket{le=\"+Inf\"} 4\n"})
    EXPECT_THAT(text, HasSubstr(line));
}

TEST(MetricPage, CutsLongLabelsBetweenCharacters) {
  MetricPage page;
  page.Add({"leat_a", MetricKind::kGauge, "A."},
           {{"job", std::string(127, 'x') + "\xc3\xa9" + "rest"}}, 1);
  EXPECT_THAT(page.Text(), HasSubstr(std::string(127, 'x') + "\"}"));
}

}  // namespace
}  // namespace leat::rpc
