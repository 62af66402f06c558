// SPDX-License-Identifier: Apache-2.0
//
// A position from a checkpoint; mostly with a correct checksum. Writing an
// accepted position again gives the same text.
#include <cstring>

#include "client/batch/position.h"
#include "core/status.h"
#include "google/protobuf/stubs/logging.h"
#include "tests/fuzz/target.h"

namespace leat::client::position_fuzz {
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
  const PositionHashes hashes = {PlanHash(), HashOf("older")};
  const auto own = [&](const EpochStep&) { return hashes; };
  const auto decoded = DecodePosition(bytes, kJob, own, kSteps);
  if (!decoded.ok()) {
    return fuzz::Require(absl::IsInvalidArgument(decoded.status()) &&
                         !Message(decoded.status()).empty());
  }
  fuzz::Require(decoded->step < kSteps);
  const auto again = DecodePosition(EncodePosition(kJob, PlanHash(), *decoded),
                                    kJob, own, kSteps);
  fuzz::Require(again.ok() && *again == *decoded);
}

std::vector<std::string> Seeds() {
  return {EncodePosition(kJob, PlanHash(), {.epoch = 3, .step = 120}),
          EncodePosition(kJob, PlanHash(), {.epoch = 0, .step = kSteps}),
          EncodePosition("another", HashOf("other"), {.epoch = 1, .step = 7}),
          EncodePosition(kJob, HashOf("changed"), {})};
}

const fuzz::Target kTarget({.name = "position",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 3000,
                            .repair = Repair});

}  // namespace
}  // namespace leat::client::position_fuzz
