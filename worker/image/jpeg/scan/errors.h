// SPDX-License-Identifier: Apache-2.0
//
// JpegErrors: libjpeg's errors and warnings as statuses.
//
// libjpeg reports an error by a function that must not return; this one jumps
// to the place of the last setjmp. A warning about lost data is an error.
#pragma once

#include <csetjmp>
#include <cstdio>

extern "C" {
#include <jpeglib.h>
}

#include "absl/status/status.h"

namespace leat::worker {

struct JpegErrors {
  jpeg_error_mgr manager;  // first: libjpeg hands out a pointer to it
  jmp_buf jump;
  bool too_many_scans = false;  // set by the code that counts scans
  bool no_mcus = false;         // set when an McuSource has no coefficients
  bool given_up = false;        // set when the decoding was told to give up

  // Returns the manager for cinfo.err.
  jpeg_error_mgr* Init();
  static JpegErrors* Of(j_common_ptr cinfo) {
    return reinterpret_cast<JpegErrors*>(cinfo->err);
  }
  void Forget() {
    code_ = 0;
    too_many_scans = false;
    no_mcus = false;
    given_up = false;
  }

  // Describes the last error. kDataLoss: the file is damaged. kInvalidArgument:
  // its kind is not supported. kResourceExhausted: too little memory for it.
  absl::Status ToStatus() const;

 private:
  [[noreturn]] static void OnError(j_common_ptr cinfo);
  static void OnMessage(j_common_ptr cinfo, int level);

  int code_ = 0;
  char text_[JMSG_LENGTH_MAX] = {};
};

}  // namespace leat::worker
