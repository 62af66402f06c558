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

const std::vector<MixedSource>& Sources() {
  static const std::vector<MixedSource> sources = {{"web", {}}, {"books", {}}};
  return sources;
}

// Shares up to a step of the epoch: another job's if `appended`.
PositionShares SharesAt(uint64_t step, bool appended) {
  static const std::vector<std::string> names = {"web", "books"};
  static const ShareSchedule first =
      *ShareSchedule::Create(std::vector<SharesFrom>{{0, {3, 1}}}, names, 10);
  static const ShareSchedule second = *ShareSchedule::Create(
      std::vector<SharesFrom>{{0, {3, 1}}, {6, {1, 3}}}, names, 10);
  return {appended ? &second : &first, &Sources(), step};
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
  const auto own = [](const EpochStep& next) {
    return PositionHashes{PlanHash(), HashOf("older"),
                          SharesAt(next.step, false)};
  };
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
          EncodePosition(kJob, HashOf("changed"), {}),
          EncodePosition(kJob, HashOf("appended"), {.epoch = 0, .step = 9},
                         SharesAt(9, true))};
}

const fuzz::Target kTarget({.name = "position",
                            .run = Run,
                            .seeds = Seeds,
                            .runs = 3000,
                            .repair = Repair});

}  // namespace
}  // namespace leat::client::position_fuzz
