// SPDX-License-Identifier: Apache-2.0
#include "worker/image/program/decoder_digest.h"

#include <dlfcn.h>

#include <cstdio>
#include <filesystem>
#include <iostream>
#include <set>
#include <string>

extern "C" {
#include <jpeglib.h>
}

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/worker/image/program/support.h"
#include "worker/image/base/known_images.h"
#include "worker/image/codecs/libraries.h"

namespace {
int more_quality = 0;
}

// Stands before that of libjpeg, so that a test can have another encoder.
extern "C" void jpeg_set_quality(j_compress_ptr cinfo, int quality,
                                 boolean baseline) {
  using Function = void (*)(j_compress_ptr, int, boolean);
  static const auto own =
      reinterpret_cast<Function>(dlsym(RTLD_NEXT, "jpeg_set_quality"));
  own(cinfo, quality + more_quality, baseline);
}

namespace leat::worker {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

TEST(DecoderDigest, EveryKnownImageDecodes) {
  const std::vector<std::string> images = KnownImages();
  ASSERT_GE(images.size(), 14u);
  Scratch scratch{ImageLimits()};
  for (size_t i = 0; i < images.size(); ++i) {
    SCOPED_TRACE(i);
    Runner runner(
        ChainOf({{"resize", {}, {{"size", std::vector<int64_t>{8, 8}}}}}), 1);
    EXPECT_EQ(runner.Run(images[i], scratch), absl::OkStatus());
  }
}

TEST(DecoderDigest, IsTheSameAgainAndAnotherWithAnyOtherImage) {
  const std::vector<std::string> images = KnownImages();
  const absl::StatusOr<Digest> digest = DecoderDigest(images);
  ASSERT_TRUE(digest.ok()) << digest.status();
  EXPECT_EQ(*DecoderDigest(images), *digest);
  std::set<Digest> seen = {*digest};
  // Another image stands in for this image as another decoder decodes it.
  for (size_t i = 0; i < images.size(); ++i) {
    std::vector<std::string> others = images;
    others[i] = images[i == 0 ? 1 : 0];
    EXPECT_TRUE(seen.insert(*DecoderDigest(others)).second) << i;
    // Stands in for a library that cannot decode it.
    others[i] = "no image";
    EXPECT_TRUE(seen.insert(*DecoderDigest(others)).second) << i;
  }
}

TEST(DecoderDigest, IsAnotherWithAnotherEncoder) {
  const std::vector<std::string> images = KnownImages();
  const Digest digest = *DecoderDigest(images);
  more_quality = 1;
  EXPECT_NE(*DecoderDigest(images), digest);
  more_quality = 0;
  EXPECT_EQ(*DecoderDigest(images), digest);
}

// For the test below, in its own process.
TEST(DecoderDigest, DISABLED_IsPrinted) {
  const absl::StatusOr<Digest> digest = DecoderDigest(KnownImages());
  ASSERT_TRUE(digest.ok()) << digest.status();
  std::cout << "digest=" << ToHex(*digest) << "\n";
}

// Returns what a process with this environment prints.
std::string DigestWith(const std::string& environment) {
  const std::string command = fmt::format(
      "{} exec '{}' --gtest_also_run_disabled_tests "
      "--gtest_filter=DecoderDigest.DISABLED_IsPrinted",
      environment, std::filesystem::read_symlink("/proc/self/exe").string());
  FILE* const out = popen(command.c_str(), "r");
  if (out == nullptr) return "";
  std::string text(1 << 16, '\0');
  text.resize(fread(text.data(), 1, text.size(), out));
  EXPECT_EQ(pclose(out), 0) << text;
  const size_t at = text.find("digest=");
  return at == text.npos ? text : text.substr(at + 7, 64);
}

// libjpeg-turbo chooses its code by the processor, once per process; its own
// variables restrict the choice. Different cores must not decode differently.
TEST(DecoderDigest, DoesNotDependOnTheProcessor) {
  const absl::StatusOr<Digest> digest = DecoderDigest(KnownImages());
  ASSERT_TRUE(digest.ok()) << digest.status();
  for (const char* environment : {"JSIMD_FORCENONE=1", "JSIMD_FORCESSE2=1"})
    EXPECT_EQ(DigestWith(environment), ToHex(*digest)) << environment;
}

TEST(DecoderDigest, NamesEveryLibrary) {
  EXPECT_THAT(DecoderLibraries(),
              AllOf(HasSubstr("libjpeg"), HasSubstr("libpng 1."),
                    HasSubstr("libtiff 4."), HasSubstr("libwebp 1."),
                    HasSubstr("OpenJPEG 2.")));
}

}  // namespace
}  // namespace leat::worker
