// SPDX-License-Identifier: Apache-2.0
//
// FormKeeper: whoever keeps the forms of files, as decodes see it. A decode
// asks it which form there is and which is wanted, and gives it what was made
// on the way. Rows have the same bytes whatever it answers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "worker/image/jpeg/forms/kinds.h"

namespace leat::worker {

// DecodeScale says how large images are decoded. Kept pixels are those of the
// full size, so a reduced decode neither uses nor makes any.
enum class DecodeScale : uint8_t { kFull, kReduced };
inline constexpr size_t kDecodeScales = 2;

// A form, for who holds it and cannot look into it.
struct KeptForm {
  std::shared_ptr<const JpegForm> form;  // null: none
  JpegFormKind kind = JpegFormKind::kSeekIndex;
  size_t bytes = 0;
  // Not a seek index of a part of the file, which stays in the process.
  bool whole = true;
};

// What the keeper says before a decode.
struct FormWish {
  KeptForm use;          // made of these very bytes; none: decode plainly
  FormKinds make;        // if any: by a plain decode; pixels alone
  size_t max_bytes = 0;  // of coefficients or pixels that are made
  // Whether the decode is to note where the MCUs that it goes through begin.
  // REQUIRES: `use` is none or a seek index, and nothing is to be made.
  bool grow = false;
};

// What the decode says behind it.
struct FormAnswer {
  // To the end; none: decoded plainly, as where the kept pixels have other
  // colours.
  std::optional<JpegFormKind> used;
  // What has grown included, if it is longer than before.
  std::vector<KeptForm> made;
  FormKinds refused;  // of those that were to be made, or to grow
  bool gray = false;  // the colours of the decode
};

// Called by one thread, Begin and End in turns.
class FormKeeper {
 public:
  virtual ~FormKeeper() = default;
  // A JPEG file is about to be decoded.
  virtual FormWish Begin(std::span<const std::byte> file,
                         DecodeScale scale) = 0;
  // It was. Not called of a file that cannot be decoded.
  virtual void End(FormAnswer answer) = 0;
};

}  // namespace leat::worker
