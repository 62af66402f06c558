// SPDX-License-Identifier: Apache-2.0
#include "client/cli/commands/inspect.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>

#include "client/cli/base/exit_code.h"
#include "client/cli/previews/jpeg.h"
#include "core/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "leat/stored/v1/records.pb.h"
#include "tests/client/cli/fake.h"
#include "tests/support/test_data.h"

namespace leat::cli {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

std::string Read(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

class Inspecting : public ::testing::Test {
 protected:
  Inspecting() {
    folder_ =
        fs::temp_directory_path() / fmt::format("leat-inspect-{}", getpid());
    fs::create_directories(folder_);
  }
  ~Inspecting() override { fs::remove_all(folder_); }
  std::string Write(const std::string& name, std::string_view bytes) {
    fs::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << bytes;
    return folder_ / name;
  }
  Shell shell_;
  fs::path folder_;
};

class InspectingOf : public Inspecting,
                     public ::testing::WithParamInterface<TestData> {
 protected:
  // Returns the path of the file in image-variants whose name ends in `end`.
  static std::string Variant(const fs::path& folder, std::string_view end) {
    for (const auto& entry : fs::directory_iterator(folder))
      if (entry.path().native().ends_with(end)) return Read(entry.path());
    ADD_FAILURE() << folder << " has no file …" << end;
    return "";
  }
};
INSTANTIATE_TEST_SUITE_P(Data, InspectingOf, AllTestData(), TestDataName);

TEST_P(InspectingOf, VariantsOfJpegNamesThem) {
  const fs::path folder = TestDataFolder(GetParam(), "image-variants");
  if (folder.empty()) GTEST_SKIP() << NoTestData(GetParam(), "image-variants");
  const auto report = [&](const char* name) {
    return InspectJpeg(Variant(folder, name));
  };
  EXPECT_EQ(report("/444.jpg").subsampling, "4:4:4");
  EXPECT_EQ(report("/422.jpg").subsampling, "4:2:2");
  EXPECT_EQ(report("/440.jpg").subsampling, "4:4:0");
  EXPECT_EQ(report("/411.jpg").subsampling, "4:1:1");
  EXPECT_EQ(report("420-odd-both.jpg").subsampling, "4:2:0");
  EXPECT_EQ(report("420-odd-both.jpg").width % 2, 1u);
  EXPECT_EQ(report("mirror_horizontal.jpg").orientation, 2u);
  EXPECT_EQ(report("no_exif.jpg").orientation, 0u);
  EXPECT_GT(report("rotate_90.jpg").orientation, 4u);
  for (const char* name : {"/444.jpg", "/422.jpg", "/440.jpg", "/411.jpg"}) {
    EXPECT_TRUE(report(name).decodes) << name;
    EXPECT_THAT(report(name).problems, ::testing::IsEmpty()) << name;
  }
  const JpegReport png = report("png.jpeg");
  EXPECT_FALSE(png.decodes);
  ASSERT_EQ(png.problems.size(), 1u);
  EXPECT_THAT(png.problems[0], HasSubstr("not a JPEG"));
}

TEST_P(InspectingOf, AFileThatIsCutOrBrokenNeverCrashes) {
  const fs::path folder = TestDataFolder(GetParam(), "image-variants");
  if (folder.empty()) GTEST_SKIP() << NoTestData(GetParam(), "image-variants");
  const std::string file = Variant(folder, "420-odd-both.jpg");
  const size_t step = std::max<size_t>(1, file.size() / 30);
  for (size_t size = 0; size + 2 < file.size(); size += step) {
    EXPECT_FALSE(InspectJpeg(file.substr(0, size)).problems.empty()) << size;
  }
  // Bytes are inverted: it decodes, or the report says why it does not.
  for (size_t at = 0; at < std::min<size_t>(file.size(), 700); at += 7) {
    std::string broken = file;
    broken[at] = static_cast<char>(~broken[at]);
    const JpegReport report = InspectJpeg(broken);
    EXPECT_TRUE(report.decodes || !report.problems.empty()) << at;
  }
}

TEST_F(Inspecting, DamagedFilesAreFoundAndTheLosslessIsNamed) {
  const fs::path folder = TestDataFolder(TestData::kMade, "image-damaged");
  int files = 0;
  for (const auto& entry : fs::directory_iterator(folder)) {
    EXPECT_FALSE(InspectJpeg(Read(entry)).problems.empty()) << entry;
    ++files;
  }
  EXPECT_GE(files, 15);
  EXPECT_EQ(InspectJpeg(Read(folder / "lossless.jpg")).process, "lossless");
}

TEST_F(Inspecting, BombsAreReportedNotDecoded) {
  using namespace std::string_literals;
  const std::string frame =
      "\xFF\xD8\xFF\xC0\x00\x0B\x08\xFF\xFF\xFF\xFF\x01\x01\x11\x00"s;
  const JpegReport pixels = InspectJpeg(frame);
  EXPECT_EQ(pixels.width, 65535u);
  EXPECT_FALSE(pixels.decodes);
  EXPECT_THAT(pixels.problems.back(), HasSubstr("pixels"));
  std::string scans =
      "\xFF\xD8\xFF\xC2\x00\x0B\x08\x00\x10\x00\x10\x01\x01\x11\x00"s;
  for (int i = 0; i < 1000; ++i) {
    scans += "\xFF\xDA\x00\x08\x01\x01\x00\x00\x00\x00"s;
  }
  EXPECT_EQ(InspectJpeg(scans).scans, 1000u);
  EXPECT_THAT(InspectJpeg(scans).problems.back(), HasSubstr("1000 scans"));
}

TEST_F(Inspecting, HostileExifHasNoOrientation) {
  using namespace std::string_literals;
  for (const std::string& tiff :
       {"II*\0\xFF\xFF\xFF\xFF"s, "MM\0*\0\0\0\x08\xFF\xFF"s, "II"s,
        "II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0\x09\0\0\0"s}) {
    const std::string segment = "Exif\0\0"s + tiff;
    std::string file = "\xFF\xD8\xFF\xE1"s;
    file += '\0';
    file += static_cast<char>(segment.size() + 2);
    EXPECT_EQ(InspectJpeg(file + segment).orientation, 0u);
  }
}

TEST_F(Inspecting, APositionSaysWhereItGoesOn) {
  stored::v1::Position position;
  position.set_format(1);
  position.set_job("resnet50");
  position.set_plan_hash(std::string(32, 'f'));
  position.set_epoch(3);
  position.set_step(120);
  const std::string payload = position.SerializeAsString();
  const Digest digest = HashOf(payload);
  const std::string bytes =
      "LEATTOK1" + std::string(digest.begin(), digest.begin() + 8) + payload;
  EXPECT_EQ(shell_.Run({"inspect", Write("position", bytes)}), kGood);
  EXPECT_THAT(shell_.out, HasSubstr("epoch 3, step 120"));
  EXPECT_THAT(shell_.out, HasSubstr("resnet50"));
  EXPECT_EQ(shell_.Run({"inspect", Write("position", bytes + "x")}), kFailed);
  EXPECT_THAT(shell_.err, HasSubstr("checksum"));
  EXPECT_EQ(shell_.Run({"inspect", Write("position", bytes.substr(0, 10))}),
            kFailed);
}

TEST_F(Inspecting, APipeIsNamedAndNotWaitedFor) {
  const fs::path pipe = folder_ / "pipe";
  ASSERT_EQ(mkfifo(pipe.c_str(), 0600), 0);  // without a writer
  EXPECT_EQ(shell_.Run({"inspect", pipe}), kWrongUse);
  EXPECT_THAT(shell_.err, HasSubstr("pipe: a named pipe, want a file or a "));
}

TEST_F(Inspecting, AFolderIsCountedByClass) {
  Write("b/1.jpg", "x");
  Write("b/deep/2.JPEG", "xy");
  Write("a/3.jpe", "x");
  Write("a/readme.txt", "x");
  Write("empty/readme.txt", "x");
  Write(".hidden/4.jpg", "x");
  fs::create_directory_symlink(folder_, folder_ / "b/loop");
  EXPECT_EQ(shell_.Run({"inspect", folder_, "-o", "json"}), kGood);
  const Json json = Json::parse(shell_.out);
  EXPECT_EQ(json["images"], 3);
  ASSERT_EQ(json["classes"].size(), 3u);  // an empty class has a label too
  EXPECT_EQ(json["classes"][0]["class"], "a");
  EXPECT_EQ(json["classes"][1]["images"], 2);
  EXPECT_EQ(shell_.Run({"inspect", folder_ / "b/deep"}), kGood);
  shell_.spawn = [](const std::vector<std::string>&) {
    return Ended{0, R"({"format": "image_folder", "records": null})", ""};
  };
  EXPECT_EQ(shell_.Run({"inspect", folder_ / "empty"}), kUnhealthy);
  EXPECT_THAT(shell_.out, HasSubstr("no images"));
}

TEST_F(Inspecting, OtherFilesAreSaidToBeNothingKnown) {
  EXPECT_EQ(shell_.Run({"inspect", Write("text.jpg", "hello")}), kUnhealthy);
  EXPECT_EQ(shell_.Run({"inspect", "/dev/null"}), kWrongUse);
  EXPECT_EQ(shell_.Run({"inspect", Write("empty.jpg", "")}), kUnhealthy);
  EXPECT_EQ(shell_.Run({"inspect", folder_ / "none.tar"}), kNotFound);
  std::filesystem::create_symlink("round", folder_ / "round");
  EXPECT_EQ(shell_.Run({"inspect", folder_ / "round"}), kFailed);
  EXPECT_THAT(shell_.err, HasSubstr("Too many levels of symbolic links"));
}

// --- Datasets, which the worker lists ---------------------------------------

constexpr char kTar[] = R"json({"uri": "/d/a.tar", "format": "webdataset",
 "args": {}, "reader": "fn.readers.webdataset(paths=\"/d/a.tar\")",
 "files": {"count": 20, "bytes": 20971520, "least_bytes": 524288,
           "most_bytes": 2097152,
           "first": [{"uri": "/d/a.tar", "bytes": 524288},
                     {"uri": "/d/b.tar", "bytes": 2097152}]},
 "name": "a.tar", "records": 100, "bytes": 20971520, "classes": [],
 "fields": [{"name": "jpg", "type": "an encoded image", "least_bytes": 1,
             "mean_bytes": 2, "most_bytes": 3}],
 "records_read": 20, "bad_records": 0, "bad": [],
 "example": {"sample": 0, "record": "/d/a.tar: 0", "field_bytes": [2048]},
 "sampled": {"files": 8, "of_files": 20, "records": 40}})json";

