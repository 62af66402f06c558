// SPDX-License-Identifier: Apache-2.0
//
// Where forms meet libjpeg's insides.
//
// libjpeg has no function by which a program gives it coefficients for pixels.
// Its modules call each other through pointers, though, which jpegint.h
// declares, and which Debian ships: `cinfo->entropy->decode_mcu` is called once
// for each MCU, with its blocks, all zero, or with null for MCUs of rows that
// are skipped. These are the first two members of a struct that has not changed
// since 1994. The coefficients of a file of several scans are a member of
// another struct (`cinfo->coef->coef_arrays`), whose first five members have
// not changed either. The code depends on nothing else of the insides.
#pragma once

#include <cstdio>

extern "C" {
#include <jpeglib.h>
}

#include "worker/image/jpeg/forms/mcu_source.h"

namespace leat::worker {

// Whether this library can be given MCUs: it is a libjpeg-turbo of which that
// is known, its headers were there when this was compiled, and the one that is
// loaded has decoded a known file by a source of ours to the same pixels,
// asking for each MCU once. Found out at the first call; false turns all forms
// off.
bool LibraryTakesMcus();

// Whether CoefficientsOf gives this library's coefficients: LibraryTakesMcus(),
// and a known progressive file has given the same pixels by them.
bool LibraryGivesCoefficients();

// The coefficients of each component of a file of several scans, which belong
// to *cinfo. REQUIRES: jpeg_start_decompress has returned; this is asked only
// where LibraryGivesCoefficients().
jvirt_barray_ptr* CoefficientsOf(j_decompress_ptr cinfo);

// From here on libjpeg asks `source` for MCUs; where it has none, the error
// handler's jump is taken, with JpegErrors::no_mcus set. REQUIRES:
// cinfo->err is a JpegErrors; jpeg_start_decompress has returned, of a
// sequential file; the source lives until the decoding ends.
void TakeMcusFrom(McuSource* source, j_decompress_ptr cinfo);

}  // namespace leat::worker
