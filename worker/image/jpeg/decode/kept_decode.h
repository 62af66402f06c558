// SPDX-License-Identifier: Apache-2.0
//
// KeptDecode: a decode of a file whose forms somebody keeps: what the keeper is
// asked before it and told behind it.
#pragma once

#include <cstddef>
#include <span>

#include "worker/image/jpeg/decode/decoder.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {

// Lives as long as the decode; thread-compatible.
class KeptDecode {
 public:
  // Stands for no file.
  KeptDecode() = default;
  // `keeper` null: nobody keeps any.
  KeptDecode(FormKeeper* keeper, std::span<const std::byte> file,
             DecodeScale scale = DecodeScale::kFull);

  // Like JpegDecoder::Open, with the form that the keeper has.
  absl::Status Open(JpegDecoder& decoder) const;
  // Behind the last row that is wanted of the file.
  void End(JpegDecoder& decoder) const;

 private:
  FormKeeper* keeper_ = nullptr;
  std::span<const std::byte> file_;
  FormWish wish_;
};

}  // namespace leat::worker
