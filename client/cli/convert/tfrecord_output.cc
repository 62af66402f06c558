// SPDX-License-Identifier: Apache-2.0
//
// A TFRecord file consists of records: length (64 bits), its masked CRC-32C,
// the bytes, their masked CRC-32C; little-endian. A tf.Example is {1: {1: {1:
// name, 2: feature}, ...}}, a feature {1: {1: bytes}} or, for numbers, {3: {1:
// packed varints}}.
#include <algorithm>
#include <cctype>
#include <string>
#include <utility>

#include "client/cli/convert/outputs.h"
#include "client/cli/convert/shard_files.h"
#include "client/cli/convert/wire.h"
#include "core/crc32c.h"

namespace leat::cli {
namespace {

void AppendLittleEndian(uint64_t value, int bytes, std::string* to) {
  for (int i = 0; i < bytes; ++i) *to += static_cast<char>(value >> (8 * i));
}

void AppendMaskedCrc(std::string_view bytes, std::string* to) {
  const uint32_t crc = Crc32c(bytes);
  AppendLittleEndian((crc >> 15 | crc << 17) + 0xa282ead8u, 4, to);
}

std::string TfrecordOf(std::string_view data) {
  std::string record;
  record.reserve(data.size() + 16);
  AppendLittleEndian(data.size(), 8, &record);
  AppendMaskedCrc(std::string_view(record).substr(0, 8), &record);
  record += data;
  AppendMaskedCrc(data, &record);
  return record;
}

class ExampleMaker {
 public:
  void Add(std::string_view name, std::string_view value) {
    AddFeature(name, BytesField(1, BytesField(1, value)));
  }
  void Add(std::string_view name, int64_t value) {
    AddFeature(
        name,
        BytesField(3, BytesField(1, Varint(static_cast<uint64_t>(value)))));
  }
  std::string Finish() const { return BytesField(1, features_); }

 private:
  void AddFeature(std::string_view name, std::string_view feature) {
    std::string entry = BytesField(1, name);
    AppendBytes(2, feature, &entry);
    AppendBytes(1, entry, &features_);
  }
  std::string features_;
};

// Returns "JPEG", "PNG", ...
std::string ImageFormatOf(const std::string& extension) {
  if (extension == "jpg") return "JPEG";
  std::string name = extension;
  std::transform(name.begin(), name.end(), name.begin(),
                 [](unsigned char c) { return std::toupper(c); });
  return name;
}

class TfrecordOutput : public RecordOutput {
 public:
  TfrecordOutput(const std::string& folder, uint64_t max_file_bytes)
      : files_(folder, ".tfrecord", "", max_file_bytes) {}

  absl::Status Add(const Record& record) override {
    ExampleMaker example;
    example.Add("image/class/label", int64_t{record.label});
    if (!record.class_name.empty()) {
      example.Add("image/class/text", record.class_name);
    }
    example.Add("image/encoded", record.image);
    if (!record.file_name.empty()) {
      example.Add("image/filename", record.file_name);
    }
    example.Add("image/format", ImageFormatOf(record.extension));
    return files_.Add(TfrecordOf(example.Finish()));
  }
  absl::Status Finish() override { return files_.Finish(); }

 private:
  ShardFiles files_;
};

}  // namespace

std::unique_ptr<RecordOutput> NewTfrecordOutput(const std::string& folder,
                                                uint64_t max_file_bytes) {
  return std::make_unique<TfrecordOutput>(folder, max_file_bytes);
}

}  // namespace leat::cli
