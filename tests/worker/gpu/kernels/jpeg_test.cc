// SPDX-License-Identifier: Apache-2.0
//
// The JPEG kernels' bodies have libjpeg's bits: for photos and for arbitrary
// coefficients. CMake runs this test with libjpeg's SIMD and without.
#include "worker/gpu/kernels/jpeg.h"

#include <array>
#include <functional>
#include <random>

#include "gtest/gtest.h"
#include "tests/support/sanitized.h"
#include "tests/support/test_data.h"
#include "tests/worker/gpu/kernels/jpeg_support.h"

namespace leat::worker {
namespace {

using testing::JpegColor;
using testing::JpegSpec;
using testing::MakeJpeg;

void Compare(JpegDecoder& decoder, const std::string& file, const Rect& window,
             bool gray, const std::string& where) {
  const auto bytes = BytesOf(file);
  const auto pixels = ByKernels(decoder, bytes, window, gray);
  ASSERT_TRUE(pixels.has_value()) << where;
  const WindowOfJpeg want = DecodeJpeg(decoder, bytes, window, gray);
  ASSERT_TRUE(want.status.ok()) << want.status;
  ASSERT_EQ(*pixels == want.pixels, true) << where;
}

TEST(JpegKernel, WindowsOfEverySamplingAndSizeAreLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(20'261'127);
  const auto below = [&](int n) {
    return static_cast<int>(random() % static_cast<uint32_t>(n));
  };
  constexpr int files = testing::kSanitized ? 60 : 400;
  for (int i = 0; i < files && !::testing::Test::HasFailure(); ++i) {
    const bool gray_file = below(8) == 0;
    const JpegSpec spec{.width = 1 + below(i % 3 == 0 ? 9 : 120),
                        .height = 1 + below(i % 5 == 0 ? 9 : 120),
                        .color = gray_file ? JpegColor::kGray : JpegColor::kYcc,
                        .h = 1 + below(2),
                        .v = 1 + below(2),
                        .quality = 10 + below(91),
                        .seed = static_cast<uint32_t>(i)};
    const std::string file = MakeJpeg(spec);
    const std::string where = ::testing::PrintToString(
        std::array{spec.width, spec.height, spec.h, spec.v, spec.quality});
    for (const bool gray : {false, true}) {
      Compare(decoder, file, {}, gray, where);
      for (int k = 0; k < 8; ++k) {
        const Rect window = RandomPart(random, spec.width, spec.height);
        Compare(decoder, file, window, gray,
                where + ::testing::PrintToString(std::array{
                            window.x, window.y, window.width, window.height}));
      }
    }
  }
}

// Files of arbitrary coefficients: the contents of each block, and each
// quantiser.
struct AnyBlocks {
  int across = 1, down = 1, components = 1;
  int width = 64, height = 64;
  std::function<uint16_t(int at)> quantiser = [](int) { return 1; };
  std::function<void(JCOEF* block)> fill;