class InspectingDatasets : public Inspecting {
 protected:
  InspectingDatasets() {
    shell_.spawn = [this](const std::vector<std::string>& argv) {
      ran_ = argv;
      return ended_;
    };
  }
  std::vector<std::string> ran_;
  absl::StatusOr<Ended> ended_ = Ended{0, kTar, ""};
};

TEST_F(InspectingDatasets, ShowWhatTheWorkersReadersFind) {
  const std::string path = Write("a.tar", "x");
  ASSERT_EQ(shell_.Run({"inspect", path}), kGood);
  EXPECT_THAT(ran_, ::testing::ElementsAre("leat-worker", "index",
                                           "--within-ms", "30000", "--read",
                                           "20", "--look", "--", path));
  EXPECT_THAT(
      shell_.out,
      HasSubstr("Reader   fn.readers.webdataset(paths=\"/d/a.tar\")\n"));
  EXPECT_THAT(shell_.out,
              HasSubstr("Records  about 100 (40 in 8 of 20 files;"));
  EXPECT_THAT(shell_.out, HasSubstr("Files    20 of 512.0 KiB to 2.0 MiB\n"));
  EXPECT_THAT(shell_.out,
              HasSubstr("Example  sample 0 (/d/a.tar: 0): jpg 2.0 KiB\n"));
  EXPECT_THAT(shell_.out, HasSubstr("The first 2 of 20 files\n"));
  ASSERT_EQ(shell_.Run({"inspect", path, "-o", "json"}), kGood);
  const Json json = Json::parse(shell_.out);
  EXPECT_EQ(json["kind"], "webdataset");
  EXPECT_EQ(json["path"], path);
  EXPECT_EQ(json["records"], 100);
}

