// SPDX-License-Identifier: Apache-2.0
#include "worker/image/jpeg/scan/errors.h"

extern "C" {
#include <jerror.h>
}

#include "core/cluster/fault.h"
#include "core/status.h"

namespace leat::worker {
namespace {

// True for warnings that leave pixels intact: oddities between segments,
// unknown flags.
bool IsHarmless(int code) {
  return code == JWRN_EXTRANEOUS_DATA || code == JWRN_ADOBE_XFORM ||
         code == JWRN_JFIF_MAJOR || code == JWRN_TOO_MUCH_DATA ||
         code == JWRN_BOGUS_ICC;
}

}  // namespace

jpeg_error_mgr* JpegErrors::Init() {
  jpeg_std_error(&manager);
  manager.error_exit = OnError;
  manager.emit_message = OnMessage;
  return &manager;
}

void JpegErrors::OnError(j_common_ptr cinfo) {
  JpegErrors* const errors = Of(cinfo);
  errors->code_ = cinfo->err->msg_code;
  cinfo->err->format_message(cinfo, errors->text_);
  std::longjmp(errors->jump, 1);
}

void JpegErrors::OnMessage(j_common_ptr cinfo, int level) {
  if (level < 0 && !IsHarmless(cinfo->err->msg_code)) OnError(cinfo);
}

absl::Status JpegErrors::ToStatus() const {
  switch (code_) {
    case JERR_OUT_OF_MEMORY:
      return WithFault(ResourceExhausted("JPEG: {}", text_), Fault::kWorker);
    case JERR_NO_BACKING_STORE:
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
      return ResourceExhausted("JPEG needs too much memory: {}", text_);
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_ARITH_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
    case JERR_COMPONENT_COUNT:
      return InvalidArgument("JPEG of a kind that is not supported: {}", text_);
    default:
      return DataLoss("damaged JPEG: {}", text_);
  }
}

}  // namespace leat::worker
