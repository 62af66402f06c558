// SPDX-License-Identifier: Apache-2.0
#include "client/cli/previews/sheet.h"

#include <unistd.h>

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <limits>
#include <span>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "png.h"
#include "tests/client/cli/fake.h"

namespace leat::cli {
namespace {

using ::testing::HasSubstr;

template <class T>
Field MakeField(std::string name, std::string dtype, std::vector<int64_t> shape,
                const std::vector<T>& values) {
  Field field{std::move(name), std::move(dtype), std::move(shape), {}};
  const auto bytes = std::as_bytes(std::span<const T>(values));
  field.data.assign(bytes.begin(), bytes.end());
  return field;
}

RgbImage Decode(const std::string& bytes) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  EXPECT_TRUE(
      png_image_begin_read_from_memory(&image, bytes.data(), bytes.size()));
  image.format = PNG_FORMAT_RGB;
  RgbImage picture{
      static_cast<int>(image.width), static_cast<int>(image.height), {}};
  picture.rgb.resize(PNG_IMAGE_SIZE(image));
  EXPECT_TRUE(
      png_image_finish_read(&image, nullptr, picture.rgb.data(), 0, nullptr));
  return picture;
}

// Makes a different color wheel for each row.
Field Wheels(int rows, int side) {
  std::vector<uint8_t> values;
  for (int r = 0; r < rows; ++r) {
    for (int y = 0; y < side; ++y) {
      for (int x = 0; x < side; ++x) {
        const double u = (x + 0.5) / side - 0.5, v = (y + 0.5) / side - 0.5;
        const double angle = std::atan2(v, u) + r * 0.3;
        const double far = std::min(1.0, 2 * std::hypot(u, v));
        for (int c = 0; c < 3; ++c) {
          const double wave = 0.5 + 0.5 * std::cos(angle + c * 2.0944);
          values.push_back(static_cast<uint8_t>(255 * (1 - far + far * wave) *
                                                (far < 0.98 ? 1 : 0.2)));
        }
      }
    }
  }
  return MakeField("image", "uint8", {rows, side, side, 3}, values);
}

Rows SomeRows(int rows, int side) {
  Rows out;
  out.job_json = kJobJson;
  out.epoch = 0;
  out.step = 12;
  out.steps_per_epoch = 1251;
  out.batch = 1024;
  std::vector<int32_t> labels;
  for (int i = 0; i < rows; ++i) {
    out.samples.push_back(static_cast<uint64_t>(i) * 7919 % 1281167);
    labels.push_back(i % 4);  // the last has no name
  }
  out.fields = {Wheels(rows, side),
                MakeField("label", "int32", {rows}, labels)};
  return out;
}

TEST(Sheet, TheFileDecodesToWhatWasDrawn) {
  const absl::StatusOr<Sheet> sheet = MakeSheet(SomeRows(12, 64), "", {});
  ASSERT_TRUE(sheet.ok()) << sheet.status();
  EXPECT_EQ(sheet->tiles, 12u);
  const absl::StatusOr<std::string> png = EncodePng(sheet->picture);
  ASSERT_TRUE(png.ok());
  const RgbImage read = Decode(*png);
  EXPECT_EQ(read.width, sheet->picture.width);
  EXPECT_EQ(read.rgb, sheet->picture.rgb);
  EXPECT_GT(read.width, read.height);
  EXPECT_LT(read.width, 3 * read.height);
}

TEST(Sheet, TheCommandWritesTheFile) {
  Shell shell;
  shell.service.rows = SomeRows(24, 192);
  const char* kept = std::getenv("LEAT_KEEP_SHEET");
  const std::string path = kept != nullptr
                               ? kept
                               : std::filesystem::temp_directory_path() /
                                     fmt::format("leat-sheet-{}.png", getpid());
  EXPECT_EQ(shell.Run({"sheet", "resnet50", "--step", "12", "--rows", "24",
                       "-o", path}),
            0)
      << shell.err;
  EXPECT_EQ(shell.service.calls.back(), "rows resnet50 0 12 24");
  EXPECT_THAT(shell.err, HasSubstr("24 of 1024 rows of job resnet50"));
  EXPECT_EQ(shell.out, "");
  std::ifstream file(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << file.rdbuf();
  EXPECT_GT(Decode(bytes.str()).width, 5 * 192);
  if (kept == nullptr) std::filesystem::remove(path);
  EXPECT_EQ(shell.Run({"sheet", "resnet50", "-o", "-"}), 0);
  EXPECT_EQ(shell.out.substr(1, 3), "PNG");
  EXPECT_EQ(shell.Run({"sheet", "resnet50", "-o", "/no/such/folder/a.png"}), 1);
  shell.terminal = true;
  EXPECT_EQ(shell.Run({"sheet", "resnet50", "-o", "-"}), 2);
}

TEST(Sheet, WithoutAnImageTheErrorListsTheFields) {
  Shell shell;
  shell.service.rows = SomeRows(2, 8);
  shell.service.rows.fields.erase(shell.service.rows.fields.begin());
  EXPECT_EQ(shell.Run({"sheet", "resnet50", "-o", "-"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("no image among the job's fields: label "
                                   "int32 ()"));
  shell.service.rows = SomeRows(2, 8);
  EXPECT_EQ(shell.Run({"sheet", "resnet50", "--field", "label", "-o", "-"}), 2);
  EXPECT_EQ(shell.Run({"sheet", "resnet50", "--field", "imgae", "-o", "-"}), 2);
  EXPECT_THAT(shell.err, HasSubstr("no field \"imgae\""));
}

TEST(Sheet, InvalidRowsStandOut) {
  Rows rows = SomeRows(4, 32);
  const RgbImage before = MakeSheet(rows, "", {})->picture;
  rows.fields.push_back(MakeField<uint8_t>("valid", "bool", {4}, {1, 0, 1, 1}));
  const RgbImage after = MakeSheet(rows, "", {})->picture;
  EXPECT_NE(before.rgb, after.rgb);
  int red = 0;
  for (size_t i = 0; i < after.rgb.size(); i += 3) {
    red += after.rgb[i] == 190 && after.rgb[i + 1] == 30;
  }
  EXPECT_GT(red, 300);
  // Padding is not valid either, but it is not an error.
  rows.samples[1] = kNoSample;
  const RgbImage padded = MakeSheet(rows, "", {})->picture;
  for (size_t i = 0; i < padded.rgb.size(); i += 3)
    ASSERT_FALSE(padded.rgb[i] == 190 && padded.rgb[i + 1] == 30);
}

TEST(Sheet, RowsOfAMixtureHaveTheirSourceAndTheClassOfItsDataset) {
  Rows mixed = SomeRows(2, 64);
  mixed.samples = {3, 12};
  mixed.job_json = R"({"spec": {"name": "j", "source_field": "from",
    "sources": [{"name": "web"}, {"name": "books"}]},
    "datasets": [{"classes": ["cat"], "shards": {"num_samples": "10"}},
                 {"classes": ["page"], "shards": {"num_samples": "10"}}]})";
  mixed.fields[1] = MakeField<int32_t>("class", "int32", {2}, {0, 0});
  mixed.fields.push_back(MakeField<int32_t>("from", "int32", {2}, {0, 1}));
  Rows plain = SomeRows(2, 64);
  plain.samples = mixed.samples;
  plain.job_json = R"({"spec": {"name": "j"}, "dataset": {
    "name": "d", "classes": ["web: cat", "books: page"]}})";
  plain.fields[1] = MakeField<int32_t>("class", "int32", {2}, {0, 1});
  const auto lower_half = [](const Rows& rows) {
    std::vector<uint8_t> rgb = MakeSheet(rows, "", {})->picture.rgb;
    rgb.erase(rgb.begin(),
              rgb.begin() + static_cast<ptrdiff_t>(rgb.size() / 2));
    return rgb;
  };
  EXPECT_EQ(lower_half(mixed), lower_half(plain));
  plain.fields[1] = MakeField<int32_t>("class", "int32", {2}, {0, 0});
  EXPECT_NE(lower_half(mixed), lower_half(plain));
}