TEST_F(InspectingDatasets, AreUrisAndPatternsToo) {
  ASSERT_EQ(shell_.Run({"inspect", "s3://b/train-*.tar", "--within", "5s",
                        "--format", "webdataset"}),
            kGood);
  EXPECT_THAT(ran_, ::testing::ElementsAre(
                        "leat-worker", "index", "--within-ms", "5000", "--read",
                        "20", "--format", "webdataset", "--look", "--",
                        "s3://b/train-*.tar"));
  EXPECT_EQ(shell_.Run({"inspect", folder_ / "no-*.tar"}), kGood);
}

TEST_F(InspectingDatasets, WithoutACountSayWhatIsKnown) {
  Json report = Json::parse(kTar);
  report["records"] = nullptr;
  report["records_found"] = 7;
  report.erase("sampled");
  report.erase("bytes");
  ended_ = Ended{0, report.dump(), ""};
  ASSERT_EQ(shell_.Run({"inspect", Write("a.tar", "x")}), kGood);
  EXPECT_THAT(shell_.out, HasSubstr("Records  not counted in time; 7 or more"));
}

TEST_F(InspectingDatasets, ErrorsAreTheWorkers) {
  ended_ = Ended{1, R"({"error": {"code": 15, "message": "a: cut off"}})", ""};
  EXPECT_EQ(shell_.Run({"inspect", Write("a", "x")}), kFailed);
  EXPECT_THAT(shell_.err, HasSubstr("leat: inspect: a: cut off\n"));
}

