// SPDX-License-Identifier: Apache-2.0
#include "worker/session/own_decoders.h"

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "gmock/gmock.h"
#include "gtest/gtest.h"
#include "worker/compute/host_share.h"

namespace leat::worker {
namespace {

class WithNvjpeg final : public GpuWorker {
 public:
  const std::vector<GpuInfo>& devices() const override { return devices_; }
  RowKernelFactory kernels() override { return ImageKernels({}); }
  std::vector<DecoderClass> decoder_classes() const override {
    return {DecoderClass::kExact, DecoderClass::kNvjpeg,
            DecoderClass::kNvjpegShared};
  }
  uint64_t group_bytes() const override { return 1 << 20; }
  std::shared_ptr<BufferMemory> buffer_memory() override { return nullptr; }
  DeviceImporter* importer() override { return nullptr; }
  std::vector<GpuStats> stats() const override { return {}; }

 private:
  const std::vector<GpuInfo> devices_ = {
      {.compute = "9.0", .jpeg_engines = 7, .decoder_version = "13.0.4"}};
};

// Another share is another digest: such a worker owns nothing of the plan.
TEST(OwnDecoders, AClassWithAShareNamesItAndHasADigestOfItsOwn) {
  WithNvjpeg gpus;
  const auto own = OwnDecoders(gpus);
  ASSERT_TRUE(own.ok()) << own.status();
  ASSERT_EQ(own->size(), 3u);
  std::set<std::string> digests;
  for (const v1::Decoders& decoders : *own) {
    digests.insert(decoders.digest());
    const bool shared =
        decoders.decoder_class() == v1::DECODER_CLASS_NVJPEG_SHARED;
    EXPECT_EQ(decoders.libraries().find(kHostShareText) != std::string::npos,
              shared)
        << decoders.libraries();
  }
  EXPECT_EQ(digests.size(), 3u);
}

}  // namespace
}  // namespace leat::worker