TEST(Sheet, AnySizeOfGridHoldsTogether) {
  for (const int rows : {1, 3, 17}) {
    for (const int side : {2, 28, 260}) {
      if (rows * side > 1000) continue;
      for (const int columns : {0, 1, 64}) {
        SheetLayout layout;
        layout.columns = columns;
        const absl::StatusOr<Sheet> sheet =
            MakeSheet(SomeRows(rows, side), "", layout);
        ASSERT_TRUE(sheet.ok());
        EXPECT_TRUE(EncodePng(sheet->picture).ok());
      }
    }
  }
  EXPECT_FALSE(MakeSheet(SomeRows(0, 8), "", {}).ok());
}

uint8_t First(const Field& field) {
  const absl::StatusOr<Previews> previews = ToPreviews(RowsOf(field));
  EXPECT_TRUE(previews.ok()) << previews.status();
  return previews.ok() ? previews->rows[0].rgb[0] : 0;
}

TEST(Previews, LayoutsAndTypesAreRead) {
  const auto shape = [](std::vector<int64_t> row, std::string dtype) {
    Field field{"x", std::move(dtype), {1}, {}};
    field.shape.insert(field.shape.end(), row.begin(), row.end());
    const absl::StatusOr<ImageShape> found = ImageShapeOf(RowsOf(field));
    if (!found.ok()) return std::string("no");
    return fmt::format("{}x{}x{}{}", found->height, found->width,
                       found->channels, found->channels_first ? " first" : "");
  };
  EXPECT_EQ(shape({8, 9, 3}, "uint8"), "8x9x3");
  EXPECT_EQ(shape({3, 8, 9}, "float32"), "8x9x3 first");
  EXPECT_EQ(shape({1, 8, 9}, "float16"), "8x9x1 first");
  EXPECT_EQ(shape({8, 9}, "uint8"), "8x9x1");
  EXPECT_EQ(shape({8, 9, 4}, "uint8"), "8x9x4");
  EXPECT_EQ(shape({8, 9, 2}, "uint8"), "no");
  EXPECT_EQ(shape({1, 1, 1}, "uint8"), "no");
  EXPECT_EQ(shape({8, 9, 3}, "complex64"), "no");
  EXPECT_EQ(shape({8}, "uint8"), "no");
  EXPECT_EQ(shape({0, 9, 3}, "uint8"), "no");
  EXPECT_EQ(shape({1 << 20, 9, 3}, "uint8"), "no");
}

