// SPDX-License-Identifier: Apache-2.0
//
// Converting runs `leat convert` in a directory of its own, and reads the output
// back with the workers' readers.
#pragma once

#include <sys/resource.h>

#include <algorithm>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "client/cli/base/exit_code.h"
#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/client/cli/fake.h"
#include "tests/worker/temp_dir.h"
#include "worker/image/codecs/codec.h"
#include "worker/source/source.h"

namespace leat::cli {

class Converting : public ::testing::Test {
 protected:
  using Texts = std::vector<std::string>;

  static std::string BigEndian(uint32_t value) {
    std::string bytes;
    for (int shift = 24; shift >= 0; shift -= 8) {
      bytes += static_cast<char>(value >> shift);
    }
    return bytes;
  }
  static std::string IdxOf(uint8_t type, const std::vector<uint32_t>& sizes,
                           const std::string& elements) {
    std::string file = {0, 0, static_cast<char>(type),
                        static_cast<char>(sizes.size())};
    for (const uint32_t size : sizes) file += BigEndian(size);
    return file + elements;
  }
  // Makes 16 x 8 pixels with every value of a byte, shifted by the record.
  static std::string Pixels(uint32_t records) {
    std::string pixels;
    for (uint32_t i = 0; i < records * 128; ++i) {
      pixels += static_cast<char>(i * 37 + i / 128);
    }
    return pixels;
  }
  static std::string Bytes(const worker::StoredField& field) {
    return {reinterpret_cast<const char*>(field.bytes.data()),
            field.bytes.size()};
  }
  static int64_t Number(const worker::StoredField& field) {
    int64_t number = 0;
    std::memcpy(&number, field.bytes.data(), field.bytes.size());
    return number;
  }
  static std::string Decoded(const std::string& png) {
    const auto file = std::as_bytes(std::span(png));
    const worker::Codec* codec = worker::FindCodec(file);
    if (codec == nullptr) return "no image";
    const auto header = codec->read_header(file, {});
    if (!header.ok()) return std::string(Message(header.status()));
    std::string pixels(header->bytes(), '\0');
    const absl::Status status = codec->decode(
        file, *header, {}, reinterpret_cast<uint8_t*>(pixels.data()));
    return status.ok() ? pixels : std::string(Message(status));
  }
  struct Sample {
    std::string image;
    int64_t label;
    friend bool operator==(const Sample&, const Sample&) = default;
  };

  // Returns "" for success, or the error.
  std::string Run(Texts args) {
    args.insert(args.begin(), "convert");
    exit_code_ = shell_.Run(args);
    return exit_code_ == kGood ? "" : shell_.err;
  }
  // The same if no file may grow beyond `bytes`.
  std::string RunBounded(rlim_t bytes, const Texts& args) {
    rlimit was{};
    getrlimit(RLIMIT_FSIZE, &was);
    const rlimit bound = {bytes, was.rlim_max};
    const auto before = std::signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &bound);
    const std::string said = Run(args);
    setrlimit(RLIMIT_FSIZE, &was);
    std::signal(SIGXFSZ, before);
    return said;
  }
  std::string Path(const std::string& name) const {
    return dir_.path() + "/" + name;
  }
  // Returns samples as the reader gives them.
  static std::vector<Sample> Read(const Node& reader) {
    std::vector<Sample> samples;
    const auto index = worker::BuildIndex(reader, {});
    EXPECT_TRUE(index.ok()) << index.status();
    if (!index.ok()) return samples;
    const auto source = worker::OpenSource(reader, index->blob, {});
    EXPECT_TRUE(source.ok()) << source.status();
    for (uint64_t i = 0; source.ok() && i < (*source)->num_samples(); ++i) {
      const auto stored = (*source)->Read(i);
      EXPECT_TRUE(stored.ok()) << stored.status();
      if (!stored.ok()) break;
      samples.push_back({Bytes(stored->fields[0]), Number(stored->fields[1])});
    }
    return samples;
  }
  static std::vector<Sample> ReadCaffe2(const std::string& path) {
    return Read({"readers.caffe2", {}, {{"path", Texts{path}}}});
  }
  static std::vector<Sample> ReadTfrecord(const std::string& path) {
    return Read({"readers.tfrecord",
                 {},
                 {{"paths", Texts{path}},
                  {"features", Texts{"image/encoded", "image/class/label"}},
                  {"types", Texts{"encoded", "int64"}},
                  {"index", Texts{}}}});
  }
  static std::vector<Sample> ReadWebdataset(const std::string& path) {
    return Read({"readers.webdataset",
                 {},
                 {{"paths", Texts{path}},
                  {"ext", Texts{"jpg;png", "cls"}},
                  {"types", Texts{"encoded", "int64"}},
                  {"index", Texts{}},
                  {"missing", std::string("error")}}});
  }
  // Makes a folder of images that only have their first bytes.
  std::string Photos() {
    const std::string jpeg = "\xff\xd8\xff\xe0", png = "\x89PNG\r\n\x1a\n";
    dir_.Write("photos/b/2.jpg", jpeg + "two");
    dir_.Write("photos/b/10.JPEG", jpeg + std::string(700, 'x'));
    dir_.Write("photos/b/deep/er/1.png", png + "one");
    dir_.Write("photos/b/notes.txt", "no image");
    dir_.Write("photos/b/.hidden.jpg", "passed over");
    dir_.Write("photos/a/z.jpg", jpeg + std::string(5000, 'z'));
    std::filesystem::create_directories(Path("photos/aa-empty"));
    dir_.Write("photos/c/only.jpg", jpeg);
    return Path("photos");
  }
  static std::vector<Sample> ReadFolder(const std::string& path) {
    return Read({"readers.image_folder", {}, {{"path", path}}});
  }
  Texts Names(const std::string& folder) const {
    Texts names;
    for (const auto& entry :
         std::filesystem::directory_iterator(Path(folder))) {
      names.push_back(entry.path().filename().string());
    }
    std::sort(names.begin(), names.end());
    return names;
  }

  worker::TempDir dir_;
  Shell shell_;
  int exit_code_ = 0;
};

}  // namespace leat::cli
