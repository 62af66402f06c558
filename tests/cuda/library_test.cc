// SPDX-License-Identifier: Apache-2.0
//
// Tests finding and loading the driver and nvJPEG: fakes, broken ones, and the
// real nvJPEG if its wheel is installed.
#include "cuda/library.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "core/status.h"
#include "cuda/driver.h"
#include "cuda/nvjpeg.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "tests/cuda/fake_library.h"

namespace leat::cuda {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

LibrarySearch Only(const std::string& cuda, const std::string& nvjpeg) {
  LibrarySearch search;
  search.cuda_library = cuda;
  search.nvjpeg_library = nvjpeg;
  return search;
}

std::string Fake(const std::string& folder, const std::string& file) {
  return std::string(LEAT_FAKE_CUDA_FOLDER) + folder + "/" + file;
}

TEST(Library, AForcedPathIsTheOnlyCandidate) {
  const LibrarySearch search = Only("/x/libcuda.so", "/x/libnvjpeg.so");
  EXPECT_THAT(DriverCandidates(search), ElementsAre("/x/libcuda.so"));
  EXPECT_THAT(NvjpegCandidates(search), ElementsAre("/x/libnvjpeg.so"));
}

TEST(Library, TheUsualNamesComeBeforeWheels) {
  LibrarySearch search;
  search.site_packages = {"/venv/site-packages"};
  const auto nvjpeg = NvjpegCandidates(search);
  EXPECT_EQ(nvjpeg[0], "libnvjpeg.so.13");
  EXPECT_EQ(nvjpeg[1], "libnvjpeg.so.12");
  EXPECT_EQ(nvjpeg[2], "libnvjpeg.so");
  EXPECT_THAT(nvjpeg,
              Contains("/venv/site-packages/nvidia/cu13/lib/libnvjpeg.so.13"));
  EXPECT_THAT(
      nvjpeg,
      Contains("/venv/site-packages/nvidia/nvjpeg/lib/libnvjpeg.so.12"));
  EXPECT_EQ(DriverCandidates(search)[0], "libcuda.so.1");
}

TEST(Library, TorchvisionsOwnCopyIsFoundUnderItsHashedName) {
  const auto folder = std::filesystem::path(::testing::TempDir()) / "tv";
  std::filesystem::create_directories(folder / "torchvision.libs");
  const auto file = folder / "torchvision.libs/libnvjpeg-1a2b3c.so.13";
  std::ofstream(file) << "";
  LibrarySearch search;
  search.site_packages = {folder.string()};
  EXPECT_THAT(NvjpegCandidates(search), Contains(file.string()));
  std::filesystem::remove_all(folder);
}

TEST(Library, AbsentLibrariesAreNotFoundAndEveryPlaceIsNamed) {
  const auto driver = LoadDriver(Only("/nowhere/libcuda.so.1", ""));
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(driver.status())),
              HasSubstr("/nowhere/libcuda.so.1"));
  const auto nvjpeg = LoadNvjpeg(Only("", "/nowhere/libnvjpeg.so.13"));
  EXPECT_EQ(nvjpeg.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(nvjpeg.status())),
              HasSubstr("/nowhere/libnvjpeg.so.13"));
}

TEST(Library, AFileThatIsNoLibraryIsNamedWithTheLoadersReason) {
  const std::string path = ::testing::TempDir() + "not_a_library.so";
  std::ofstream(path) << "plain text";
  const auto driver = LoadDriver(Only(path, ""));
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kNotFound);
  EXPECT_THAT(std::string(Message(driver.status())), HasSubstr(path));
  std::filesystem::remove(path);
}

TEST(Library, ADriverWithoutARequiredSymbolIsRefusedByNameAndPath) {
  const std::string path = Fake("_broken", "libcuda.so.1");
  const auto driver = LoadDriver(Only(path, ""));
  EXPECT_EQ(driver.status().code(), absl::StatusCode::kFailedPrecondition);
  EXPECT_THAT(std::string(Message(driver.status())), HasSubstr(path));
  EXPECT_THAT(std::string(Message(driver.status())),
              HasSubstr("cuMemAlloc_v2"));
}