TEST(Previews, FloatsAreShownSensibly) {
  const auto field = [](std::vector<float> values) {
    return MakeField("x", "float32", {1, 2, 2}, values);
  };
  EXPECT_EQ(First(field({1, 0.5, 0, 0})), 255);
  EXPECT_EQ(First(field({100, 0, 200, 255})), 100);
  EXPECT_EQ(First(field({2.1f, -1.9f, 0, 0})), 255);
  EXPECT_THAT(ToPreviews(RowsOf(field({2.1f, -1.9f, 0, 0})))->note,
              HasSubstr("-1.9 to 2.1"));
  const float nan = std::numeric_limits<float>::quiet_NaN();
  EXPECT_EQ(First(field({nan, 1, 0, 1})), 0);
  EXPECT_EQ(First(field({nan, nan, nan, nan})), 0);
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(First(field({infinity, 1, 0, 1})), 255);
  EXPECT_EQ(First(MakeField<uint16_t>("x", "float16", {1, 2, 2},
                                      {0x3800, 0x3C00, 0, 0x0001})),
            128);
}

TEST(Previews, EveryTypeIsRead) {
  const auto first = [](const char* dtype, auto value) {
    return First(MakeField("x", dtype, {1, 2, 2},
                           std::vector<decltype(value)>(4, value)));
  };
  EXPECT_EQ(first("bool", uint8_t{1}), 255);
  EXPECT_EQ(first("uint8", uint8_t{100}), 100);
  EXPECT_EQ(first("int8", int8_t{100}), 100);
  EXPECT_EQ(first("int16", int16_t{100}), 100);
  EXPECT_EQ(first("uint16", uint16_t{100}), 100);
  EXPECT_EQ(first("int32", int32_t{100}), 100);
  EXPECT_EQ(first("uint32", uint32_t{100}), 100);
  EXPECT_EQ(first("int64", int64_t{100}), 100);
  EXPECT_EQ(first("bfloat16", uint16_t{0x42c8}), 100);
  const auto whole = [](const char* dtype, auto value) {
    const Field field =
        MakeField("x", dtype, {2}, std::vector<decltype(value)>(2, value));
    return WholeAt(RowsOf(field), 1);
  };
  EXPECT_EQ(whole("int8", int8_t{-7}), -7);
  EXPECT_EQ(whole("int16", int16_t{-700}), -700);
  EXPECT_EQ(whole("uint16", uint16_t{65535}), 65535);
  EXPECT_EQ(whole("uint32", UINT32_MAX), 4294967295);
  EXPECT_EQ(whole("bool", uint8_t{1}), 1);
  EXPECT_EQ(whole("bfloat16", uint16_t{0x42c8}), std::nullopt);
}

TEST(Previews, ChannelsFirstAndLastGiveTheSamePicture) {
  std::vector<uint8_t> last, first(12);
  for (uint8_t i = 0; i < 12; ++i) {
    last.push_back(i);
    first[i % 3 * 4 + i / 3] = i;
  }
  const auto a =
      ToPreviews(RowsOf(MakeField("x", "uint8", {1, 2, 2, 3}, last)));
  const auto b =
      ToPreviews(RowsOf(MakeField("x", "uint8", {1, 3, 2, 2}, first)));
  EXPECT_EQ(a->rows[0].rgb, b->rows[0].rgb);
}

TEST(Previews, FitKeepsTheAspectAndAverages) {
  const RgbImage wide{
      4, 2, {0,   0,   0,   255, 255, 255, 0,   0,   0,   255, 255, 255,
             255, 255, 255, 0,   0,   0,   255, 255, 255, 0,   0,   0}};
  const RgbImage small = Fit(wide, 1, 2);
  EXPECT_EQ(small.width, 2);
  EXPECT_EQ(small.height, 1);
  EXPECT_EQ(small.rgb[0], 128);
  const RgbImage large = Fit(wide, 10, 100);
  EXPECT_EQ(large.width, 12);
  EXPECT_EQ(large.height, 6);
  EXPECT_EQ(large.rgb[0], 0);
  EXPECT_EQ(large.rgb[3 * 3], 255);
}

}  // namespace
}  // namespace leat::cli
