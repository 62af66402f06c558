// SPDX-License-Identifier: Apache-2.0
//
// Bytes as a TFRecord file, as a tf.Example, and as DALI's index of a file.
#include <vector>

#include "tests/fuzz/memory_file.h"
#include "tests/worker/tfrecord_maker.h"
#include "worker/source/tf_example.h"
#include "worker/source/tfrecord_framing.h"

namespace leat::worker {
namespace {

constexpr uint64_t kMaxRecords = 10'000;

void CheckSizes(const std::vector<uint32_t>& sizes, uint64_t bytes) {
  uint64_t sum = 0;
  for (const uint32_t size : sizes) sum += size;
  if (sum != bytes) abort();
}

void AsFile(const std::string& bytes) {
  const MemoryFile file(bytes);
  const auto sizes = WalkTfrecord(file, kMaxRecords, nullptr);
  if (!sizes.ok()) return;
  CheckSizes(*sizes, bytes.size());
  const auto all = std::as_bytes(std::span(bytes.data(), bytes.size()));
  uint64_t offset = 0;
  for (const uint32_t size : *sizes) {
    (void)TfrecordData(all.subspan(offset, size));
    offset += size;
  }
}

void AsExample(std::span<const std::byte> bytes) {
  const std::vector<std::string> names = {"a", "b", "", "label"};
  std::vector<FeatureBytes> features(names.size());
  if (FindFeatures(bytes, names, features).ok()) features.push_back(bytes);
  for (const FeatureBytes& feature : features) {
    if (feature.data() == nullptr) continue;
    const auto values = ParseFeature(feature);
    if (!values.ok()) continue;
    if (values->count > bytes.size()) abort();
    using Kind = FeatureValues::Kind;
    const size_t each = values->kind == Kind::kInts     ? 8
                        : values->kind == Kind::kFloats ? 4
                                                        : 0;
    std::vector<std::byte> into(values->count * each);
    if (values->kind == Kind::kInts) CopyInts(*values, into);
    if (values->kind == Kind::kFloats) CopyFloats(*values, into);
  }
}

void AsIndex(std::string_view text) {
  static const MemoryFile& file = *new MemoryFile(
      TfrecordOf("abcd") + TfrecordOf("") + TfrecordOf("0123456789"));
  const auto sizes = SizesFromDaliIndex(text, file, kMaxRecords);
  if (sizes.ok()) CheckSizes(*sizes, file.size());
}

}  // namespace
}  // namespace leat::worker

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  leat::worker::AsFile(bytes);
  leat::worker::AsFile(leat::worker::TfrecordOf(bytes) + bytes);
  leat::worker::AsExample(std::as_bytes(std::span(data, size)));
  leat::worker::AsIndex(bytes);
  return 0;
}
