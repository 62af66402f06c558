// SPDX-License-Identifier: Apache-2.0
//
// FormKeeper: the store of files' decoded forms, as decodes see it. A decode
// asks it which form exists and which is wanted, and gives it the forms that it
// made. Rows have the same bytes whatever it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "core/clock.h"
#include "worker/image/jpeg/forms/kinds.h"

namespace leat::worker {

// Decodes whose times and forms are told apart: of JPEG files at their full
// size, or as large as each window allows (docs/decisions/0059); and of files
// of other formats, whose only form is their pixels.
enum class DecodeClass : uint8_t { kFull, kReduced, kOtherFormat };
inline constexpr size_t kDecodeClasses = 3;

inline FormKinds KindsOf(DecodeClass decode) {
  return decode == DecodeClass::kOtherFormat
             ? FormKinds::Only(JpegFormKind::kPixels)
             : FormKinds{
                   .seek_index = true, .coefficients = true, .pixels = true};
}

// A form, for code that holds it and does not know its contents.
struct KeptForm {
  std::shared_ptr<const JpegForm> form;  // nullptr: none
  JpegFormKind kind = JpegFormKind::kSeekIndex;
  size_t bytes = 0;
  // False for a seek index of a part of the file, which stays in the process.
  bool whole = true;
  // False for pixels of another format: neither disks nor peers have a form of
  // such a file.
  bool of_jpeg = true;
};

// The keeper's instructions before a decode.
struct FormWish {
  KeptForm use;          // made from these very bytes; none: plain decode
  FormKinds make;        // forms to make by a plain decode; pixels alone
  size_t max_bytes = 0;  // of coefficients or pixels that are made
  // True if the decode is to note where the MCUs that it passes begin.
  // REQUIRES: `use` is none or a seek index, and nothing is to be made.
  bool grow = false;
};

// The decode's report after it has ended.
struct FormAnswer {
  // The form that was used to the end; none: a plain decode, for example
  // because the kept pixels have other colours.
  std::optional<JpegFormKind> used;
  // Includes an extended seek index, if it is longer than before.
  std::vector<KeptForm> made;
  FormKinds refused;  // those requested, but not made or extended
  // Those that cannot be made of the file at this scale, requested or not.
  FormKinds impossible;
  // The time, by the keeper's Now, that making the form took beyond a plain
  // decode. nullopt: it was not measured, and is the difference to the mean of
  // plain decodes.
  std::optional<Duration> making;
  // Colours of the decode; the scale at which it would keep pixels.
  bool gray = false;
  int pixel_halvings = 0;
};

// Called by one thread. An End belongs to the last Begin, which may have none.
class FormKeeper {
 public:
  virtual ~FormKeeper() = default;
  // A file is about to be decoded.
  virtual FormWish Begin(std::span<const std::byte> file,
                         DecodeClass decode) = 0;
  // The file was decoded. Not called for a file that cannot be decoded.
  virtual void End(FormAnswer answer) = 0;
  // Returns the time by the clock that measures decodes.
  virtual MonotonicTime Now() const { return {}; }

  // Keeps a form of the file that is found after End, on any thread, without
  // waiting. It outlives this object, and is called at most once, while the
  // file's bytes exist; or it is dropped, and nothing is kept.
  using KeepLater = std::function<void(KeptForm form)>;
  // Returns it for the file that was decoded last, if its Begin wished that an
  // index grow; nullptr: none is wanted.
  virtual KeepLater Later() { return nullptr; }
};

}  // namespace leat::worker
