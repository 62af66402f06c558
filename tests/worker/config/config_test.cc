// SPDX-License-Identifier: Apache-2.0
#include "worker/config/config.h"

#include <string>
#include <variant>
#include <vector>

#include "fmt/format.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"

namespace leat::worker {
namespace {

using testing::AllOf;
using testing::HasSubstr;

constexpr uint64_t kMiB = 1 << 20, kGiB = 1 << 30;

uint64_t SumOf(const Config& config) {
  return config.cache_bytes + config.index_bytes + config.buffer_bytes +
         config.read_ahead_bytes + config.shared_rows_bytes;
}

TEST(Config, MemoryIsDividedAmongAllThatTheWorkerKeeps) {
  for (const uint64_t machine : {1 * kGiB, 8 * kGiB, 64 * kGiB, 1024 * kGiB}) {
    Config config;
    config.SetDefaults(4, machine);
    EXPECT_EQ(config.memory_bytes,
              std::max<uint64_t>(machine / 16 * 3, 512 * kMiB));
    EXPECT_EQ(SumOf(config), config.memory_bytes);
    EXPECT_GE(config.cache_bytes, config.memory_bytes / 4);
    EXPECT_TRUE(config.CheckMemory().ok());
  }
  Config config;
  config.memory_bytes = 2 * kGiB;
  config.has_memory_bytes = true;
  config.SetDefaults(4, 64 * kGiB);
  EXPECT_EQ(SumOf(config), 2 * kGiB);
  EXPECT_EQ(config.index_bytes, 256 * kMiB);
  EXPECT_EQ(config.buffer_bytes, 512 * kMiB);
  EXPECT_EQ(config.read_ahead_bytes, 256 * kMiB);
  EXPECT_EQ(config.shared_rows_bytes, 128 * kMiB);
  EXPECT_EQ(config.cache_bytes, 896 * kMiB);
}

TEST(Config, APodIsCalledByTheNameOfItsAddress) {
  constexpr char kDomain[] = "leat-worker.leat.svc.cluster.local";
  const std::pair<const char*, const char*> table[] = {
      {"10.1.2.3:7412", "10-1-2-3.leat-worker.leat.svc.cluster.local:7412"},
      {"fd00::1:7412", "fd00--1.leat-worker.leat.svc.cluster.local:7412"},
      {"[fd00::1]:7412", "fd00--1.leat-worker.leat.svc.cluster.local:7412"}};
  for (const auto& [advertise, name] : table) {
    Config config;
    config.advertise = advertise;
    ASSERT_TRUE(config.SetPodAddress().ok());
    EXPECT_EQ(config.advertise, advertise);
    config.pod_domain = kDomain;
    ASSERT_TRUE(config.SetPodAddress().ok());
    EXPECT_EQ(config.advertise, name);
  }
  for (const char* wrong : {"", ":7412", "10.1.2.3", "10.1.2.3:", "node:7412",
                            "10.1.2.3:0", "10.1.2.3:x", "10.1.2.3:99999"}) {
    Config config;
    config.advertise = wrong;
    config.pod_domain = kDomain;
    EXPECT_TRUE(absl::IsInvalidArgument(config.SetPodAddress())) << wrong;
  }
  for (const char* wrong : {".svc", "a b", "Pods.svc", "a/b"}) {
    Config config;
    config.advertise = "10.1.2.3:7412";
    config.pod_domain = wrong;
    EXPECT_TRUE(absl::IsInvalidArgument(config.SetPodAddress())) << wrong;
  }
}

TEST(Config, DecodeMemoryIsOfAllThreadsTogether) {
  for (const uint64_t machine : {1 * kGiB, 8 * kGiB, 64 * kGiB})
    for (const int threads : {1, 4, 64}) {
      Config config;
      config.SetDefaults(threads, machine);
      EXPECT_EQ(config.decode_bytes,
                std::max<uint64_t>(machine / 4, 512 * kMiB));
      EXPECT_LE(config.image.kept_scratch_bytes, 128 * kMiB);
      EXPECT_EQ(
          config.shared_decode_bytes() + 2 * static_cast<uint64_t>(threads) *
                                             config.image.kept_scratch_bytes,
          config.decode_bytes);
      EXPECT_GE(config.shared_decode_bytes(), config.decode_bytes / 2);
    }
  Config config;
  config.decode_bytes = kGiB;
  config.SetDefaults(4, 64 * kGiB);
  EXPECT_EQ(config.image.kept_scratch_bytes, 64 * kMiB);
  EXPECT_EQ(config.shared_decode_bytes(), 512 * kMiB);
}

// By default a worker keeps and uses 9/16 of the machine's memory in all.
TEST(Config, WhatIsBoundedFitsIntoTheControlGroup) {
  for (const uint64_t machine : {8 * kGiB, 64 * kGiB}) {
    Config config;
    config.SetDefaults(8, machine);
    EXPECT_EQ(config.unpacked_bytes, machine / 8);
    EXPECT_LE(config.memory_bytes + config.decode_bytes + config.unpacked_bytes,
              machine / 16 * 9);
  }
  Config small;
  small.SetDefaults(1, kGiB);
  EXPECT_EQ(small.unpacked_bytes, 256 * kMiB);
}

TEST(Config, FormsAreChosenByName) {
  Config config;
  EXPECT_TRUE(config.form_kinds().seek_index);
  EXPECT_TRUE(config.form_kinds().coefficients);
  config.forms = "none";
  EXPECT_FALSE(config.form_kinds().any());
  config.forms = "seek";
  EXPECT_TRUE(config.form_kinds().seek_index);
  EXPECT_FALSE(config.form_kinds().coefficients);
  EXPECT_FALSE(config.form_kinds().pixels);
  config.forms = "pixels";
  EXPECT_TRUE(config.form_kinds().pixels);
  EXPECT_FALSE(config.form_kinds().coefficients);
  config.forms = "coefficients";
  EXPECT_FALSE(config.form_kinds().seek_index);
  EXPECT_TRUE(config.form_kinds().coefficients);
}

TEST(Config, WhatADiskCacheIsOfWantsADiskCache) {
  Config config;
  config.coordinator = "127.0.0.1:7411";
  config.SetDefaults(4, 64 * kGiB);
  EXPECT_TRUE(config.Validate().ok()) << config.Validate();
  config.disk_cache_of = DiskCacheOf::kAll;
  const absl::Status status = config.Validate();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(), AllOf(HasSubstr("--disk-cache-of all"),
                                      HasSubstr("--disk-cache DIR")));
  config.storage.disk_cache = "/kept";
  config.storage.disk_cache_bytes = 64 * kMiB;
  EXPECT_TRUE(config.Validate().ok()) << config.Validate();
}

TEST(Config, WhatIsGivenStays) {
  Config config;
  config.has_cache_bytes = true;  // --cache 0
  config.buffer_bytes = 3 * kMiB;
  config.index_bytes = 1100;
  config.SetDefaults(4, 64 * kGiB);
  EXPECT_EQ(config.cache_bytes, 0u);
  EXPECT_EQ(config.buffer_bytes, 3 * kMiB);
  EXPECT_EQ(config.index_bytes, 1100u);
}

// Their default is not 0, so that it would be used in silence.
TEST(Config, ASizeWithADefaultIsNotZero) {
  for (const char* flag :
       {"--index-cache", "--buffers", "--decode-memory", "--unpacked-memory",
        "--read-ahead", "--shared-rows"}) {
    std::string words[] = {"leat-worker", "--coordinator", "127.0.0.1:7411",
                           flag, "0.5"};
    std::vector<char*> argv;
    for (std::string& word : words) argv.push_back(word.data());
    testing::internal::CaptureStderr();
    const auto parsed =
        ParseFlags(static_cast<int>(argv.size()), argv.data(), {});
    const std::string said = testing::internal::GetCapturedStderr();
    ASSERT_TRUE(std::holds_alternative<int>(parsed)) << flag;
    EXPECT_EQ(std::get<int>(parsed), 2) << flag;
    EXPECT_THAT(said, HasSubstr(fmt::format("{} 0.5: want more than 0", flag)));
  }
}

TEST(Config, PartsThatAreMoreThanTheMemoryAreRefused) {
  Config config;
  config.memory_bytes = kGiB;
  config.has_memory_bytes = true;
  config.cache_bytes = kGiB;
  config.has_cache_bytes = true;
  config.SetDefaults(4, 64 * kGiB);
  const absl::Status status = config.CheckMemory();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  EXPECT_THAT(status.message(),
              AllOf(HasSubstr("--memory 1073741824"),
                    HasSubstr("--cache 1073741824"), HasSubstr("--buffers")));
  // If it equals the machine's memory, no flag has asked for less.
  config.has_memory_bytes = false;
  config.SetDefaults(4, kGiB);
  EXPECT_TRUE(config.CheckMemory().ok());
}

TEST(Config, ReadsEverythingOnLoopbackAndElsewhereWhatIsAllowed) {
  const auto allowed = [](const std::string& listen,
                          std::vector<std::string> allow) {
    Config config;
    config.listen = listen;
    config.allow = std::move(allow);
    config.local_copies = {"/data=/nvme"};
    EXPECT_TRUE(config.SetLocalCopies().ok());
    config.SetAllowed();
    return config.storage.allow;
  };
  for (const char* own : {"127.0.0.1:0", "[::1]:7", "unix-abstract:x"})
    EXPECT_EQ(allowed(own, {}), std::nullopt) << own;
  for (const char* open : {"0.0.0.0:0", "[::]:7", "127.evil.example:7"})
    EXPECT_EQ(allowed(open, {}), std::vector<std::string>{"/nvme"}) << open;
  const std::vector<std::string> both = {"/data", "/nvme"};
  EXPECT_EQ(allowed("127.0.0.1:0", {"/data"}), both);
  EXPECT_EQ(allowed("0.0.0.0:0", {"/data"}), both);
}

}  // namespace
}  // namespace leat::worker
