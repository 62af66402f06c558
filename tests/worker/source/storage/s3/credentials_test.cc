// SPDX-License-Identifier: Apache-2.0
#include "worker/source/storage/s3/credentials.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>

#include "core/status.h"
#include "tests/worker/temp_dir.h"

namespace leat::worker {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

class CloudCredentials : public ::testing::Test {
 protected:
  CloudCredentials() { env_["HOME"] = dir_.path(); }

  CloudSettings Loaded() {
    const auto settings = LoadS3Settings(Env());
    EXPECT_TRUE(settings.ok()) << settings.status();
    return settings.ok() ? *settings : CloudSettings{};
  }
  GetEnv Env() {
    return [this](const char* name) -> const char* {
      const auto found = env_.find(name);
      return found == env_.end() ? nullptr : found->second.c_str();
    };
  }

  TempDir dir_;
  std::map<std::string, std::string> env_;
};

TEST_F(CloudCredentials, WithoutAnyItSaysWhereItLooked) {
  const CloudSettings settings = Loaded();
  EXPECT_TRUE(settings.credentials.empty());
  EXPECT_THAT(settings.looked_in, HasSubstr("AWS_ACCESS_KEY_ID"));
  EXPECT_THAT(settings.looked_in, HasSubstr(dir_.path() + "/.aws/credentials"));
}

TEST_F(CloudCredentials, TheEnvironmentWinsOverFiles) {
  dir_.Write(".aws/credentials",
             "[default]\naws_access_key_id = F\naws_secret_access_key=G\n");
  EXPECT_EQ(Loaded().credentials.key_id, "F");
  env_["AWS_ACCESS_KEY_ID"] = "K";
  env_["AWS_SECRET_ACCESS_KEY"] = "S";
  env_["AWS_SESSION_TOKEN"] = "T";
  const Credentials credentials = Loaded().credentials;
  EXPECT_EQ(credentials.key_id, "K");
  EXPECT_EQ(credentials.secret, "S");
  EXPECT_EQ(credentials.token, "T");
}

TEST_F(CloudCredentials, AProfileIsFoundInBothFiles) {
  dir_.Write(".aws/credentials",
             "# keys\r\n[default]\r\naws_access_key_id=wrong\r\n"
             "aws_secret_access_key=wrong\r\n[ p ]\r\n"
             "aws_access_key_id = K \r\naws_secret_access_key = S=+/\r\n"
             "aws_session_token = T\r\n; end");
  dir_.Write(".aws/config",
             "[default]\nregion = wrong\n[profile p]\nregion = eu-west-1\n"
             "s3 =\n  region = nested\n  odd\nendpoint_url = http://h:1\n");
  env_["AWS_PROFILE"] = "p";
  const CloudSettings settings = Loaded();
  EXPECT_EQ(settings.credentials.key_id, "K");
  EXPECT_EQ(settings.credentials.secret, "S=+/");
  EXPECT_EQ(settings.credentials.token, "T");
  EXPECT_EQ(settings.region, "eu-west-1");
  EXPECT_EQ(settings.endpoint, "http://h:1");
  env_["AWS_REGION"] = "r";
  env_["AWS_ENDPOINT_URL"] = "http://all";
  EXPECT_EQ(Loaded().region, "r");
  EXPECT_EQ(Loaded().endpoint, "http://all");
  env_["AWS_ENDPOINT_URL_S3"] = "http://s3";
  EXPECT_EQ(Loaded().endpoint, "http://s3");
}

TEST_F(CloudCredentials, FilesMayBeElsewhere) {
  env_["AWS_SHARED_CREDENTIALS_FILE"] = "~/keys";
  dir_.Write("keys", "[default]\naws_access_key_id=K\naws_secret_access_key=S");
  EXPECT_EQ(Loaded().credentials.key_id, "K");
}

TEST_F(CloudCredentials, WhatIsHalfOrMissingIsAnErrorWithoutSecrets) {
  env_["AWS_SECRET_ACCESS_KEY"] = "very-secret";
  const auto half = LoadS3Settings(Env());
  EXPECT_EQ(half.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(half.status())), HasSubstr("key id"));
  EXPECT_THAT(std::string(Message(half.status())),
              Not(HasSubstr("very-secret")));
  env_.erase("AWS_SECRET_ACCESS_KEY");
  env_["AWS_PROFILE"] = "none";
  const auto none = LoadS3Settings(Env());
  EXPECT_EQ(none.status().code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(std::string(Message(none.status())), HasSubstr("'none'"));
}

TEST_F(CloudCredentials, AMalformedFileNamesTheLineAndNotItsText) {
  for (const char* text : {"[default\nx", "[default]\nvery-secret\n"}) {
    dir_.Write(".aws/credentials", text);
    const auto settings = LoadS3Settings(Env());
    EXPECT_EQ(settings.status().code(), absl::StatusCode::kInvalidArgument);
    EXPECT_THAT(std::string(Message(settings.status())),
                HasSubstr(".aws/credentials line "));
    EXPECT_THAT(std::string(Message(settings.status())),
                Not(HasSubstr("very-secret")));
  }
  dir_.Write(".aws/credentials", std::string(2 << 20, '#'));
  EXPECT_EQ(LoadS3Settings(Env()).status().code(),
            absl::StatusCode::kResourceExhausted);
}

TEST_F(CloudCredentials, GooglesKeysHaveVariablesOfTheirOwn) {
  env_["AWS_ACCESS_KEY_ID"] = "K";
  env_["AWS_SECRET_ACCESS_KEY"] = "S";
  EXPECT_TRUE(LoadGsSettings(Env())->credentials.empty());
  env_["GCS_KEY"] = "G";
  EXPECT_FALSE(LoadGsSettings(Env()).ok());
  env_["GCS_SECRET"] = "H";
  EXPECT_EQ(LoadGsSettings(Env())->credentials.key_id, "G");
}

TEST_F(CloudCredentials, SecretsAreTakenOutOfTexts) {
  const Credentials credentials = {"KEYKEY01", "KEYKEY01/SECRET", "TOKENTOKEN",
                                   "here"};
  EXPECT_EQ(
      credentials.Redact("xKEYKEY01KEYKEY01y, KEYKEY01/SECRET TOKENTOKEN"),
      "x******y, *** ***");
  EXPECT_EQ(Credentials{}.Redact("text"), "text");
}

TEST_F(CloudCredentials, ShortSecretsAreHiddenWhereTheyAreWords) {
  const Credentials credentials = {"a", "test", "", "here"};
  EXPECT_EQ(credentials.Redact("a key: test (\"test\") of a latest tests:test"),
            "a key: *** (\"***\") of a latest tests:***");
  const Credentials letter = {"s", "min", "", "here"};
  EXPECT_EQ(letter.Redact("Please re-send in a min"),
            "Please re-send in a min");
}

}  // namespace
}  // namespace leat::worker
