// SPDX-License-Identifier: Apache-2.0
//
// KeptDecode: a decode of a file whose forms are kept: it asks the keeper
// before the decode and reports to it afterwards.
#pragma once

#include <cstddef>
#include <span>

#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {

// Lives as long as the decode; thread-compatible.
class KeptDecode {
 public:
  // A decode of no file.
  KeptDecode() = default;
  // `keeper` nullptr: no forms are kept.
  KeptDecode(FormKeeper* keeper, std::span<const std::byte> file,
             DecodeClass decode = DecodeClass::kFull);

  // Like JpegDecoder::Open, with the form that the keeper has.
  absl::Status Open(JpegDecoder& decoder) const;
  // Called after the last row that is wanted from the file.
  void End(JpegDecoder& decoder) const;
  // Returns how to keep an index that is found after End; nullptr: none is
  // wanted.
  FormKeeper::KeepLater Later() const {
    return wish_.grow ? keeper_->Later() : nullptr;
  }

 private:
  FormKeeper* keeper_ = nullptr;
  std::span<const std::byte> file_;
  FormWish wish_;
};

}  // namespace leat::worker