TEST(Library, AnOldDriverLoadsWithoutVirtualMemory) {
  const auto driver = LoadDriver(Only(Fake("_old", "libcuda.so.1"), ""));
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_FALSE((*driver)->HasVirtualMemory());
  EXPECT_EQ((*driver)->MemCreate, nullptr);
  EXPECT_EQ((*driver)->StreamIsCapturing, nullptr);
  EXPECT_EQ((*driver)->ThreadExchangeStreamCaptureMode, nullptr);
  const RelaxedCapture relaxed(**driver);  // it does nothing
}

TEST(Library, AnOldNvjpegLoadsWithoutWhatIsNewer) {
  const auto nvjpeg = LoadNvjpeg(Only("", Fake("_old", "libnvjpeg.so.12")));
  ASSERT_TRUE(nvjpeg.ok()) << nvjpeg.status();
  EXPECT_EQ((*nvjpeg)->GetHardwareDecoderInfo, nullptr);
  EXPECT_EQ((*nvjpeg)->DecodeBatchedEx, nullptr);
  EXPECT_EQ((*nvjpeg)->DecodeParamsSetScaleFactor, nullptr);
  EXPECT_EQ((*nvjpeg)->DecodeParamsSetExifOrientation, nullptr);
  EXPECT_NE((*nvjpeg)->DecodeBatched, nullptr);
}

TEST(Library, FakesLoadWholeAndSayWhereFrom) {
  leat::testing::FakeCuda fake;
  const auto driver = LoadDriver(fake.search);
  ASSERT_TRUE(driver.ok()) << driver.status();
  EXPECT_TRUE((*driver)->HasVirtualMemory());
  EXPECT_EQ(std::filesystem::canonical((*driver)->path),
            std::filesystem::canonical(fake.search.cuda_library));
  const auto nvjpeg = LoadNvjpeg(fake.search);
  ASSERT_TRUE(nvjpeg.ok()) << nvjpeg.status();
  EXPECT_EQ((*nvjpeg)->major, 13);
  EXPECT_NE((*nvjpeg)->DecodeBatchedEx, nullptr);
}

TEST(Library, AnNvjpegThatDoesNotTellItsVersionIsRefused) {
  leat::testing::FakeCuda fake;
  fake.fail("nvjpegGetProperty", 1, 0, 6);
  const auto nvjpeg = LoadNvjpeg(fake.search);
  EXPECT_EQ(nvjpeg.status().code(), absl::StatusCode::kInternal);
  EXPECT_THAT(std::string(Message(nvjpeg.status())), HasSubstr("version"));
}

TEST(Library, TheEnvironmentNamesLibrariesAndPackageFolders) {
  setenv("LEAT_CUDA_LIBRARY", "/a/libcuda.so", 1);
  setenv("LEAT_NVJPEG_LIBRARY", "/a/libnvjpeg.so", 1);
  setenv("LEAT_SITE_PACKAGES", "/a:/b::/c", 1);
  const LibrarySearch search = LibrarySearch::FromEnvironment();
  unsetenv("LEAT_CUDA_LIBRARY");
  unsetenv("LEAT_NVJPEG_LIBRARY");
  unsetenv("LEAT_SITE_PACKAGES");
  EXPECT_EQ(search.cuda_library, "/a/libcuda.so");
  EXPECT_EQ(search.nvjpeg_library, "/a/libnvjpeg.so");
  ASSERT_GE(search.site_packages.size(), 3u);
  EXPECT_EQ(search.site_packages[0], "/a");
  EXPECT_EQ(search.site_packages[1], "/b");
  EXPECT_EQ(search.site_packages[2], "/c");
}

