// SPDX-License-Identifier: Apache-2.0
//
// Reports a dataset's contents from its URI alone.
#include "worker/index_command/dataset_report.h"

#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/escaping.h"
#include "core/hash.h"
#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "nlohmann/json.hpp"
#include "tests/worker/source/array_record/riegeli_writer.h"
#include "tests/worker/source/loader_support.h"
#include "tests/worker/source/storage/remote/fixture.h"
#include "tests/worker/source/tfrecord/tfrecord_maker.h"
#include "tests/worker/source/webdataset/tar_maker.h"
#include "tests/worker/temp_dir.h"
#include "worker/source/format_names.h"
#include "worker/source/guess/format.h"
#include "worker/source/guess/reader.h"

namespace leat::worker {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Json = nlohmann::json;
using Code = absl::StatusCode;
using Texts = std::vector<std::string>;

// A PNG of one pixel.
const std::string kImage = absl::HexStringToBytes(
    "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753"
    "de0000000c49444154789c63484c4a0600024e0127c0619e190000000049454e"
    "44ae426082");

class ReportTest : public ::testing::Test {
 protected:
  absl::StatusOr<Json> Try(const std::string& uri, KnownReader known = {}) {
    options_.uri = uri;
    options_.known = std::move(known);
    ReportProgress progress;
    const auto text = ReportDataset(options_, &progress);
    if (!text.ok()) return text.status();
    return Json::parse(*text);
  }
  Json Report(const std::string& uri, KnownReader known = {}) {
    const auto report = Try(uri, std::move(known));
    EXPECT_TRUE(report.ok()) << report.status();
    return report.ok() ? *report : Json::object();
  }
  // Returns a field's names, or types.
  static Texts FieldsOf(const Json& report, const char* what) {
    Texts found;
    for (const Json& field : report.value("fields", Json::array()))
      found.push_back(field.at(what));
    return found;
  }
  std::string Photos(int count) {
    for (int i = 0; i < count; ++i)
      dir_.Write(
          fmt::format("photos/{}/{:03}.jpg", i % 2 == 0 ? "cat" : "dog", i),
          kImage + std::string(static_cast<size_t>(i) + 1, 'x'));
    return dir_.path() + "/photos";
  }

