// SPDX-License-Identifier: Apache-2.0
//
// GpuGroup: a group of rows in a slot of a GPU.
//
// Decode threads prepare rows. In class exact they put the codes of the window
// that a row needs, or its coefficients, into the slot's pinned memory, and
// kernels make the pixels from them; if the image is odd in any way, they put
// the pixels there.
// In class nvjpeg they inspect the image and leave it to the slot's decoder; if
// its kind must be decoded on the host, they make its pixels. Class
// nvjpeg_shared does one or the other by the file. A row that
// does not fit the slot, or exceeds the kernel's limits, is computed by the CPU
// at once: the bytes are the same. Only a row for the slot's decoder that finds
// no room for another sample's tables is refused (kUnavailable), and is
// computed in another group.
//
// A row that reads its partner has the partner's pixels in the slot beside its
// own. If the partner is odd in any way, the CPU computes the row, because only
// the CPU follows the job's policy.
//
// A row that a kernel finds bad (a divisor of 0 among its pixels, or codes that
// only libjpeg decodes) fails with kAborted, and the CPU computes it when it is
// prepared again.
//
// Threads: Prepare may run for several rows at once; between Run and `done` the
// group belongs to its GpuQueue.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "core/plan/job.h"
#include "worker/compute/gpu_worker.h"
#include "worker/compute/row_kernel.h"
#include "worker/gpu/fused/group.h"
#include "worker/gpu/fused/program.h"
#include "worker/gpu/layout/jpeg_descriptor.h"
#include "worker/gpu/layout/whose.h"
#include "worker/gpu/resources/slot.h"
#include "worker/image/jpeg/forms/block_reader.h"
#include "worker/image/jpeg/forms/device_codes.h"
#include "worker/image/jpeg/forms/keeper.h"
#include "worker/image/program/row_program.h"

namespace leat::worker {

class GpuQueue;

// A thread that decodes for GPUs.
class GpuThread final : public ImageThread {
 public:
  using ImageThread::ImageThread;
  FusedScratch& fused() { return fused_; }
  JpegBlocks& blocks() { return blocks_; }
  DeviceCodes& codes() { return codes_; }

 private:
  FusedScratch fused_;
  JpegBlocks blocks_;
  DeviceCodes codes_;
};

// A pipeline, ready for GPUs and for the CPU. Immutable.
struct GpuProgram {
  DecoderClass decoder_class = DecoderClass::kExact;
  size_t fields = 0;
  // nullptr, in class exact: the CPU computes all rows, and the GPU copies them
  // to their places in its memory.
  std::unique_ptr<FusedProgram> fused;
  // The most rows of a group for which a slot has room.
  size_t most_rows = kMaxGpuGroupRows;
  std::unique_ptr<RowProgram> cpu;
};

// The state of a row.
enum class RowStage : uint8_t {
  kEmpty,    // its output becomes zeros
  kPixels,   // its pixels are in the slot
  kEncoded,  // the decoder is to decode it
  kStored,   // computed by the CPU: in place, or into `values`
  kRefused,  // refused by the decoder: libjpeg-turbo decodes it
  kFailed,   // the decoder failed: libjpeg-turbo tells whether it is damaged
  kFaulted,  // a kernel found it bad: the CPU reports what is wrong
  kDone,     // in the outputs, or not needed
};

// A seek index that kernels leave of a file whose codes they decode.
struct LeftIndex {
  McuForm::Header header;
  uint32_t rows = 0;  // of MCUs, from the top; 0: none is left
  size_t at = 0;      // of its places, in GpuGroup::left_places
  FormKeeper::KeepLater keep;
};

// An image's pixels.
struct RowPixels {
  FusedSource source;  // on the device
  // The place in the slot of the pixels, or of the data from which kernels make
  // them; 0 bytes: neither is there.
  size_t at = 0, bytes = 0;
  DeviceJpeg jpeg;  // how they are made; its address is 0 if they exist
  LeftIndex left;
};

// For the counters. kKernels: by the decoder, on the device's processors;
// kCoefficients: by our kernels, from coefficients that the host has read;
// kCodes: from the file's own codes.
enum class DecodedBy : uint8_t {
  kHost,
  kHardware,
  kKernels,
  kCoefficients,
  kCodes
};

struct GroupRow {
  RowStage stage = RowStage::kEmpty;
  DecodedBy by = DecodedBy::kHost;
  absl::Status status;
  StoredSample record;
  RowInput input;  // of the record
  // For kEncoded: its file; whether only its first component is wanted; how the
  // decoder decodes it.
  std::span<const std::byte> encoded;
  bool luma = false;
  DecodeChoice choice;
  OfBoth<RowPixels> pixels;
  // Holds all fields in order, for a device's outputs. It lies in the slot, or
  // in own_values if the slot has no room.
  std::span<std::byte> values;
  std::vector<std::byte> own_values;
  bool for_cpu = false;  // when prepared again after kFaulted
};

// True if nothing more of the row is computed or stored in this Run.
inline bool IsForRepair(const GroupRow& row) {
  return row.stage == RowStage::kRefused || row.stage == RowStage::kFailed ||
         row.stage == RowStage::kFaulted;
}

class GpuGroup final : public KernelGroup {
 public:
  // `program`, `queue` and the memory that `outputs` borrows outlive the group,
  // which takes the slot. If the GPU is lost, Prepare returns that.
  GpuGroup(const GpuProgram& program, const GroupOutputs& outputs,
           GpuQueue* queue, Slot* slot);
  ~GpuGroup() override;  // frees the slot

