// SPDX-License-Identifier: Apache-2.0
//
// KeptPixels: the pixels of a file of a format other than JPEG, which a keeper
// may have from an earlier decode. It asks the keeper before the decode, and
// reports to it afterwards, as KeptDecode does for a JPEG.
//
// They are the pixels that the codec writes: as they are stored, neither turned
// nor converted, so they serve decodes of all colours.
#pragma once

#include <cstddef>
#include <span>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "worker/image/codecs/codec.h"
#include "worker/image/jpeg/forms/keeper.h"

namespace leat::worker {

// Lives as long as the decode; thread-compatible.
class KeptPixels {
 public:
  // A decode of no file.
  KeptPixels() = default;
  // `keeper` nullptr: nothing is kept.
  KeptPixels(FormKeeper* keeper, std::span<const std::byte> file);

  // Returns the pixels, header.bytes() of them: kept ones, or those that
  // `decode` has written, and that are kept if the keeper wants them. nullptr:
  // neither, so that the caller decodes into memory of its own. Valid as long as
  // this object. Errors are those of `decode`.
  using Decode = absl::FunctionRef<absl::Status(std::byte* out)>;
  absl::StatusOr<const std::byte*> Get(const ImageHeader& header,
                                       Decode decode);
  // Called after the file was decoded.
  void End();

 private:
  FormKeeper* keeper_ = nullptr;
  std::span<const std::byte> file_;
  FormWish wish_;
  FormAnswer answer_;
  KeptForm made_;
};

}  // namespace leat::worker
