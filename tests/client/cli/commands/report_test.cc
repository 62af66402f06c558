// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/report.h"

#include <filesystem>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST(Report, HoldsEveryPartInOneFile) {
  Shell shell;
  shell.service.watched = {{{EventsJson(1, 2)}, {}}};
  shell.service.findings =
      R"([{"code": "WORKER_LOST", "severity": "warn", "summary": "node2"}])";
  ASSERT_EQ(shell.Run({"report", "-o", "-"}), 0) << shell.err;
  for (const char* part :
       {"WARN WORKER_LOST: node2", "node1", "resnet50", "trainer0-77",
        "the decode threads are busy", "worker node2 sends no heartbeat",
        "DESCRIPTORS", "Change: add workers", "2026-11-21T02:00:00Z"})
    EXPECT_THAT(shell.out, HasSubstr(part));
  EXPECT_THAT(shell.out, Not(HasSubstr("<script")));
  EXPECT_THAT(shell.out, Not(HasSubstr("src=")));
  EXPECT_THAT(shell.out, Not(HasSubstr("href=")));
  EXPECT_THAT(shell.out, Not(HasSubstr("\x1b")));
  EXPECT_TRUE(shell.out.starts_with("<!doctype html>"));
  EXPECT_TRUE(shell.out.ends_with("</html>\n"));
}

TEST(Report, ShowsTimesOfEventsToMilliseconds) {
  Shell shell;
  std::string events = EventsJson(1, 1);
  events.replace(events.find(".250Z"), 5, ".250123456Z");
  shell.service.watched = {{{events}, {}}};
  ASSERT_EQ(shell.Run({"report", "-o", "-"}), 0) << shell.err;
  EXPECT_THAT(shell.out, HasSubstr("01:59:01.250Z"));
  EXPECT_THAT(shell.out, Not(HasSubstr(".250123")));
}

TEST(Report, IsWrittenWhereItIsWanted) {
  const std::string path =
      std::filesystem::path(testing::TempDir()) / "leat-report.html";
  Shell shell;
  ASSERT_EQ(shell.Run({"report", "-o", path}), 0) << shell.err;
  EXPECT_THAT(shell.err, HasSubstr("holds no tokens"));
  EXPECT_THAT(shell.out, IsEmpty());
  EXPECT_GT(std::filesystem::file_size(path), 1000u);
  std::filesystem::remove(path);
  EXPECT_EQ(shell.Run({"report", "-o", "/no/such/folder/r.html"}), 1);
  shell.service.connect = Unavailable("nobody");
  EXPECT_EQ(shell.Run({"report", "-o", path}), 4);
  EXPECT_FALSE(std::filesystem::exists(path));
}

TEST(Report, TextsOfTheServiceAreNoMarkup) {
  View view;
  Section section;
  section.title = "<b>\"'&";
  section.facts = {{"<i>", {"<script>alert(1)</script>"}}};
  section.lines = {{"</p>\x1b[2J"}};
  section.table = {{{"<td>"}}, {{{"\" onload=\"x"}}}};
  view.sections = {section};
  const std::string html = ReportHtml("<h>", {{"<t>", view}});
  EXPECT_THAT(html, HasSubstr("&lt;b&gt;&quot;&#39;&amp;"));
  EXPECT_THAT(html, HasSubstr("&lt;script&gt;alert(1)&lt;/script&gt;"));
  EXPECT_THAT(html, HasSubstr("&quot; onload=&quot;x"));
  EXPECT_THAT(html, HasSubstr("&lt;/p&gt;\\x1b[2J"));
  EXPECT_THAT(html, Not(HasSubstr("<script")));
  EXPECT_THAT(html, HasSubstr("&lt;t&gt;"));
}

// Otherwise a table would be wider than a page.
TEST(Report, WhatOnlyWideTerminalsShowStandsBelowItsRow) {
  View view;
  Section section;
  section.table.columns = {
      {"NAME"}, {"RATE", 0, false, true}, {"PID", 0, true}, {"TEXT"}};
  section.table.rows.push_back(
      {{"node-2"}, {"7"}, {"1 < 2"}, {std::string(50, 'x')}});
  view.sections = {section};
  const std::string html = ReportHtml("", {{"t", view}});
  EXPECT_THAT(html, HasSubstr("<th>NAME</th><th class=\"right\">RATE</th>"
                              "<th>TEXT</th></tr>"));
  EXPECT_THAT(html, HasSubstr("<td>node-2</td><td class=\"right\">7</td>"
                              "<td class=\"long\">xxx"));
  EXPECT_THAT(html, HasSubstr("<tr><td class=\"more dim\" colspan=\"3\">"
                              "<span>PID: 1 &lt; 2</span>"));
}

TEST(Report, LongTablesAreCutAndSayIt) {
  View view;
  Section section;
  section.table.columns = {{"N"}};
  for (int i = 0; i < 5000; ++i)
    section.table.rows.push_back({std::to_string(i)});
  view.sections = {section};
  const std::string html = ReportHtml("", {{"t", view}});
  EXPECT_THAT(html, HasSubstr("The first 2000 of 5000 rows."));
  EXPECT_THAT(html, Not(HasSubstr(">2000<")));
}

TEST(Report, AddressesLoseTheirSecrets) {
  View view;
  view.note =
      "of \"https://u:secret-1@h/x?sig=secret-2\" and s3://k:secret-3@b/k";
  const std::string html = ReportHtml("", {{"t", view}});
  EXPECT_THAT(html, HasSubstr("https://h/x"));
  EXPECT_THAT(html, Not(HasSubstr("secret-")));
}

}  // namespace
}  // namespace leat::cli