  absl::Status Prepare(size_t row, const RowInput& input, StoredSample stored,
                       ThreadState* state) override;
  void Forget(size_t row) override;
  void Run(Done done) override;

  // --- For GpuQueue, between Run and `done` ---------------------------------

  const GpuProgram& program() const { return program_; }
  const GroupOutputs& outputs() const { return outputs_; }
  Slot& slot() const { return *slot_; }
  std::vector<GroupRow>& rows() { return rows_; }
  const std::vector<GroupRow>& rows() const { return rows_; }
  FusedGroup& fused() { return fused_; }
  // Fields of the pipeline; the outputs have one more if there is a
  // kValidField.
  size_t fields() const { return program_.fields; }
  bool has_valid_field() const {
    return outputs_.field_bytes.size() > fields();
  }
  bool on_device() const { return outputs_.device >= 0; }
  // Returns the address that the kernel writes to.
  DeviceAddress OutputAddress(size_t row, size_t field) const;
  // One word per row, here and on the device; not 0: a kernel found the row
  // bad. Empty if no kernel of this group may find that.
  std::span<uint32_t> faults() const {
    return may_fault_ ? faults_ : std::span<uint32_t>();
  }
  DeviceAddress faults_address() const;
  // The places of the indexes that this group's kernels leave, here and on the
  // device. Empty if they leave none.
  std::span<std::byte> left_places() const {
    return left_.first(left_used_.load());
  }
  DeviceAddress left_address() const { return AddressOf(left_); }
  // A pass's JPEGs, for the kernels, at the begin of the slot's memory for
  // pixels. Empty if there are no such rows.
  std::span<DeviceJpeg> jpegs() const { return jpegs_; }
  // Bytes that images of our kernels take of slot().device_images.
  uint64_t images_used() const { return images_used_; }
  // Sets the rows' stage and status from the words that the last Run left in
  // `faults`.
  void TakeFaults();
  // Gives the indexes that the last Run has left to the keepers of rows that no
  // kernel found bad.
  void KeepLeftIndexes();
  // Decodes with libjpeg-turbo and runs the CPU's operators.
  absl::Status ComputeOnCpu(size_t row, GpuThread* thread);
  // True if libjpeg-turbo decodes all of the row's image without complaint.
  bool IsSound(size_t row, GpuThread* thread) const;
  // Reports the statuses of rows, or `lost` for all. The group must not be used
  // after it.
  void Answer(const absl::Status& lost, ThreadState* state);

