// SPDX-License-Identifier: Apache-2.0
//
// Runs the fused kernel as a GPU worker does, on the host or on a device.
#pragma once

#include <cstdlib>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/support/host_launcher.h"
#include "tests/worker/image/program/support.h"
#include "worker/gpu/device/address.h"
#include "worker/gpu/fused/group.h"
#include "worker/gpu/fused/program.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {

// The layout of decoded pixels in memory.
struct SourceLayout {
  int pixel_bytes = 3;  // 3 or 4; for gray: always 1
  bool planar = false;
  bool whole = false;  // the whole image is held, not just the needed part
  int64_t pad = 0;     // bytes after each row
};

// Returns the pixels of `held`, in memory that ends with them; describes them
// in *source, except their address.
inline std::vector<uint8_t> Decoded(const std::string& jpeg,
                                    const StoredRect& held, bool gray,
                                    const SourceLayout& layout,
                                    FusedSource* source) {
  JpegDecoder decoder({});
  EXPECT_TRUE(decoder.Open(AsSpan(jpeg)).ok());
  EXPECT_TRUE(decoder.Start(held, gray).ok());
  const int channels = gray ? 1 : 3;
  const int from_bytes = gray ? 1 : 4;
  source->pixel_bytes = gray || layout.planar ? 1 : layout.pixel_bytes;
  source->held = held;
  source->pitch = held.width * source->pixel_bytes + layout.pad;
  source->channel_bytes = layout.planar ? source->pitch * held.height : 1;
  std::vector<uint8_t> pixels(
      static_cast<size_t>(layout.planar ? source->channel_bytes * channels
                                        : source->pitch * held.height));
  PixelRows rows;
  for (int64_t y = 0; y < held.height; y += rows.count) {
    EXPECT_TRUE(decoder.ReadRows(&rows).ok());
    for (int i = 0; i < rows.count; ++i)
      for (int64_t x = 0; x < held.width; ++x)
        for (int c = 0; c < channels; ++c)
          pixels[static_cast<size_t>((y + i) * source->pitch +
                                     x * source->pixel_bytes +
                                     c * source->channel_bytes)] =
              rows.first[i * rows.stride +
                         static_cast<size_t>(x * from_bytes + c)];
  }
  return pixels;
}

struct AlignedFree {
  void operator()(std::byte* p) const { std::free(p); }
};

// A block, like a slot's pinned memory.
class Block {
 public:
  explicit Block(uint64_t bytes) : bytes_(static_cast<size_t>(bytes)) {
    void* memory = nullptr;
    if (posix_memalign(&memory, kFusedAlignment, bytes_) != 0) std::abort();
    memory_.reset(static_cast<std::byte*>(memory));
    memset(memory, 0xa5, bytes_);
  }
  std::span<std::byte> span() { return {memory_.get(), bytes_}; }
  DeviceAddress address() const { return DeviceAddress::Of(memory_.get()); }

 private:
  size_t bytes_;
  std::unique_ptr<std::byte, AlignedFree> memory_;
};

// A place where kernels run, and its memory. Addresses belong to it.
class KernelRunner {
 public:
  virtual ~KernelRunner() = default;
  // Returns a copy of `bytes`, aligned to kFusedAlignment, valid until Reset.
  virtual DeviceAddress Upload(std::span<const std::byte> bytes) = 0;
  // Copies to an address that Upload returned.
  virtual void Put(DeviceAddress address, std::span<const std::byte> bytes) = 0;
  virtual void Download(DeviceAddress address, std::span<std::byte> to) = 0;
  virtual void Reset() = 0;
  // Runs a kernel to its end.
  virtual absl::Status Launch(const char* kernel, const LaunchConfig& config,
                              DeviceAddress block) = 0;
};

class HostRunner : public KernelRunner {
 public:
  DeviceAddress Upload(std::span<const std::byte> bytes) override {
    blocks_.emplace_back(bytes.size());
    std::copy(bytes.begin(), bytes.end(), blocks_.back().span().begin());
    return blocks_.back().address();
  }
  void Put(DeviceAddress address, std::span<const std::byte> bytes) override {
    memcpy(reinterpret_cast<void*>(address.number()), bytes.data(),
           bytes.size());
  }
  void Download(DeviceAddress address, std::span<std::byte> to) override {
    memcpy(to.data(), reinterpret_cast<const void*>(address.number()),
           to.size());
  }
  void Reset() override { blocks_.clear(); }
  absl::Status Launch(const char* kernel, const LaunchConfig& config,
                      DeviceAddress block) override {
    uint64_t number = block.number();
    void* params[] = {&number};
    if (LaunchOnHost(kernel, config, params)) return absl::OkStatus();
    return Internal("no kernel {}", kernel);
  }

