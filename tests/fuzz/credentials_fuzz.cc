// SPDX-License-Identifier: Apache-2.0
//
// A credentials file: messages never contain the secrets read from it.
#include <cstring>

#include "core/status.h"
#include "tests/fuzz/memory_file.h"
#include "tests/fuzz/target.h"
#include "worker/source/storage/s3/credentials.h"

namespace leat::worker::credentials_fuzz {
namespace {

void Run(std::string_view bytes) {
  const NamedFile file(bytes);
  const auto settings = LoadS3Settings([&](const char* name) -> const char* {
    if (std::strstr(name, "_FILE") != nullptr) return file.path().c_str();
    return std::strcmp(name, "AWS_PROFILE") == 0 ? "p" : nullptr;
  });
  if (!settings.ok()) return fuzz::Require(!Message(settings.status()).empty());
  const Credentials& keys = settings->credentials;
  fuzz::Require(keys.key_id.empty() == keys.secret.empty());
  if (keys.secret.size() > 3 && keys.secret.find('*') == std::string::npos)
    fuzz::Require(keys.Redact("<" + keys.secret + ">").find(keys.secret) ==
                  std::string::npos);
}

std::vector<std::string> Seeds() {
  return {
      "[p]\naws_access_key_id = AKID\naws_secret_access_key=very/secret\n"
      "aws_session_token = t\n",
      "# comment\n[profile p]\nregion = eu-test-1\ns3 =\n  x = 1\n"
      "endpoint_url = http://127.0.0.1:1\n[other]\n",
      "[p\n", "x = 1\n"};
}

const fuzz::Target kTarget(
    {.name = "credentials", .run = Run, .seeds = Seeds, .runs = 2000});

}  // namespace
}  // namespace leat::worker::credentials_fuzz