// LEAT_REAL_NVJPEG: a package folder with the wheel nvidia-nvjpeg.
TEST(Library, TheRealNvjpegHasEverySymbol) {
  const char* const folder = std::getenv("LEAT_REAL_NVJPEG");
  if (folder == nullptr)
    GTEST_SKIP() << "LEAT_REAL_NVJPEG names no folder with the wheel "
                    "nvidia-nvjpeg";
  LibrarySearch search;
  search.toolkit_folders.clear();
  search.site_packages = {folder};
  const auto nvjpeg = LoadNvjpeg(search);
  ASSERT_TRUE(nvjpeg.ok()) << nvjpeg.status();
  EXPECT_GE((*nvjpeg)->major, 12);
  EXPECT_NE((*nvjpeg)->GetHardwareDecoderInfo, nullptr);
  EXPECT_NE((*nvjpeg)->DecodeBatchedEx, nullptr);
  EXPECT_NE((*nvjpeg)->DecodeBatchedSupportedEx, nullptr);
  EXPECT_NE((*nvjpeg)->DecodeParamsSetScaleFactor, nullptr);
  EXPECT_NE((*nvjpeg)->DecodeParamsSetExifOrientation, nullptr);
}

TEST(Status, NamesWhatWasDoneTheErrorAndItsNumber) {
  leat::testing::FakeCuda fake;
  const auto driver = LoadDriver(fake.search);
  ASSERT_TRUE(driver.ok());
  const absl::Status status =
      Check(**driver, Result::kOutOfMemory, "allocating 5 bytes");
  EXPECT_EQ(status.code(), absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Message(status),
            "allocating 5 bytes: CUDA_ERROR_OUT_OF_MEMORY (2): out of memory");
  EXPECT_EQ(ResultOf(status), Result::kOutOfMemory);
  EXPECT_FALSE(PoisonsContext(status));
  EXPECT_TRUE(Check(**driver, Result::kSuccess, "x").ok());
  EXPECT_EQ(ResultOf(absl::OkStatus()), std::nullopt);
}

TEST(Status, AnUnknownNumberIsStillTold) {
  leat::testing::FakeCuda fake;
  const auto driver = LoadDriver(fake.search);
  ASSERT_TRUE(driver.ok());
  const absl::Status status = Check(**driver, static_cast<Result>(4711), "x");
  EXPECT_THAT(std::string(Message(status)), HasSubstr("4711"));
}

TEST(Status, ErrorsThatPoisonTheContextAreUnavailableAlsoAnnotated) {
  leat::testing::FakeCuda fake;
  const auto driver = LoadDriver(fake.search);
  ASSERT_TRUE(driver.ok());
  for (const int code :
       {700, 702, 709, 710, 714, 715, 716, 717, 718, 719, 999, 214, 220, 46}) {
    const absl::Status status =
        Annotate(Check(**driver, static_cast<Result>(code), "x"), "GPU 0");
    EXPECT_EQ(status.code(), absl::StatusCode::kUnavailable) << code;
    EXPECT_TRUE(PoisonsContext(status)) << code;
  }
  // 201 and 400, an invalid context or handle, are mistakes of this program.
  for (const int code :
       {1, 2, 100, 200, 201, 209, 222, 400, 500, 600, 701, 712, 801})
    EXPECT_FALSE(PoisonsContext(Check(**driver, static_cast<Result>(code), "")))
        << code;
}

TEST(Status, NvjpegErrorsAreSortedByWhatOneCanDo) {
  EXPECT_TRUE(Check(NvjpegResult::kSuccess, "x").ok());
  EXPECT_EQ(Check(NvjpegResult::kBadJpeg, "x").code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Check(NvjpegResult::kIncompleteBitstream, "x").code(),
            absl::StatusCode::kDataLoss);
  EXPECT_EQ(Check(NvjpegResult::kAllocatorFailure, "x").code(),
            absl::StatusCode::kResourceExhausted);
  EXPECT_EQ(Check(NvjpegResult::kJpegNotSupported, "x").code(),
            absl::StatusCode::kUnimplemented);
  EXPECT_EQ(Message(Check(NvjpegResult::kExecutionFailed, "decoding")),
            "decoding: NVJPEG_STATUS_EXECUTION_FAILED (6)");
}

}  // namespace
}  // namespace leat::cuda