 private:
  std::vector<Block> blocks_;
};

inline std::unique_ptr<FusedProgram> Fuse(const Graph& graph,
                                          const FusedLimits& limits = {}) {
  auto checked = Check(graph);
  if (!checked.ok()) ADD_FAILURE() << Message(checked.status());
  auto program = FusedProgram::Compile(*checked, limits);
  if (!program.ok()) ADD_FAILURE() << Message(program.status());
  return *std::move(program);
}

// Runs one row at a time, with guards around its outputs.
class FusedRunner {
 public:
  FusedRunner(const Graph& graph, uint64_t seed, KernelRunner& runner)
      : program(Fuse(graph)),
        seed_(seed),
        runner_(runner),
        block_(program->BlockBytes(1)) {
    schema = Check(graph)->schema;
    outputs.resize(schema.fields.size());
  }

  // `misalign`: bytes by which outputs are misaligned.
  absl::Status Run(const std::string& jpeg, const SourceLayout& layout,
                   uint64_t sample = 0, uint64_t epoch = 0,
                   size_t misalign = 0) {
    JpegDecoder decoder({});
    RETURN_IF_ERROR(decoder.Open(AsSpan(jpeg)));
    RETURN_IF_ERROR(group_.Begin(*program, 1, block_.span()));
    const StoredSample stored = StoredImage({}, 7);
    const RowInput input{.seed = seed_,
                         .epoch = epoch,
                         .sample = sample,
                         .fields = stored.fields,
                         .step_epoch = epoch};
    ASSIGN_OR_RETURN(
        const StoredRect part,
        group_.PrepareRow(0, input, decoder.header().size,
                          decoder.header().orientation, &scratch_));
    FusedSource source;
    const ImageSize size = decoder.header().size;
    const std::vector<uint8_t> pixels = Decoded(
        jpeg, layout.whole ? StoredRect{0, 0, size.width, size.height} : part,
        program->gray(), layout, &source);
    source.address = runner_.Upload(std::as_bytes(std::span(pixels)));
    RETURN_IF_ERROR(group_.BindSource(0, source));
    std::vector<DeviceAddress> guarded;
    for (size_t f = 0; f < outputs.size(); ++f) {
      guarded.push_back(runner_.Upload(std::vector<std::byte>(
          schema.fields[f].row_bytes + 2 * kGuard, kGuardByte)));
      group_.BindOutput(0, f, guarded[f] + (kGuard - 8 + misalign));
    }
    const DeviceAddress block =
        runner_.Upload(block_.span().first(group_.used_bytes()));
    RETURN_IF_ERROR(
        runner_.Launch(program->kernel(), program->launch(1), block));
    for (size_t f = 0; f < outputs.size(); ++f)
      outputs[f] = Unguarded(guarded[f], kGuard - 8 + misalign,
                             schema.fields[f].row_bytes);
    runner_.Reset();
    return absl::OkStatus();
  }

  std::unique_ptr<FusedProgram> program;
  BatchSchema schema;
  std::vector<std::vector<std::byte>> outputs;

 private:
  static constexpr size_t kGuard = 32;
  static constexpr std::byte kGuardByte{0x5c};

  std::vector<std::byte> Unguarded(DeviceAddress address, size_t at,
                                   size_t bytes) {
    std::vector<std::byte> memory(bytes + 2 * kGuard);
    runner_.Download(address, memory);
    for (size_t i = 0; i < memory.size(); ++i)
      if (i < at || i >= at + bytes) {
        EXPECT_EQ(memory[i], kGuardByte) << "written at " << i;
      }
    return {memory.begin() + static_cast<ptrdiff_t>(at),
            memory.begin() + static_cast<ptrdiff_t>(at + bytes)};
  }

  const uint64_t seed_;
  KernelRunner& runner_;
  Block block_;
  FusedGroup group_;
  FusedScratch scratch_;
};

}  // namespace leat::worker
