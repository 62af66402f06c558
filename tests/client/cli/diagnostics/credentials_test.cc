// SPDX-License-Identifier: Apache-2.0
#include "client/cli/diagnostics/credentials.h"

#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <map>

#include "core/cluster/roles.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"
#include "tests/rpc/certificate_maker.h"

namespace leat::cli {
namespace {

using rpc::CertificateWish;
using rpc::MadeCertificate;
using std::chrono::hours;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::Not;

class CredentialsTest : public ::testing::Test {
 protected:
  CredentialsTest()
      : folder_(std::filesystem::path(testing::TempDir()) /
                "leat_credentials_test") {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~CredentialsTest() override { std::filesystem::remove_all(folder_); }
  std::string Write(const std::string& name, const std::string& text,
                    mode_t mode = 0600) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    EXPECT_EQ(chmod(path.c_str(), mode), 0);
    return path;
  }
  // Returns diagnoses by code: the worst of several with one code.
  std::map<std::string, Diagnosis> Judge(const CredentialSources& sources) {
    std::map<std::string, Diagnosis> by_code;
    for (const Diagnosis& each :
         DiagnoseCredentials(GatherCredentials(sources), absl::Now())) {
      EXPECT_EQ(each.severity == "ok", each.remedy.empty()) << each.code;
      for (const std::string& text : {each.evidence, each.remedy})
        EXPECT_THAT(text, AllOf(Not(HasSubstr(kSecret)),
                                Not(HasSubstr("PRIVATE KEY"))));
      Diagnosis& at = by_code[each.code];
      if (at.code.empty() || at.severity == "ok" || each.severity == "error")
        at = each;
    }
    return by_code;
  }
  // Makes a certificate as requested, its authority, and its key.
  CredentialSources Made(const CertificateWish& wish,
                         const std::string& prefix = "") {
    const MadeCertificate authority(
        {.name = "ca", .to = hours(24 * 3650), .authority = true});
    const MadeCertificate made(wish, &authority);
    return {.ca = Write("ca.pem", authority.pem(), 0644),
            .cert = Write("cert.pem", prefix + made.pem(), 0644),
            .key = Write("cert.key", made.key_pem())};
  }

