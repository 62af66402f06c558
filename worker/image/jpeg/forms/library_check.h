// SPDX-License-Identifier: Apache-2.0
//
// The code that depends on libjpeg's internals.
//
// libjpeg has no function by which a program gives it coefficients for pixels.
// Its modules call each other through pointers, though, which jpegint.h
// declares and Debian ships: `cinfo->entropy->decode_mcu` is called once per
// MCU, with its blocks, all zero, or with null for MCUs of rows that are
// skipped. It is the second member of a struct whose first two have not changed
// since 1994. The coefficients of a file of several scans are a member of
// another struct (`cinfo->coef->coef_arrays`), whose first five members have
// not changed either. The code depends on no other internals.
#pragma once

#include <cstdio>

extern "C" {
#include <jpeglib.h>
}

#include "worker/image/jpeg/forms/mcu_source.h"

namespace leat::worker {

// True if this library can be given MCUs: it is a libjpeg-turbo of a version
// known to allow it, its headers were present at compile time, and the loaded
// library has decoded a known file to the same pixels with our source, asking
// for each MCU once. Checked at the first call; false turns all forms off.
bool LibraryTakesMcus();

// True if CoefficientsOf returns this library's coefficients:
// LibraryTakesMcus(), and a known progressive file has given the same pixels
// with them.
bool LibraryGivesCoefficients();

// Returns the coefficients of each component of a file of several scans; they
// belong to *cinfo. REQUIRES: jpeg_start_decompress has returned, and
// LibraryGivesCoefficients().
jvirt_barray_ptr* CoefficientsOf(j_decompress_ptr cinfo);

// From here on libjpeg asks `source` for MCUs; where it has none, the error
// handler's jump is taken, with JpegErrors::no_mcus set. REQUIRES: cinfo->err
// is a JpegErrors; jpeg_start_decompress has returned for a sequential file;
// the source lives until the decoding ends.
void TakeMcusFrom(McuSource* source, j_decompress_ptr cinfo);

}  // namespace leat::worker