  TempDir dir_;
  ReportOptions options_;
};

TEST_F(ReportTest, AnImageFolder) {
  const std::string folder = Photos(30);
  const Json report = Report(folder);
  EXPECT_EQ(report.at("format"), "image_folder");
  EXPECT_EQ(report.at("records"), 30);
  EXPECT_EQ(report.at("bytes"), 30 * kImage.size() + 30 * 31 / 2);
  EXPECT_EQ(report.at("classes"), Json({"cat", "dog"}));
  EXPECT_EQ(report.at("records_read"), 30);
  EXPECT_EQ(report.at("bad_records"), 0);
  EXPECT_THAT(FieldsOf(report, "name"), ElementsAre("image", "label"));
  EXPECT_EQ(report.at("fields")[0].at("least_bytes"), kImage.size() + 1);
  EXPECT_EQ(report.at("fields")[0].at("most_bytes"), kImage.size() + 30);
  const auto index =
      BuildIndex({.op = "readers.image_folder",
                  .inputs = {},
                  .args = {{"path", folder}, {"repeat", int64_t{1}}}},
                 {});
  ASSERT_TRUE(index.ok());
  EXPECT_EQ(report.at("fingerprint"), ToHex(index->fingerprint));
}

TEST_F(ReportTest, AFolderMayHaveThePatternsLettersInItsName) {
  const std::string folder = dir_.path() + "/photos [v2]{*}?";
  std::filesystem::rename(Photos(4), folder);
  const Json report = Report(folder);
  EXPECT_EQ(report.at("format"), "image_folder");
  EXPECT_EQ(report.at("records"), 4);
}

TEST_F(ReportTest, AnArchiveSaysItsFields) {
  std::string tar;
  for (int i = 0; i < 5; ++i)
    tar += TarMemberOf(fmt::format("a/{}.jpg", i), kImage) +
           TarMemberOf(fmt::format("a/{}.cls", i), fmt::format("{}", i)) +
           TarMemberOf(fmt::format("a/{}.json", i), "{}");
  dir_.Write("t/x-0.tar", tar + TarEnd());
  const Json report = Report(dir_.path() + "/t");
  EXPECT_EQ(report.at("format"), "webdataset");
  EXPECT_EQ(report.at("records"), 5);
  EXPECT_THAT(FieldsOf(report, "name"), ElementsAre("jpg", "cls", "json"));
  EXPECT_THAT(FieldsOf(report, "type"),
              ElementsAre("an encoded image", "int64 scalar", "uint8 (?,)"));
  EXPECT_EQ(Report(dir_.path() + "/t/x-*.tar").at("records"), 5);
}

TEST_F(ReportTest, ImagesOfSeveralFormatsAreOneField) {
  const auto names_of = [&](const std::vector<const char*>& members) {
    std::string tar;
    for (const char* name : members) tar += TarMemberOf(name, "1");
    return FieldsOf(Report(dir_.Write("a.tar", tar + TarEnd())), "name");
  };
  EXPECT_THAT(names_of({"0.jpg", "0.cls", "1.cls", "1.png", "2.jpg", "2.cls"}),
              ElementsAre("jpg;png", "cls"));
  // Two images per sample, or parts of one, are separate fields.
  EXPECT_THAT(names_of({"0.jpg", "0.png", "1.png", "1.jpg"}),
              ElementsAre("jpg", "png"));
  EXPECT_THAT(names_of({"0.left.png", "0.right.png"}),
              ElementsAre("left.png", "right.png"));
  const auto other = Try(dir_.Write(
      "a.tar", TarMemberOf("0.jpg", "1") + TarMemberOf("0.cls", "1") +
                   TarMemberOf("1.gif", "1") + TarMemberOf("1.cls", "1") +
                   TarEnd()));
  EXPECT_THAT(other.status().ToString(),
              HasSubstr("has no component \"jpg\" (it has \"gif\", and "
                        "\"jpg;gif\" takes either; missing = "));
}

TEST_F(ReportTest, RecordsSayTheirFeatures) {
  std::string file;
  for (int i = 0; i < 4; ++i)
    file += TfrecordOf(ExampleOf({{"image", BytesFeature({kImage})},
                                  {"label", IntFeature({i})},
                                  {"boxes", FloatFeature({1, 2, 3, 4})},
                                  {"text", BytesFeature({"words"})}}));
  const Json report = Report(dir_.Write("x.tfrecord-00000-of-00001", file));
  EXPECT_EQ(report.at("format"), "tfrecord");
  EXPECT_EQ(report.at("records"), 4);
  EXPECT_THAT(FieldsOf(report, "name"),
              ElementsAre("boxes", "image", "label", "text"));
  EXPECT_THAT(FieldsOf(report, "type"),
              ElementsAre("float32 (?,)", "an encoded image", "int64 scalar",
                          "uint8 (?,)"));
  EXPECT_EQ(report.at("bad_records"), 0);
}

TEST_F(ReportTest, BadRecordsAreNamed) {
  std::string first = TfrecordOf(ExampleOf({{"label", IntFeature({1})}}));
  std::string second = TfrecordOf(ExampleOf({{"other", IntFeature({1})}}));
  const Json report = Report(dir_.Write("x.tfrecord", first + second));
  EXPECT_EQ(report.at("bad_records"), 1);
  EXPECT_EQ(report.at("bad")[0].at("sample"), 1);
  EXPECT_THAT(report.at("bad")[0].at("error").get<std::string>(),
              HasSubstr("label"));
}

TEST_F(ReportTest, ImagesThatCannotBeDecodedAreBad) {
  const std::string folder = Photos(2);
  dir_.Write("photos/cat/empty.jpg", "");
  dir_.Write("photos/dog/page.jpg", "<!DOCTYPE html><html></html>");
  dir_.Write("photos/dog/short.jpg", kImage.substr(0, 45));
  dir_.Write("photos/dog/other.heic", "x");
  const Json report = Report(folder);
  EXPECT_EQ(report.at("records_read"), 5);
  ASSERT_EQ(report.at("bad_records"), 3);
  EXPECT_EQ(report.at("bad")[0].at("record"), folder + "/cat/empty.jpg");
  EXPECT_THAT(report.at("bad")[1].at("error").get<std::string>(),
              HasSubstr("HTML"));
  ASSERT_EQ(report.at("passed_over").size(), 1);
  EXPECT_EQ(report.at("passed_over")[0].at("what"), "HEIC images (.heic)");
  EXPECT_EQ(report.at("passed_over")[0].at("first"), "dog/other.heic");
}

TEST_F(ReportTest, OfAnIndexInBlocksAFewAreKeptAndReadFrom) {
  std::string file;
  for (int i = 0; i < 2000; ++i)
    file += TfrecordOf(ExampleOf({{"n", IntFeature({i})}}));
  options_.limits.block_bytes = 400;  // a hundred records each
  options_.read_records = 40;
  const Json report = Report(dir_.Write("x.tfrecord", file));
  EXPECT_EQ(report.at("records"), 2000);
  EXPECT_GT(report.at("index").at("blocks"), 10);
  EXPECT_EQ(report.at("records_read"), 40);
  EXPECT_EQ(report.at("bad_records"), 0);
}

TEST_F(ReportTest, NothingIsReadIfNothingIsToBe) {
  options_.read_records = 0;
  const Json report = Report(Photos(3));
  EXPECT_EQ(report.at("records_read"), 0);
  EXPECT_FALSE(report.at("fields")[0].contains("mean_bytes"));
}

TEST_F(ReportTest, WhatTheCallerKnowsCounts) {
  std::string tar = TarMemberOf("0.jpg", kImage) + TarMemberOf("0.txt", "ab");
  const std::string path = dir_.Write("data", tar + TarEnd());
  EXPECT_THAT(FieldsOf(Report(path), "name"), ElementsAre("jpg", "txt"));
  const Json report =
      Report(path, {.format = "webdataset",
                    .args = {{"ext", {"txt"}}, {"types", {"uint8[2]"}}}});
  EXPECT_THAT(FieldsOf(report, "name"), ElementsAre("txt"));
  EXPECT_THAT(FieldsOf(report, "type"), ElementsAre("uint8 (2,)"));
}

TEST_F(ReportTest, ErrorsNameWhatIsWrong) {
  const std::string folder = Photos(2);
  EXPECT_EQ(Try(dir_.path() + "/none").status().code(), Code::kNotFound);
  const auto known = [&](KnownReader reader) {
    return Try(folder, std::move(reader)).status();
  };
  EXPECT_THAT(known({.format = "imagefolder"}).ToString(),
              HasSubstr("no format \"imagefolder\": want one of "));
  EXPECT_THAT(known({.args = {{"pth", {"x"}}}}).ToString(),
              HasSubstr("no argument \"pth\": want one of path, repeat"));
  EXPECT_THAT(known({.args = {{"repeat", {"two"}}}}).ToString(),
              HasSubstr("argument \"repeat\": \"two\" is no number"));
  EXPECT_THAT(known({.args = {{"repeat", {"0.5"}}}}).ToString(),
              HasSubstr("want a whole number"));
  EXPECT_THAT(known({.args = {{"repeat", {"0"}}}}).ToString(),
              HasSubstr("argument \"repeat\""));
  EXPECT_THAT(known({.args = {{"repeat", {"1", "2"}}}}).ToString(),
              HasSubstr("is given 2 times"));
  EXPECT_EQ(known({.format = "external"}).code(), Code::kInvalidArgument);
}

TEST_F(ReportTest, HostileFirstFilesAreErrors) {
  EXPECT_EQ(Try(dir_.Write("a.tar", std::string(512, 'x'))).status().code(),
            Code::kDataLoss);
  EXPECT_EQ(Try(dir_.Write("b.tar", TarEnd())).status().code(),
            Code::kNotFound);
  EXPECT_EQ(Try(dir_.Write("c.tfrecord", "short")).status().code(),
            Code::kOutOfRange);
  EXPECT_EQ(
      Try(dir_.Write("d.tfrecord", TfrecordOf("\x0a\xff"))).status().code(),
      Code::kDataLoss);
  dir_.Write("m/index.json", "[");
  EXPECT_EQ(Try(dir_.path() + "/m").status().code(), Code::kDataLoss);
}

// --- What bytes say ---------------------------------------------------------

std::string BigEndian(const std::vector<uint32_t>& numbers) {
  std::string text;
  for (const uint32_t number : numbers)
    for (int shift = 24; shift >= 0; shift -= 8)
      text += static_cast<char>(number >> shift);
  return text;
}

std::string NpyOf(const char* shape, std::string_view data) {
  std::string header = fmt::format(
      "{{'descr': '<f4', 'fortran_order': False, 'shape': {}, }}", shape);
  header.resize(117, ' ');
  return fmt::format("\x93NUMPY\x01{}{}{}\n{}", std::string(1, '\0'),
                     Little(uint16_t{118}), header, data);
}

TEST_F(ReportTest, WhatAFileIsFollowsFromItsBytesWhateverItsName) {
  const auto format_of = [&](const std::string& bytes) {
    return Report(dir_.Write("data", bytes)).value("format", "");
  };
  EXPECT_EQ(format_of(TarMemberOf("0.jpg", kImage) + TarEnd()), "webdataset");
  EXPECT_EQ(format_of(TfrecordOf(ExampleOf({{"n", IntFeature({1})}}))),
            "tfrecord");
  EXPECT_EQ(format_of(NpyOf("(3, 2)", std::string(24, 'x'))), "numpy");
  EXPECT_EQ(format_of(RiegeliWriter::File({"a", "b"}, 1)), "array_record");
  EXPECT_EQ(format_of(BigEndian({0x803, 2, 3, 3}) + std::string(18, 'x')),
            "idx");
  std::string cifar(3 * 3073, '\x09');
  EXPECT_EQ(format_of(cifar), "cifar10");
  cifar[3073] = 10;  // a label of the second record
  EXPECT_EQ(Try(dir_.Write("data", cifar)).status().code(),
            Code::kInvalidArgument);
  EXPECT_EQ(format_of(std::string(3074, '\x13')), "cifar100");
  EXPECT_EQ(format_of(kImage), "files");
}

TEST_F(ReportTest, WhatNoReaderTakesIsNamed) {
  for (const auto& [bytes, what] : {std::pair{"PK\x03\x04 ", "a zip archive"},
                                    {"\x1f\x8b\x08 ", "a gzip file"},
                                    {"ARROW1", "an Arrow file"},
                                    {"\x89HDF\r\n\x1a\n", "an HDF5 file"}}) {
    const absl::Status status = Try(dir_.Write("a.tar", bytes)).status();
    EXPECT_EQ(status.code(), Code::kInvalidArgument) << what;
    EXPECT_THAT(status.ToString(), HasSubstr(what));
    EXPECT_THAT(status.ToString(), HasSubstr("a.tar: "));
  }
  EXPECT_THAT(Try(dir_.Write("b", "\x01\x02")).status().ToString(),
              HasSubstr("neither its name nor its first bytes say"));
}

TEST_F(ReportTest, FoldersOfArraysAndOfFilesWithoutEndings) {
  dir_.Write("mnist/t10k-images-idx3-ubyte",
             BigEndian({0x803, 1, 2, 2}) + "abcd");
  const std::string images = dir_.Write("mnist/train-images-idx3-ubyte",
                                        BigEndian({0x803, 1, 2, 2}) + "abcd");
  const std::string labels =
      dir_.Write("mnist/train-labels-idx1-ubyte", BigEndian({0x801, 1}) + "a");
  EXPECT_EQ(Report(dir_.path() + "/mnist").at("reader"),
            fmt::format("fn.readers.idx(images=\"{}\", labels=\"{}\")", images,
                        labels));
  for (int i = 0; i < 2; ++i)
    dir_.Write(fmt::format("arrays/{}.npy", i),
               NpyOf("(2,)", std::string(8, 'x')));
  EXPECT_EQ(Report(dir_.path() + "/arrays/*.npy").at("reader"),
            fmt::format("fn.readers.numpy(path=\"{}/arrays\")", dir_.path()));
  for (int i = 0; i < 2; ++i)
    dir_.Write(fmt::format("records/part-{}", i),
               TfrecordOf(ExampleOf({{"n", IntFeature({i})}})));
  const Json report = Report(dir_.path() + "/records");
  EXPECT_EQ(report.at("records"), 2);
  EXPECT_EQ(report.at("reader"),
            fmt::format("fn.readers.tfrecord(paths=\"{}/records/*\", "
                        "features=[\"n\"], types=[\"int64\"])",
                        dir_.path()));
}

TEST_F(ReportTest, ArrayRecordsOfAFolderAndAPattern) {
  for (int i = 0; i < 2; ++i)
    dir_.Write(fmt::format("r/{}.array_record", i),
               RiegeliWriter::File({kImage, kImage}, 1));
  const Json report = Report(dir_.path() + "/r");
  EXPECT_EQ(report.at("records"), 4);
  EXPECT_EQ(
      report.at("reader"),
      fmt::format("fn.readers.array_record(paths=\"{}/r\")", dir_.path()));
  EXPECT_EQ(Report(dir_.path() + "/r/*.array_record").at("records"), 4);
  const Json bytes =
      Report(dir_.Write("b.array_record", RiegeliWriter::File({"text"}, 1)));
  EXPECT_THAT(bytes.at("reader").get<std::string>(),
              HasSubstr("type=\"bytes\""));
}

TEST_F(ReportTest, AnExampleRecordAndTheFilesAreShown) {
  dir_.Write("t/a.tar", TarMemberOf("0.jpg", kImage) +
                            TarMemberOf("0.cls", "1") + TarEnd());
  const Json report = Report(dir_.path() + "/t");
  EXPECT_EQ(report.at("example").at("sample"), 0);
  EXPECT_EQ(report.at("example").at("field_bytes")[0], kImage.size());
  EXPECT_THAT(report.at("example").at("record").get<std::string>(),
              HasSubstr("/t/a.tar"));
  EXPECT_EQ(report.at("files").at("count"), 1);
  EXPECT_EQ(report.at("files").at("first")[0].at("uri"),
            dir_.path() + "/t/a.tar");
}

// --- A look -----------------------------------------------------------------

TEST_F(ReportTest, ALookListsAFewOfManyFiles) {
  for (int i = 0; i < 40; ++i)
    dir_.Write(
        fmt::format("t/{:02}.tar", i),
        TarMemberOf("0.jpg", kImage) + TarMemberOf("1.jpg", kImage) + TarEnd());
  options_.look = true;
  const Json report = Report(dir_.path() + "/t");
  EXPECT_EQ(report.at("sampled"),
            Json({{"files", 8}, {"of_files", 40}, {"records", 16}}));
  EXPECT_EQ(report.at("records"), 80);
  EXPECT_EQ(report.at("name"), "t");
  EXPECT_EQ(report.at("files").at("count"), 40);
  EXPECT_FALSE(report.contains("fingerprint"));
  EXPECT_THAT(report.at("reader").get<std::string>(),
              HasSubstr(dir_.path() + "/t\""));
}

TEST_F(ReportTest, ALookThatHasNoTimeLeftSaysWhatItKnows) {
  const std::atomic<bool> over = true;
  options_.limits.cancelled = &over;
  const std::string path = dir_.Write("data_batch_1.bin", std::string(3073, 0));
  EXPECT_EQ(Try(path).status().code(), Code::kCancelled);
  options_.look = true;
  const Json report = Report(path);
  EXPECT_TRUE(report.at("records").is_null());
  EXPECT_THAT(FieldsOf(report, "type"),
              ElementsAre("uint8 (32, 32, 3)", "int32 scalar"));
}

TEST_F(ReportTest, ALookLeavesLocalImageFoldersToTheCaller) {
  options_.look = true;
  const Json report = Report(Photos(2));
  EXPECT_EQ(report.at("format"), "image_folder");
  EXPECT_TRUE(report.at("records").is_null());
}

// Braces name objects one by one, so each costs a request.
class RemoteReportTest : public RemoteStorage {
 protected:
  // Returns how often each name below the bucket was requested.
  std::map<std::string, int> Heads() const {
    std::map<std::string, int> heads;
    for (const ObjectServer::Request& each : server_.Seen())
      if (each.method == "HEAD") ++heads[each.Path()];
    return heads;
  }
};

TEST_F(RemoteReportTest, WhatBracesStandForIsAskedForOnce) {
  constexpr int kFiles = 20;
  for (int i = 0; i < kFiles; ++i)
    server_.Put(fmt::format("/bucket/train-{:03}.tar", i),
                TarMemberOf(fmt::format("{}.txt", i), "x") + TarEnd());
  for (const bool look : {false, true}) {
    const std::map<std::string, int> before = Heads();
    ReportOptions options;
    options.limits.storage = storage_.get();
    options.uri = "s3://bucket/train-{000..019}.tar";
    options.look = look;
    ReportProgress progress;
    const auto text = ReportDataset(options, &progress);
    ASSERT_TRUE(text.ok()) << text.status();
    const Json report = Json::parse(*text);
    EXPECT_EQ(report.at("records"), kFiles);
    EXPECT_EQ(report.at("files").at("count"), kFiles);
    int names = 0;
    for (const auto& [name, count] : Heads()) {
      if (!name.ends_with(".tar") || name.find('{') != std::string::npos)
        continue;
      ++names;
      const auto it = before.find(name);
      // The first one determines the fields.
      EXPECT_LE(count - (it == before.end() ? 0 : it->second),
                name == "/bucket/train-000.tar" ? 2 : 1)
          << name;
    }
    EXPECT_EQ(names, kFiles);
  }
}

TEST(FormatOfName, FollowsFromEndings) {
  EXPECT_EQ(FormatOfName("s3://b/a.tar"), "webdataset");
  EXPECT_EQ(FormatOfName("https://h/a.parquet?sig=1"), "parquet");
  EXPECT_EQ(FormatOfName("/d/train-images-idx3-ubyte.gz"), "idx");
  EXPECT_EQ(FormatOfName("/d.tar/photos"), "");
  EXPECT_EQ(FormatOfName(""), "");
}

}  // namespace
}  // namespace leat::worker
