// SPDX-License-Identifier: Apache-2.0
#include "tests/support/host_device.h"

#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <utility>

#include "core/status.h"
#include "tests/support/host_launcher.h"
#include "worker/gpu/kernels/names.h"
#include "worker/image/jpeg/decode/decoder.h"

namespace leat::worker {
namespace {

using StatsPtr = std::shared_ptr<HostDeviceStats>;

constexpr size_t kHostAlignment = 512;

std::byte* BytesAt(DeviceAddress address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the host's addresses.
  return reinterpret_cast<std::byte*>(address.number());
}

// Untouched pages cost nothing: slots are hundreds of megabytes.
absl::StatusOr<std::byte*> AllocateHost(uint64_t bytes) {
  void* memory = nullptr;
  if (posix_memalign(&memory, kHostAlignment, bytes) != 0)
    return ResourceExhausted("no {} bytes", bytes);
  return static_cast<std::byte*>(memory);
}

// Counts itself as long as it lives.
class Counted {
 public:
  explicit Counted(StatsPtr stats) : stats_(std::move(stats)) {
    if (stats_ != nullptr) ++stats_->live;
  }
  ~Counted() {
    if (stats_ != nullptr) --stats_->live;
  }
  Counted(const Counted&) = delete;
  Counted& operator=(const Counted&) = delete;
  HostDeviceStats* stats() const { return stats_.get(); }

 private:
  const StatsPtr stats_;
};

// Decodes regions and whole images, at full size only.
class HostDecoder final : public ImageDecoder {
 public:
  explicit HostDecoder(StatsPtr stats) : counted_(std::move(stats)) {}

  const char* name() const override { return "the host"; }
  bool Takes(const JpegDecoder::Header& header) const override {
    return !header.progressive && header.huffman && header.one_scan &&
           (header.components == 1 || (header.components == 3 && header.ycc));
  }
  absl::StatusOr<DecodeChoice> Choose(
      std::span<const std::byte>, bool,
      std::span<const DecodeShape> shapes) override {
    for (const DecodeShape& shape : shapes)
      if (shape.halvings == 0)
        return DecodeChoice{.engines = true, .shape = shape};
    return Internal("no shape is the whole image");
  }
  absl::Status Decode(std::span<JpegToDecode> images) override {
    for (JpegToDecode& image : images) {
      image.outcome = DecodeOne(image).ok() ? JpegToDecode::Outcome::kDecoded
                                            : JpegToDecode::Outcome::kRefused;
      if (counted_.stats() != nullptr) ++counted_.stats()->decoded;
    }
    return absl::OkStatus();
  }
  uint64_t device_bytes() const override { return 0; }

 private:
  absl::Status DecodeOne(const JpegToDecode& image) {
    const StoredRect& region = image.choice.shape.region;
    RETURN_IF_ERROR(decoder_.Open(image.encoded));
    RETURN_IF_ERROR(decoder_.Start(region, image.luma));
    std::byte* to = BytesAt(image.address);
    PixelRows rows;
    for (int64_t y = 0; y < region.height; y += rows.count) {
      RETURN_IF_ERROR(decoder_.ReadRows(&rows));
      for (int i = 0; i < rows.count; ++i, to += image.pitch)
        CopyRow(rows.first + static_cast<size_t>(i) * rows.stride,
                static_cast<size_t>(region.width), image.luma, to);
    }
    return decoder_.damage();
  }
  // Copies pixels of one byte, or three of each pixel's four bytes.
  static void CopyRow(const uint8_t* from, size_t pixels, bool luma,
                      std::byte* to) {
    if (luma) {
      memcpy(to, from, pixels);
      return;
    }
    for (size_t x = 0; x < pixels; ++x) memcpy(to + 3 * x, from + 4 * x, 3);
  }

  const Counted counted_;
  JpegDecoder decoder_{ImageLimits{}};
};

class HostQueue final : public DeviceQueue {
 public:
  explicit HostQueue(StatsPtr stats)
      : stats_(std::move(stats)), counted_(stats_) {}

