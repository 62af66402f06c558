// SPDX-License-Identifier: Apache-2.0
//
// Runs the fused kernel on the host, as a GPU worker runs it on the device.
#pragma once

#include <cstring>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/status.h"
#include "gtest/gtest.h"
#include "tests/worker/image_support.h"
#include "worker/gpu/fused_group.h"
#include "worker/gpu/fused_program.h"
#include "worker/gpu/host_launcher.h"
#include "worker/image/jpeg_decoder.h"

namespace leat::worker {

// How decoded pixels lie in memory.
struct SourceLayout {
  int pixel_bytes = 3;  // 3 or 4; of gray: always 1
  bool planar = false;
  bool whole = false;  // the whole image is held, not just what is needed
  int64_t pad = 0;     // bytes after each row
};

// Pixels of `held`, in memory that ends where they end.
inline std::vector<uint8_t> Decoded(const std::string& jpeg, const Rect& held,
                                    bool gray, const SourceLayout& layout,
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
  source->address = reinterpret_cast<uint64_t>(pixels.data());
  return pixels;
}

struct AlignedFree {
  void operator()(std::byte* p) const { std::free(p); }
};

// A block as a slot's pinned memory would be.
class Block {
 public:
  explicit Block(uint64_t bytes)
      : bytes_(static_cast<size_t>(bytes + kFusedAlignment - 1) /
               kFusedAlignment * kFusedAlignment),
        memory_(static_cast<std::byte*>(
            std::aligned_alloc(kFusedAlignment, bytes_))) {
    memset(memory_.get(), 0xa5, bytes_);
  }
  std::span<std::byte> span() { return {memory_.get(), bytes_}; }

 private:
  size_t bytes_;
  std::unique_ptr<std::byte, AlignedFree> memory_;
};

inline bool Launch(const FusedProgram& program, size_t rows,
                   const std::byte* block) {
  auto address = reinterpret_cast<uint64_t>(block);
  void* params[] = {&address};
  return LaunchOnHost(program.kernel(), program.launch(rows), params);
}

inline std::unique_ptr<FusedProgram> Fuse(const Graph& graph, uint64_t seed,
                                          const FusedLimits& limits = {}) {
  auto checked = Check(graph);
  if (!checked.ok()) ADD_FAILURE() << Message(checked.status());
  auto program = FusedProgram::Compile(*checked, seed, limits);
  if (!program.ok()) ADD_FAILURE() << Message(program.status());
  return *std::move(program);
}

// One row at a time, with guards around its outputs.
class FusedRunner {
 public:
  FusedRunner(const Graph& graph, uint64_t seed)
      : program(Fuse(graph, seed)), block_(program->BlockBytes(1)) {
    const auto checked = Check(graph);
    schema = checked->schema;
    outputs.resize(schema.fields.size());
  }

  // `misalign`: bytes by which outputs are off.
  absl::Status Run(const std::string& jpeg, const SourceLayout& layout,
                   uint64_t sample = 0, uint64_t epoch = 0,
                   size_t misalign = 0) {
    JpegDecoder decoder({});
    RETURN_IF_ERROR(decoder.Open(AsSpan(jpeg)));
    RETURN_IF_ERROR(group_.Begin(*program, 1, block_.span()));
    const RowInput input{epoch, sample, {}, 7};
    ASSIGN_OR_RETURN(
        const Rect part,
        group_.PrepareRow(0, input, decoder.header().size,
                          decoder.header().orientation, &scratch_));
    FusedSource source;
    const ImageSize size = decoder.header().size;
    const std::vector<uint8_t> pixels =
        Decoded(jpeg, layout.whole ? Rect{0, 0, size.width, size.height} : part,
                program->gray(), layout, &source);
    RETURN_IF_ERROR(group_.BindSource(0, source));
    std::vector<std::vector<std::byte>> guarded;
    for (size_t f = 0; f < outputs.size(); ++f) {
      guarded.emplace_back(schema.fields[f].row_bytes + 2 * kGuard,
                           std::byte{0x5c});
      group_.BindOutput(0, f,
                        reinterpret_cast<uint64_t>(guarded[f].data()) + kGuard -
                            8 + misalign);
    }
    // As the copy to the device does.
    Block device(group_.used_bytes());
    memcpy(device.span().data(), block_.span().data(), group_.used_bytes());
    if (!Launch(*program, 1, device.span().data()))
      return Internal("no kernel {}", program->kernel());
    for (size_t f = 0; f < outputs.size(); ++f)
      outputs[f] = Unguarded(guarded[f], kGuard - 8 + misalign,
                             schema.fields[f].row_bytes);
    return absl::OkStatus();
  }

  std::unique_ptr<FusedProgram> program;
  BatchSchema schema;
  std::vector<std::vector<std::byte>> outputs;

 private:
  static constexpr size_t kGuard = 32;

  static std::vector<std::byte> Unguarded(const std::vector<std::byte>& memory,
                                          size_t at, size_t bytes) {
    for (size_t i = 0; i < memory.size(); ++i)
      if (i < at || i >= at + bytes) {
        EXPECT_EQ(memory[i], std::byte{0x5c}) << "written at " << i;
      }
    return {memory.begin() + static_cast<ptrdiff_t>(at),
            memory.begin() + static_cast<ptrdiff_t>(at + bytes)};
  }

  Block block_;
  FusedGroup group_;
  FusedScratch scratch_;
};

}  // namespace leat::worker
