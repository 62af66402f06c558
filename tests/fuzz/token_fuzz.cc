// SPDX-License-Identifier: Apache-2.0
//
// A token from a checkpoint; mostly with a correct checksum. Writing an
// accepted token again gives the same text.
#include <cstring>

#include "client/batch/token.h"
#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/target.h"

namespace leat::client::token_fuzz {
namespace {

constexpr std::string_view kJob = "resnet50";
constexpr uint64_t kSteps = 1000;
constexpr size_t kHead = 16;  // magic and checksum

const Digest& PlanHash() {
  static const Digest hash = HashOf("plan");
  return hash;
}

void Repair(std::span<char> bytes) {
  if (bytes.size() < kHead) return;
  const Digest sum =
      HashOf(std::string_view(bytes.data(), bytes.size()).substr(kHead));
  std::memcpy(bytes.data(), "LEATTOK1", 8);
  std::memcpy(bytes.data() + 8, sum.data(), 8);
}

void Run(std::string_view bytes) {
  const google::protobuf::LogSilencer silent;  // of text that is not UTF-8
  const TokenNames own = {PlanHash(), HashOf("older")};
  const auto position = DecodeToken(bytes, kJob, own, kSteps);
  if (!position.ok()) {
    return fuzz::Require(absl::IsInvalidArgument(position.status()) &&
                         !Message(position.status()).empty());
  }
  fuzz::Require(position->step < kSteps);
  const auto again =
      DecodeToken(EncodeToken(kJob, PlanHash(), *position), kJob, own, kSteps);
  fuzz::Require(again.ok() && *again == *position);
}

std::vector<std::string> Seeds() {
  return {EncodeToken(kJob, PlanHash(), {.epoch = 3, .step = 120}),
          EncodeToken(kJob, PlanHash(), {.epoch = 0, .step = kSteps}),
          EncodeToken("another", HashOf("other"), {.epoch = 1, .step = 7}),
          EncodeToken(kJob, HashOf("changed"), {})};
}

const fuzz::Target kTarget({.name = "token",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 3000,
                            .repair = Repair});

}  // namespace
}  // namespace leat::client::token_fuzz