  absl::Status ToDevice(DeviceAddress to, const void* from,
                        size_t bytes) override {
    memcpy(BytesAt(to), from, bytes);
    if (stats_ != nullptr) stats_->bytes_to_device += bytes;
    return absl::OkStatus();
  }
  absl::Status ToHost(void* to, DeviceAddress from, size_t bytes) override {
    memcpy(to, BytesAt(from), bytes);
    if (stats_ != nullptr) ++stats_->copies_to_host;
    return absl::OkStatus();
  }
  uint64_t pageable_copies() const override { return 0; }
  absl::Status Fill(DeviceAddress to, uint8_t value, size_t bytes) override {
    memset(BytesAt(to), value, bytes);
    return absl::OkStatus();
  }
  absl::Status Launch(KernelId kernel, const LaunchConfig& config,
                      DeviceAddress parameters) override {
    uint64_t parameter = parameters.number();
    void* all[] = {&parameter};
    if (!LaunchOnHost(NameOf(kernel), config, all))
      return Internal("the host has no kernel {}", NameOf(kernel));
    if (stats_ != nullptr) ++stats_->launches;
    return absl::OkStatus();
  }
  absl::Status Mark() override { return absl::OkStatus(); }
  absl::Status WaitMark() override { return absl::OkStatus(); }
  absl::Status Wait() override { return absl::OkStatus(); }
  absl::StatusOr<std::unique_ptr<ImageDecoder>> MakeDecoder(
      uint64_t, const ImageDecoder*) override {
    return std::make_unique<HostDecoder>(stats_);
  }

 private:
  const StatsPtr stats_;
  const Counted counted_;
};

class MappedFile final : public MappedMemory {
 public:
  MappedFile(void* memory, uint64_t bytes, StatsPtr stats)
      : memory_(memory), bytes_(bytes), counted_(std::move(stats)) {}
  ~MappedFile() override { munmap(memory_, bytes_); }
  DeviceAddress address() const override { return DeviceAddress::Of(memory_); }

 private:
  void* const memory_;
  const uint64_t bytes_;
  const Counted counted_;
};

class HostDevice final : public Device {
 public:
  HostDevice(int index, const HostDeviceOptions& options)
      : stats_(options.stats), decodes_(options.decodes) {
    info_.index = index;
    info_.uuid = fmt::format("{:032x}", index + 1);
    info_.name = "the host";
  }

  const GpuInfo& info() const override { return info_; }
  std::optional<DecoderClass> decoder_class() const override {
    if (!decodes_) return std::nullopt;
    return DecoderClass::kNvjpeg;
  }
  bool imports() const override { return true; }
  absl::Status MakeCurrent() const override { return absl::OkStatus(); }
  void NearThread() const override {}

  absl::StatusOr<DeviceAddress> Allocate(uint64_t bytes) const override {
    ASSIGN_OR_RETURN(std::byte* const memory, AllocatePinned(bytes));
    return DeviceAddress::Of(memory);
  }
  void Free(DeviceAddress memory) const override {
    FreePinned(BytesAt(memory));
  }
  MemoryInfo memory() const override { return {}; }
  absl::StatusOr<std::byte*> AllocatePinned(size_t bytes) const override {
    ASSIGN_OR_RETURN(std::byte* const memory, AllocateHost(bytes));
    ++stats_->live;
    return memory;
  }
  void FreePinned(std::byte* memory) const override {
    std::free(memory);
    --stats_->live;
  }
  absl::Status Pin(std::byte*, uint64_t) const override {
    ++stats_->live;
    return absl::OkStatus();
  }
  void Unpin(std::byte*) const override { --stats_->live; }
  absl::StatusOr<std::unique_ptr<MappedMemory>> Import(
      int fd, uint64_t bytes) const override {
    void* const memory =
        mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED)
      return InvalidArgument("descriptor {} is no memory of {} bytes", fd,
                             bytes);
    return std::make_unique<MappedFile>(memory, bytes, stats_);
  }
  absl::StatusOr<std::unique_ptr<DeviceQueue>> MakeQueue() const override {
    return MakeHostQueue(stats_);
  }

 private:
  const StatsPtr stats_;
  const bool decodes_;
  GpuInfo info_;
};

class HostPlatform final : public Platform {
 public:
  explicit HostPlatform(const HostDeviceOptions& options) : options_(options) {}
  int num_devices() const override { return options_.num_devices; }
  absl::StatusOr<std::shared_ptr<const Device>> Open(int index) override {
    return std::make_shared<HostDevice>(index, options_);
  }

 private:
  const HostDeviceOptions options_;
};

}  // namespace

std::unique_ptr<DeviceQueue> MakeHostQueue(StatsPtr stats) {
  return std::make_unique<HostQueue>(std::move(stats));
}

std::unique_ptr<Platform> MakeHostPlatform(const HostDeviceOptions& options) {
  return std::make_unique<HostPlatform>(options);
}

}  // namespace leat::worker