  static constexpr char kSecret[] = "5ec2e75ec2e75ec2e75ec2e75ec2e7";
  static constexpr hours kYear = hours(24 * 365);
  const std::filesystem::path folder_;
};

TEST_F(CredentialsTest, WhatIsAsItShouldBeHasNoRemedies) {
  CredentialSources sources = Made({.to = kYear});
  sources.token_file = Write(
      "token", TokenText(std::array<uint8_t, kTokenRandomBytes>{1}) + "\n");
  const auto found = Judge(sources);
  EXPECT_EQ(found.size(), 7u);
  for (const auto& [code, each] : found)
    EXPECT_EQ(each.severity, "ok") << code << " " << each.evidence;
  EXPECT_THAT(found.at("ACCESS_TOKEN").evidence, HasSubstr("01000000"));
  EXPECT_TRUE(Judge({}).empty());
}

TEST_F(CredentialsTest, ATokenThatCanBeNobodysSaysWhy) {
  const auto why = [&](const std::string& token) {
    const auto found = Judge({.token = token});
    return found.contains("ACCESS_TOKEN")
               ? found.at("ACCESS_TOKEN").severity + " " +
                     found.at("ACCESS_TOKEN").evidence
               : "";
  };
  EXPECT_THAT(why("x"), HasSubstr("error"));
  EXPECT_THAT(why("x"), HasSubstr("want 16 to"));
  EXPECT_THAT(why(std::string(kSecret) + "\n" + kSecret),
              HasSubstr("line ends"));
  EXPECT_THAT(why(" \n"),
              HasSubstr("error LEAT_ACCESS_TOKEN: it has no access token"));
  EXPECT_THAT(why(std::string(kSecret) + "\x01"), HasSubstr("unprintable"));
  // Only a daemon can tell whether it is invented.
  EXPECT_THAT(why(kSecret),
              HasSubstr("ok LEAT_ACCESS_TOKEN has a secret that \"leat access "
                        "create\" did not make: only a service that was "
                        "started with it"));
  EXPECT_EQ(why(""), "");
}

TEST_F(CredentialsTest, FilesThatOthersReadAreNamedWithWhatToDo) {
  CredentialSources sources = Made({.to = kYear});
  sources.token_file = Write("token", kSecret, 0644);
  chmod(sources.key.c_str(), 0640);
  const auto found = Judge(sources);
  EXPECT_EQ(found.at("ACCESS_TOKEN_FILE").severity, "warn");
  EXPECT_THAT(found.at("ACCESS_TOKEN_FILE").remedy, HasSubstr("chmod 600"));
  EXPECT_EQ(found.at("KEY_FILE").severity, "warn");
  EXPECT_THAT(found.at("KEY_FILE").evidence, HasSubstr("mode 640"));
}

TEST_F(CredentialsTest, FilesThatAreNotThereOrHoldSomethingElse) {
  const std::string none = (folder_ / "none").string();
  for (const auto& [code, each] :
       Judge({.token_file = none, .ca = none, .cert = none, .key = none})) {
    EXPECT_EQ(each.severity, "error") << code;
    EXPECT_THAT(each.evidence, HasSubstr(none));
  }
  const std::string text = Write("text", kSecret);
  const auto found = Judge({.ca = text, .cert = text, .key = text});
  for (const char* code : {"CERTIFICATE", "CERTIFICATE_KEY", "AUTHORITIES"})
    EXPECT_EQ(found.at(code).severity, "error") << code;
  EXPECT_EQ(Judge({.key = folder_.string()}).at("CERTIFICATE_KEY").severity,
            "error");
}

TEST_F(CredentialsTest, DatesAreSpokenOfBeforeTheyHavePassed) {
  const auto severity = [&](hours from, hours to) {
    return Judge(Made({.from = from, .to = to}))
        .at("CERTIFICATE_DATES")
        .severity;
  };
  EXPECT_EQ(severity(-kYear, 24 * hours(31)), "ok");
  EXPECT_EQ(severity(-kYear, 24 * hours(29)), "warn");
  EXPECT_EQ(severity(-kYear, 24 * hours(6)), "error");
  // One for 24 hours: tools renew it when a third is left.
  EXPECT_EQ(severity(hours(-16), hours(8)), "ok");
  EXPECT_EQ(severity(hours(-19), hours(5)), "warn");
  EXPECT_EQ(severity(hours(-23), hours(1)), "error");
  EXPECT_EQ(severity(hours(-1), 7900 * kYear), "ok");
  EXPECT_EQ(severity(hours(-2), hours(-1)), "error");
  EXPECT_EQ(severity(hours(1), kYear), "error");
}

TEST_F(CredentialsTest, AKeyOfAnotherCertificateAndAChainInTheWrongOrder) {
  CredentialSources sources = Made({.to = kYear});
  sources.key = Write("other.key", MadeCertificate({}).key_pem());
  EXPECT_THAT(Judge(sources).at("CERTIFICATE_KEY").evidence,
              HasSubstr("is not the key of"));
  const MadeCertificate other({.name = "other", .to = kYear});
  const auto found = Judge(Made({.to = kYear}, other.pem()));
  EXPECT_THAT(found.at("CERTIFICATE_KEY").evidence,
              HasSubstr("certificate 2 in"));
  EXPECT_THAT(found.at("CERTIFICATE_CHAIN").evidence,
              HasSubstr("certificate 2"));
}

TEST_F(CredentialsTest, ACertificateWithoutNamesAndOneOfAnUnknownAuthority) {
  EXPECT_EQ(
      Judge(Made({.names = "", .to = kYear})).at("CERTIFICATE_NAMES").severity,
      "error");
  CredentialSources sources = Made({.to = kYear});
  sources.ca =
      Write("ca2.pem", MadeCertificate({.to = kYear, .authority = true}).pem());
  EXPECT_THAT(Judge(sources).at("AUTHORITIES").evidence,
              HasSubstr("vouches for"));
}

TEST_F(CredentialsTest, DoctorReadsWhatTheCommandWouldShow) {
  Shell shell;
  const std::string token = Write("token", "short", 0644);
  EXPECT_EQ(shell.Run({"doctor", "--local", "--access-token-file", token}), 6);
  EXPECT_THAT(shell.out, AllOf(HasSubstr("ACCESS_TOKEN"), HasSubstr(token),
                               HasSubstr("chmod 600")));
  shell.service.connect = Unauthenticated("access token 1f was revoked");
  EXPECT_EQ(shell.Run({"doctor"}), 6);
  EXPECT_THAT(shell.out, AllOf(HasSubstr("ACCESS_TOKEN_REFUSED"),
                               HasSubstr("access token 1f was revoked"),
                               HasSubstr("leat access create")));
}

TEST_F(CredentialsTest, DoctorIsNotAskedForAnImpossibleTime) {
  Shell shell;
  EXPECT_EQ(shell.Run({"doctor", "--timeout", "nan"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("--timeout \"nan\": want a time"));
  EXPECT_EQ(shell.out, "");
}

TEST_F(CredentialsTest, DoctorShakesHandsWithTheWorkersThatTrainingsNeed) {
  Shell shell;
  shell.service.answers["workers"] = R"({"workers": [
    {"name": "w0", "state": "WORKER_STATE_READY", "address": "h0:7500"},
    {"name": "w1", "state": "WORKER_STATE_READY", "address": "h1:7500"},
    {"name": "w2", "state": "WORKER_STATE_LOST", "address": "h2:7500"},
    {"name": "w3", "state": "WORKER_STATE_READY", "address": "unix:/w3"}]})";
  const std::string ca =
      Write("ca.pem", MadeCertificate({.to = kYear, .authority = true}).pem());
  std::map<std::string, std::optional<TlsProbe>> answers = {
      {"127.0.0.1:7411", TlsProbe{"it shows one", ""}},
      {"h0:7500", TlsProbe{"good", ""}},
      {"h1:7500", TlsProbe{"good", ""}}};
  shell.probe = [&](const ConnectOptions& options) {
    EXPECT_FALSE(options.ca_pem.empty());
    return answers.at(options.address);
  };
  const auto run = [&] {
    shell.Run({"doctor", "--coordinator", "127.0.0.1:7411", "--tls-ca", ca});
    return shell.out;
  };
  EXPECT_THAT(run(), AllOf(ContainsRegex("SERVER_CERTIFICATE +ok +it shows"),
                           ContainsRegex("WORKERS_REACHED +ok +2 of 2 workers "
                                         "were tried, and answer")));
  answers["h1:7500"] = std::nullopt;
  EXPECT_THAT(run(), AllOf(ContainsRegex("WORKERS_REACHED +warn +no answer "
                                         "to this machine from w1 .h1:7500."),
                           HasSubstr("--advertise")));
  answers["h0:7500"] =
      TlsProbe{"h0:7500 shows a certificate that has expired", "replace it"};
  EXPECT_THAT(run(), AllOf(HasSubstr("worker w0: h0:7500 shows a certificate "
                                     "that has expired"),
                           HasSubstr("WORKERS_REACHED: replace it")));
}

}  // namespace
}  // namespace leat::cli
