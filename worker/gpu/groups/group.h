// SPDX-License-Identifier: Apache-2.0
//
// GpuGroup: a group of rows in a slot of a GPU.
//
// Decode threads prepare rows: in class exact they put the coefficients of the
// window that a row needs into the slot's pinned memory, of which kernels make
// the pixels, or, where the image is odd in any way, the pixels themselves; in
// another class they look at the image and leave it to the slot's decoder, or,
// where it is of a kind for the host, make its pixels. A row that does not fit
// the slot, or is too much for the kernel, is computed by the CPU at once: the
// bytes are the same. Only a row for the slot's decoder that finds no room for
// another sample's tables is refused (kUnavailable): it is computed in another
// group.
//
// A row that looks at its partner has the partner's pixels in the slot beside
// its own. A partner that is odd in any way leaves the row to the CPU, which
// alone follows the job's policy.
//
// A row that a kernel finds bad (a divisor of 0 among its pixels) is answered
// by kAborted, and the CPU computes it when it is prepared again.
//
// Threads: Prepare of several rows at once; between Run and `done` the group
// belongs to its GpuQueue.
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
#include "worker/image/program/row_program.h"

namespace leat::worker {

class GpuQueue;

// A thread that decodes for GPUs.
class GpuThread final : public ImageThread {
 public:
  using ImageThread::ImageThread;
  FusedScratch& fused() { return fused_; }
  JpegBlocks& blocks() { return blocks_; }

 private:
  FusedScratch fused_;
  JpegBlocks blocks_;
};

// A pipeline, ready for GPUs and for the CPU. Immutable.
struct GpuProgram {
  DecoderClass decoder_class = DecoderClass::kExact;
  size_t fields = 0;
  // Null, in class exact: the CPU computes all rows, and the GPU takes them
  // where they belong in its memory.
  std::unique_ptr<FusedProgram> fused;
  // The most rows of a group, for which a slot has room.
  size_t most_rows = kMaxGpuGroupRows;
  std::unique_ptr<RowProgram> cpu;
};

// Where a row stands.
enum class RowStage : uint8_t {
  kEmpty,    // becomes zeros
  kPixels,   // its pixels are in the slot
  kEncoded,  // the decoder is to decode it
  kStored,   // the CPU has computed it: in place, or into `values`
  kRefused,  // the decoder refused it: for libjpeg-turbo
  kFailed,   // the decoder failed on it: libjpeg-turbo says if it is damaged
  kFaulted,  // a kernel found it bad: the CPU says what is wrong with it
  kDone,     // the outputs have it, or nobody wants it
};

// An image's pixels.
struct RowPixels {
  FusedSource source;  // on the device
  // In the slot: them, or what kernels make them of; 0 bytes: neither.
  size_t at = 0, bytes = 0;
  DeviceJpeg jpeg;  // how they are made; its address is 0 if they are there
};

// For the counters. kKernels: the decoder, by the device's processors;
// kCoefficients: our kernels, of what the host has read.
enum class DecodedBy : uint8_t { kHost, kHardware, kKernels, kCoefficients };

struct GroupRow {
  RowStage stage = RowStage::kEmpty;
  DecodedBy by = DecodedBy::kHost;
  absl::Status status;
  StoredSample record;
  RowInput input;  // of it
  // For kEncoded: its file; only its first component is wanted; how the decoder
  // does it.
  std::span<const std::byte> encoded;
  bool luma = false;
  DecodeChoice choice;
  OfBoth<RowPixels> pixels;
  std::vector<std::byte> values;  // field after field, for a device's outputs
  bool for_cpu = false;           // when it is prepared again: it was kFaulted
};

// Nothing more is computed or stored of it in this Run.
inline bool IsForRepair(const GroupRow& row) {
  return row.stage == RowStage::kRefused || row.stage == RowStage::kFailed ||
         row.stage == RowStage::kFaulted;
}

class GpuGroup final : public KernelGroup {
 public:
  // `program`, `queue` and what `outputs` borrows outlive the group, which
  // takes the slot. Where the GPU is lost, Prepare says so.
  GpuGroup(const GpuProgram& program, const GroupOutputs& outputs,
           GpuQueue* queue, Slot* slot);
  ~GpuGroup() override;  // the slot is free

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
  // Fields of the pipeline; one more if there is a kValidField.
  size_t fields() const { return program_.fields; }
  bool has_valid_field() const {
    return outputs_.field_bytes.size() > fields();
  }
  bool on_device() const { return outputs_.device >= 0; }
  // Where the kernel writes.
  DeviceAddress OutputAddress(size_t row, size_t field) const;
  // A word a row, here and on the device; not 0: a kernel found the row bad.
  // None where the program has no such kernel.
  std::span<uint32_t> faults() const { return faults_; }
  DeviceAddress faults_address() const;
  // At the begin of the slot's memory for pixels: a pass's JPEGs, for the
  // kernels. None where there are no such rows.
  std::span<DeviceJpeg> jpegs() const { return jpegs_; }
  // What the last Run has left in `faults` becomes the rows' stage and status.
  void TakeFaults();
  // Decodes with libjpeg-turbo and runs the CPU's operators.
  absl::Status ComputeOnCpu(size_t row, GpuThread* thread);
  // Whether libjpeg-turbo decodes all of the row's image without complaint.
  bool IsSound(size_t row, GpuThread* thread) const;
  // The statuses of rows, or `lost` for all. The group is not touched after it.
  void Answer(const absl::Status& lost, ThreadState* state);

 private:
  absl::Status Begin();
  // False: the row is for the CPU.
  absl::StatusOr<bool> PrepareRow(size_t row, GpuThread* thread);
  // The same of one of its samples.
  absl::StatusOr<bool> PrepareSample(size_t row, Whose whose,
                                     const RowInput& input, GpuThread* thread);
  // Chooses how an image is decoded, of which `window` is read.
  absl::Status ChooseDecoding(size_t row, const JpegDecoder::Header& header,
                              const StoredRect& window, GpuThread* thread);
  // A place in the slot's memory for pixels; nullopt: there is no room.
  std::optional<size_t> TakePixels(size_t bytes);
  // The same in its memory for images that are made on the device.
  std::optional<size_t> TakeImage(size_t bytes);
  // Copies the row's file into page-locked memory, where there is room: the one
  // thread that calls the decoder would spend its time on copying it otherwise.
  void PinEncoded(GroupRow* row);
  // Decodes `window` of the image that the thread's decoder has opened, a file
  // of so many bytes. False: the slot has no room.
  absl::StatusOr<bool> DecodeWindow(const StoredRect& window, size_t file_bytes,
                                    GpuThread* thread, RowPixels* pixels);
  // The same by coefficients. kNo: its pixels have to be decoded.
  enum class Sent : uint8_t { kYes, kNo, kNoRoom };
  absl::StatusOr<Sent> SendBlocks(const StoredRect& window, size_t file_bytes,
                                  GpuThread* thread, RowPixels* pixels);
  void StoreHostValues(size_t row);

  const GpuProgram& program_;
  const GroupOutputs outputs_;
  GpuQueue* const queue_;
  Slot* const slot_;
  FusedGroup fused_;
  absl::Status begun_;
  std::vector<GroupRow> rows_;
  std::vector<size_t> field_at_;  // of the fields in the slot's outputs
  // The bytes of the slot for pixels; the stages' values lie behind them.
  size_t pixels_room_;
  std::span<uint32_t> faults_;
  std::span<DeviceJpeg> jpegs_;
  std::atomic<size_t> pixels_used_{0}, images_used_{0};
  Done done_;
};

}  // namespace leat::worker