TEST_F(InspectingDatasets, AJsonFileThatNoReaderKnowsIsSaidToBeOne) {
  ended_ = Ended{1, R"({"error": {"code": 3, "message": "no reader"}})", ""};
  const std::string position =
      Write("checkpoint.json", R"({"epoch": 2, "step": 7})");
  EXPECT_EQ(shell_.Run({"inspect", position}), kWrongUse);
  EXPECT_THAT(shell_.err,
              HasSubstr("checkpoint.json: a JSON file with the keys "
                        "epoch,step, and neither a dataset nor a position"));
  EXPECT_THAT(shell_.err, HasSubstr("start=(epoch, step)"));
  EXPECT_EQ(shell_.Run({"inspect", position, "--format", "coco"}), kWrongUse);
  EXPECT_THAT(shell_.err, HasSubstr("no reader"));
}

TEST_F(InspectingDatasets, AFolderOfImagesIsCountedHere) {
  Write("photos/cat/1.jpg", "x");
  ASSERT_EQ(shell_.Run({"inspect", folder_ / "photos", "-o", "json"}), kGood);
  EXPECT_TRUE(ran_.empty());  // nothing else is in it
  Write("photos/classes.txt", "cat");
  ended_ = Ended{0, R"({"format": "image_folder", "records": null})", ""};
  ASSERT_EQ(shell_.Run({"inspect", folder_ / "photos", "-o", "json"}), kGood);
  EXPECT_EQ(Json::parse(shell_.out)["images"], 1);
  ended_ = NotFound("there is no program leat-worker on the PATH");
  ASSERT_EQ(shell_.Run({"inspect", folder_ / "photos", "-o", "json"}), kGood);
  EXPECT_EQ(Json::parse(shell_.out)["images"], 1);
  Write("shards/a.tar", "x");
  ended_ = Ended{0, kTar, ""};
  ASSERT_EQ(shell_.Run({"inspect", folder_ / "shards", "-o", "json"}), kGood);
  EXPECT_EQ(Json::parse(shell_.out)["kind"], "webdataset");
}

TEST_F(InspectingDatasets, AnImageThatIsNoJpegIsTheWorkersToo) {
  for (const char* name : {"a.png", "a.jpg"}) {
    ran_.clear();
    ASSERT_EQ(shell_.Run({"inspect", Write(name, "\x89PNG\r\n")}), kGood);
    EXPECT_FALSE(ran_.empty()) << name;
  }
}

}  // namespace
}  // namespace leat::cli