 private:
  absl::Status Begin();
  // `at`: their offset in the slot's memory for pixels.
  void SetFaultWords(uint64_t at);
  // Sets memory apart for JPEGs, their faults and the indexes that are left.
  void SetApartForJpegs();
  // Returns the device's address of a part of the slot's memory for pixels,
  // which has the same offset in both.
  DeviceAddress AddressOf(std::span<const std::byte> part) const {
    return slot_->device_pixels +
           static_cast<uint64_t>(part.data() - slot_->pixels.data());
  }
  // Returns false if the CPU has to compute the row.
  absl::StatusOr<bool> PrepareRow(size_t row, GpuThread* thread);
  // The same for one of its samples.
  absl::StatusOr<bool> PrepareSample(size_t row, Whose whose,
                                     const RowInput& input, GpuThread* thread);
  // Chooses how an image is decoded, given the `window` that is read.
  absl::Status ChooseDecoding(size_t row, const JpegDecoder::Header& header,
                              const StoredRect& window, GpuThread* thread);
  // Takes bytes after the used ones; nullopt: too few are left.
  static std::optional<size_t> TakeRoom(size_t bytes, size_t room,
                                        std::atomic<size_t>* used);
  // Takes a place in the slot's memory for pixels; nullopt: there is no room.
  // Places follow each other, since all of them are copied together.
  std::optional<size_t> TakePixels(size_t bytes);
  // Takes a place at the end of that memory, for what no kernel reads: a file
  // for the decoder, or values.
  std::optional<size_t> TakeBehind(size_t bytes);
  // Takes a place in the slot's memory for images that the device computes.
  std::optional<size_t> TakeImage(size_t bytes);
  // Copies the row's file into page-locked memory, if there is room: otherwise
  // the one thread that calls the decoder would spend its time on copying it.
  void PinEncoded(GroupRow* row);
  // Decodes `window` of the file, which the thread's decoder has opened, for
  // this row. Returns false if the slot has no room.
  absl::StatusOr<bool> DecodeWindow(size_t row, const StoredRect& window,
                                    std::span<const std::byte> file,
                                    GpuThread* thread, RowPixels* pixels);
  // The same by codes or by coefficients. kNo: its pixels have to be decoded.
  enum class Sent : uint8_t { kYes, kNo, kNoRoom };
  absl::StatusOr<Sent> SendJpeg(size_t row, const StoredRect& window,
                                std::span<const std::byte> file,
                                GpuThread* thread, RowPixels* pixels);
  // `image`: the address at which the pixels are made.
  Sent SendCodes(size_t row, const StoredRect& window,
                 std::span<const std::byte> file, DeviceAddress image,
                 const DeviceCodes& codes, RowPixels* pixels);
  // Takes room for the index that the kernels are to leave, if there is any.
  LeftIndex TakeLeft(const DeviceCodes& codes, std::span<const std::byte> file);
  absl::StatusOr<Sent> SendBlocks(const BlockWindow& of,
                                  const StoredRect& window, DeviceAddress image,
                                  size_t file_bytes, GpuThread* thread,
                                  RowPixels* pixels);
  void StoreHostValues(size_t row);

  const GpuProgram& program_;
  const GroupOutputs outputs_;
  GpuQueue* const queue_;
  Slot* const slot_;
  FusedGroup fused_;
  absl::Status begun_;
  std::vector<GroupRow> rows_;
  std::vector<size_t> field_at_;  // offsets of the fields in the slot's outputs
  // The bytes of the slot for pixels; the stages' values follow them.
  size_t pixels_room_;
  std::span<uint32_t> faults_;
  std::atomic<bool> may_fault_{false};
  std::span<DeviceJpeg> jpegs_;
  std::span<std::byte> left_;
  std::atomic<size_t> pixels_used_{0}, images_used_{0}, left_used_{0};
  std::atomic<size_t> sent_used_{0}, behind_used_{0};  // of pixels_used_
  Done done_;
};

}  // namespace leat::worker
