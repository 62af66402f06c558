// SPDX-License-Identifier: Apache-2.0
#include "client/cli/diagnostics/diagnostics.h"

#include <filesystem>
#include <map>

#include "client/cli/diagnostics/probes.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::map<std::string, Diagnosis> ByCode(
    const std::vector<Diagnosis>& diagnoses) {
  std::map<std::string, Diagnosis> by_code;
  for (const Diagnosis& each : diagnoses) by_code[each.code] = each;
  return by_code;
}

LocalFacts Sound() {
  LocalFacts facts;
  facts.descriptors = 65'536;
  facts.shm_free_bytes = uint64_t{8} << 30;
  facts.clock_is_synchronised = true;
  facts.cpus = 8;
  facts.locked_bytes = ~uint64_t{0};
  return facts;
}

TEST(Diagnostics, ASoundMachineHasNoRemedies) {
  LocalFacts facts = Sound();
  facts.has_gpu = true;
  facts.gpu_driver = "NVRM version: 580";
  for (const Diagnosis& each : DiagnoseLocal(facts)) {
    EXPECT_EQ(each.severity, "ok") << each.code;
    EXPECT_EQ(each.remedy, "") << each.code;
  }
}

TEST(Diagnostics, ARemedyOfSeveralFindingsIsSaidOnce) {
  const View view =
      DiagnosesView({{"WORKER_UNREACHED", "warn", "node1", "look"},
                     {"WORKER_UNREACHED", "warn", "node2", "look"},
                     {"CLOCK", "warn", "fast", "look"}});
  ASSERT_EQ(view.sections.size(), 2u);
  EXPECT_EQ(view.sections[0].table.rows.size(), 3u);
  EXPECT_EQ(view.sections[1].lines.size(), 2u);
}

TEST(Diagnostics, EachTroubleOfAMachineHasACodeAndARemedy) {
  LocalFacts facts;
  facts.descriptors = 1024;
  facts.clock_is_synchronised = false;
  facts.cpus = 64;
  facts.cpu_quota = 2;
  facts.has_gpu = true;
  facts.numa_nodes = 2;
  const auto found = ByCode(DiagnoseLocal(facts));
  for (const char* code : {"DESCRIPTORS", "SHARED_MEMORY", "CPU", "CLOCK",
                           "GPU_DRIVER", "LOCKED_MEMORY", "NUMA"}) {
    ASSERT_TRUE(found.contains(code)) << code;
    EXPECT_NE(found.at(code).severity, "ok") << code;
    EXPECT_NE(found.at(code).remedy, "") << code;
  }
  EXPECT_EQ(found.at("GPU_DRIVER").severity, "error");
  EXPECT_THAT(found.at("CPU").evidence, HasSubstr("64 CPUs"));
}

TEST(Diagnostics, AFolderThatKeepsWritesAndOneThatDoesNot) {
  const std::string folder = std::filesystem::temp_directory_path();
  const absl::StatusOr<absl::Duration> slow = MeasureSync(folder);
  ASSERT_TRUE(slow.ok()) << slow.status();
  EXPECT_GT(*slow, absl::ZeroDuration());
  EXPECT_EQ(DiagnoseSync("/d", absl::Milliseconds(2)).severity, "ok");
  const Diagnosis warned = DiagnoseSync("/d", absl::Seconds(2));
  EXPECT_EQ(warned.severity, "warn");
  EXPECT_EQ(warned.evidence, "/d keeps a write within 2s");
  EXPECT_NE(warned.remedy, "");
  const Diagnosis failed = DiagnoseSync("/no/x", MeasureSync("/no/x"));
  EXPECT_EQ(failed.severity, "error");
  EXPECT_THAT(failed.evidence, HasSubstr("/no/x: No such file"));
}

TEST(Diagnostics, DataThatCanBeReadAndDataThatCannot) {
  Shell shell;
  shell.spawn = [](const std::vector<std::string>& argv) {
    EXPECT_EQ(argv.back(), "s3://b/x");
    return Ended{0, R"({"uri": "s3://b/x", "format": "mds", "records": 9,
                        "records_read": 1, "bad_records": 0})",
                 ""};
  };
  shell.Run({"doctor", "--local", "--data", "s3://b/x", "-o", "json"});
  EXPECT_THAT(shell.out, HasSubstr("s3://b/x: 9 records of mds; 1 was "
                                   "read"));
  shell.spawn = [](const std::vector<std::string>&) {
    return Ended{1, R"({"error": {"code": 7, "message": "no right"}})", ""};
  };
  EXPECT_EQ(shell.Run({"doctor", "--local", "--data", "s3://b/x"}), 6);
  EXPECT_THAT(shell.out, HasSubstr("s3://b/x: no right"));
  EXPECT_EQ(DiagnoseData("x", Json{{"bad_records", 1}}).severity, "error");
}

TEST(Diagnostics, AServiceOfSeveralVersionsAndLoopbackAddresses) {
  const Json status = Json::parse(R"({"version": "0.2.0", "workers": [
    {"name": "a", "version": "0.1.0", "address": "127.0.0.1:7", "host": "x",
     "last_heartbeat_at": "1970-01-01T00:01:40Z"},
    {"name": "b", "version": "0.2.0", "address": "10.0.0.1:7", "host": "y"}],
    "findings": [{"code": "NO_WORKERS", "severity": "error",
                  "summary": "none", "remedy": "start one"}]})");
  const absl::Time now = absl::FromUnixSeconds(30);
  const auto found = ByCode(DiagnoseService(status, "0.2.0", now));
  EXPECT_EQ(found.at("VERSIONS").severity, "warn");
  EXPECT_THAT(found.at("VERSIONS").evidence, HasSubstr("a (0.1.0)"));
  EXPECT_EQ(found.at("ADDRESSES").severity, "error");
  EXPECT_EQ(found.at("CLOCKS").severity, "warn");
  EXPECT_THAT(found.at("CLOCKS").evidence, HasSubstr("1m10s ahead"));
  EXPECT_EQ(found.at("NO_WORKERS").remedy, "start one");
}

TEST(Diagnostics, OneHostMayUseItsLoopback) {
  const Json status = Json::parse(R"({"version": "0.2.0", "workers": [
    {"name": "a", "version": "0.2.0", "address": "127.0.0.1:7",
     "host": "x"}]})");
  for (const auto& [code, each] :
       ByCode(DiagnoseService(status, "0.2.0", absl::Now())))
    EXPECT_EQ(each.severity, "ok") << code;
}

TEST(Diagnostics, SaysTheMachinesPartWithoutACoordinator) {
  Shell shell;
  shell.service.connect = Unavailable("nobody listens");
  EXPECT_EQ(shell.Run({"doctor", "--coordinator", "a:1"}), 6);
  EXPECT_THAT(shell.out, HasSubstr("nobody listens"));
  EXPECT_THAT(shell.out, HasSubstr("DESCRIPTORS"));
  shell.Run({"doctor", "--local"});
  EXPECT_THAT(shell.out, Not(HasSubstr("COORDINATOR")));
  shell.service.connect = absl::OkStatus();
  shell.Run({"doctor", "-o", "json"});
  const Json json = Json::parse(shell.out);
  EXPECT_GE(json["diagnoses"].size(), 6u);
}

}  // namespace
}  // namespace leat::cli