  std::string Make() const {
    jpeg_compress_struct cinfo = {};
    jpeg_error_mgr error;
    cinfo.err = jpeg_std_error(&error);
    error.emit_message = [](j_common_ptr, int) {};  // quantisers are large
    jpeg_create_compress(&cinfo);
    unsigned char* data = nullptr;
    unsigned long size = 0;
    jpeg_mem_dest(&cinfo, &data, &size);
    cinfo.image_width = static_cast<JDIMENSION>(width);
    cinfo.image_height = static_cast<JDIMENSION>(height);
    cinfo.input_components = components;
    cinfo.in_color_space = components == 1 ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(&cinfo);
    cinfo.optimize_coding = TRUE;
    std::array<unsigned, 64> table;
    for (size_t i = 0; i < 64; ++i) table[i] = quantiser(static_cast<int>(i));
    jpeg_add_quant_table(&cinfo, 0, table.data(), 100, FALSE);
    jpeg_add_quant_table(&cinfo, 1, table.data(), 100, FALSE);
    cinfo.comp_info[0].h_samp_factor = across;
    cinfo.comp_info[0].v_samp_factor = down;
    std::vector<jvirt_barray_ptr> arrays;
    for (int c = 0; c < components; ++c) {
      const int h = c == 0 ? across : 1, v = c == 0 ? down : 1;
      const int mcus_x = (width + 8 * across - 1) / (8 * across);
      const int mcus_y = (height + 8 * down - 1) / (8 * down);
      arrays.push_back(cinfo.mem->request_virt_barray(
          reinterpret_cast<j_common_ptr>(&cinfo), JPOOL_IMAGE, TRUE,
          static_cast<JDIMENSION>(mcus_x * h),
          static_cast<JDIMENSION>(mcus_y * v), static_cast<JDIMENSION>(v)));
    }
    jpeg_write_coefficients(&cinfo, arrays.data());
    for (int c = 0; c < components; ++c) {
      const jpeg_component_info& info = cinfo.comp_info[c];
      for (JDIMENSION y = 0; y < info.height_in_blocks; ++y) {
        JBLOCKROW row = cinfo.mem->access_virt_barray(
            reinterpret_cast<j_common_ptr>(&cinfo),
            arrays[static_cast<size_t>(c)], y, 1, TRUE)[0];
        for (JDIMENSION x = 0; x < info.width_in_blocks; ++x) fill(row[x]);
      }
    }
    jpeg_finish_compress(&cinfo);
    jpeg_destroy_compress(&cinfo);
    std::string file(reinterpret_cast<const char*>(data), size);
    std::free(data);
    return file;
  }
};

// Returns true if the kernels take the file, which must then have libjpeg's
// pixels.
bool Taken(JpegDecoder& decoder, const std::string& file) {
  const auto pixels = ByKernels(decoder, BytesOf(file), {}, false);
  const WindowOfJpeg want = DecodeJpeg(decoder, BytesOf(file), {}, false);
  EXPECT_TRUE(want.status.ok()) << want.status;
  EXPECT_TRUE(want.damage.ok()) << want.damage;
  if (!pixels) return false;
  EXPECT_EQ(*pixels == want.pixels, true);
  return true;
}

// From blocks that are surely exact to those whose samples wrap.
TEST(JpegKernel, AnyCoefficientsWithinTheBoundAreLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  std::mt19937 random(7);
  int taken = 0, refused = 0;
  constexpr int files = testing::kSanitized ? 40 : 300;
  for (int i = 0; i < files && !::testing::Test::HasFailure(); ++i) {
    const int most = 1 << (1 + i % 10), count = 1 + i % 64;
    const int side = i % 3;
    AnyBlocks any{.across = 1 + i % 2,
                  .down = 1 + i / 2 % 2,
                  .components = i % 5 == 0 ? 1 : 3};
    if (any.components == 1) any.across = any.down = 1;
    const auto quantiser = static_cast<uint16_t>(1 + i % 4);
    any.quantiser = [quantiser](int) { return quantiser; };
    any.fill = [&](JCOEF* block) {
      for (int k = 0; k < count; ++k) {
        int value = static_cast<int>(random() % static_cast<uint32_t>(most));
        if (side == 0 || (side == 1 && random() % 2 == 0)) value = -value;
        block[random() % 64] = static_cast<JCOEF>(value);
      }
    };
    ++(Taken(decoder, any.Make()) ? taken : refused);
  }
  EXPECT_GT(taken, files / 3);
  EXPECT_GT(refused, files / 20);
}

// One coefficient, as large as permitted and one more; alone, and with a DC.
TEST(JpegKernel, BlocksAtTheBoundAreLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  int taken = 0, refused = 0;
  const auto compare = [&](int at, int value, int dc, int quantiser) {
    AnyBlocks any{.width = 8, .height = 8};
    any.quantiser = [&](int) { return static_cast<uint16_t>(quantiser); };
    any.fill = [&](JCOEF* block) {
      block[0] = static_cast<JCOEF>(dc);
      block[at] = static_cast<JCOEF>(value);
    };
    const bool is_taken = Taken(decoder, any.Make());
    const int64_t product = int64_t{value} * quantiser;
    if (std::abs(product) + std::abs(int64_t{dc} * quantiser) / 2 <= 2000) {
      EXPECT_TRUE(is_taken) << at << " " << value << " " << dc;
    }
    if (std::abs(product) > 32767) {
      EXPECT_FALSE(is_taken) << at << " " << value;
    }
    ++(is_taken ? taken : refused);
  };
  for (int at = 0; at < 64; at += testing::kSanitized ? 9 : 1)
    for (const int sign : {-1, 1})
      for (const int size : {1000, 1023})
        for (const int quantiser : {1, 2, 3, 4, 5, 9, 33, 255, 65535})
          for (const int dc : {0, 500, -1000})
            compare(at, sign * size, dc, quantiser);
  EXPECT_GT(taken, 100);
  EXPECT_GT(refused, 100);
}

// Codes, a seek index and coefficients; the latter twice, since they keep the
// result of the first check.
TEST(JpegKernel, WindowsBesideABlockThatIsNotExactAreLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  int next = 0;
  AnyBlocks any{.width = 128, .height = 64};
  any.quantiser = [](int) { return 40; };
  any.fill = [&](JCOEF* block) {
    block[0] = static_cast<JCOEF>(next == 20 ? 1000 : next % 7 - 3);
    block[9] = static_cast<JCOEF>(next % 5);
    ++next;
  };
  const std::string file = any.Make();
  const MadeForms made = MakeFormsOf(decoder, BytesOf(file));
  const Rect beside{0, 0, 128, 8}, around{30, 8, 40, 20};
  const WindowOfJpeg want = DecodeJpeg(decoder, BytesOf(file), beside, false);
  for (const JpegForm* form :
       {static_cast<const JpegForm*>(nullptr), made.seek_index->get(),
        made.coefficients->get(), made.coefficients->get()}) {
    EXPECT_EQ(ByKernels(decoder, BytesOf(file), beside, false, form),
              want.pixels);
    EXPECT_EQ(ByKernels(decoder, BytesOf(file), around, false, form),
              std::nullopt);
  }
}

// Each Cb with each Cr: flat blocks of one size in each place.
TEST(JpegKernel, ColoursAreLibjpegs) {
  JpegDecoder decoder{ImageLimits{}};
  for (const int luma : {-128, 60}) {
    int next = 0;
    AnyBlocks any{.components = 3, .width = 8 * 256, .height = 8 * 256};
    any.quantiser = [](int) { return 8; };
    any.fill = [&](JCOEF* block) {
      const int component = next / 65536, place = next % 65536;
      const int value = component == 0   ? luma
                        : component == 1 ? place % 256 - 128
                                         : place / 256 - 128;
      block[0] = static_cast<JCOEF>(value);
      ++next;
    };
    EXPECT_TRUE(Taken(decoder, any.Make()));
    if (testing::kSanitized) break;
  }
}

// Whatever the blocks contain, nothing outside the image's memory is accessed.
TEST(JpegKernel, BlocksThatAreNoneStayInTheirMemory) {
  std::mt19937 random(11);
  for (int i = 0; i < 200; ++i) {
    JpegBlocks blocks;
    blocks.code = i % 2 == 0 ? BlockCode::kBytes : BlockCode::kWords;
    blocks.window =
        BlockWindow::Of({40, 40}, {3, 5, 30, 20}, true, false, 2, 2);
    blocks.offsets = {0};
    for (uint64_t block = 0; block < blocks.window.blocks(); ++block) {
      for (uint32_t k = random() % 80; k > 0; --k)
        blocks.bytes.push_back(static_cast<uint8_t>(
            random() % 3 == 0 ? 0xf0 | random() % 4 : random()));
      blocks.offsets.push_back(static_cast<uint32_t>(blocks.bytes.size()));
    }
    for (BlockSteps& steps : blocks.steps)
      for (uint32_t& step : steps) step = static_cast<uint32_t>(random());
    EXPECT_EQ(PixelsOf(blocks).size(), 3u * 30 * 20);
  }
}

TEST(JpegKernel, IsTriedAgainstTheLibjpegThatIsLoaded) {
  EXPECT_TRUE(KernelsHaveLibjpegsPixels());
}

class JpegKernelOf : public ::testing::TestWithParam<TestData> {};
INSTANTIATE_TEST_SUITE_P(Data, JpegKernelOf, AllTestData(), TestDataName);

TEST_P(JpegKernelOf, PhotosAreLibjpegs) {
  const auto photos = TestDataFiles(GetParam(), "imagenet-sample",
                                    testing::kSanitized ? 5 : 60);
  if (photos.empty()) GTEST_SKIP() << NoTestData(GetParam(), "imagenet-sample");
  JpegDecoder decoder{ImageLimits{}};
  size_t taken = 0, kinds = 0;
  for (const std::string& file : photos) {
    if (!decoder.Open(BytesOf(file)).ok()) continue;
    if (!decoder.BlocksOf(WholeOf(decoder), false)) continue;
    ++kinds;
    taken += Taken(decoder, file) ? 1 : 0;
  }
  EXPECT_GT(taken, 0u);
  EXPECT_GE(10 * taken, 9 * kinds);
}

}  // namespace
}  // namespace leat::worker
