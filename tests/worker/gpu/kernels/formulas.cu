// SPDX-License-Identifier: Apache-2.0
//
// The operators' per-pixel formulas, each once as device code: they must
// compile for a GPU as they do for the CPU.
#include "worker/image/formulas/arithmetic.h"
#include "worker/image/formulas/augment.h"
#include "worker/image/formulas/color.h"
#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/draws.h"
#include "worker/image/formulas/pixel.h"
#include "worker/image/formulas/statistics.h"
#include "worker/image/formulas/warp.h"

namespace {

namespace formulas = leat::worker;

template <class Operator, class T>
__device__ void Apply(const T* in, T* out) {
  out[0] = Operator::Of(in[0], in[1]);
}
template <class Operator, class T>
__device__ void Compare(const T* in, uint8_t* out) {
  out[0] = Operator::Of(in[0], in[1]);
}

template <class T>
__device__ void OfNumbers(const T* in, T* out, uint8_t* truth) {
  Apply<formulas::Sum>(in, out++);
  Apply<formulas::Difference>(in, out++);
  Apply<formulas::Product>(in, out++);
  Apply<formulas::Least>(in, out++);
  Apply<formulas::Greatest>(in, out++);
  Apply<formulas::Negative>(in, out++);
  Apply<formulas::Magnitude>(in, out++);
  Compare<formulas::IsLess>(in, truth++);
  Compare<formulas::IsLessOrEqual>(in, truth++);
  Compare<formulas::IsEqual>(in, truth++);
  Compare<formulas::IsNotEqual>(in, truth++);
}

template <class T>
__device__ void OfIntegers(const T* in, T* out, uint8_t* truth) {
  OfNumbers(in, out, truth);
  Apply<formulas::WholeQuotient>(in, out + 7);
  Apply<formulas::BitsAnd>(in, out + 8);
  Apply<formulas::BitsOr>(in, out + 9);
  Apply<formulas::BitsXor>(in, out + 10);
}

}  // namespace

extern "C" {

__global__ void arithmetic(const uint8_t* bytes, uint8_t* bytes_out,
                           const int32_t* ints, int32_t* ints_out,
                           const int64_t* longs, int64_t* longs_out,
                           const float* floats, float* floats_out,
                           uint8_t* truth) {
  OfIntegers(bytes, bytes_out, truth);
  OfIntegers(ints, ints_out, truth + 4);
  OfIntegers(longs, longs_out, truth + 8);
  OfNumbers(floats, floats_out, truth + 12);
  Apply<formulas::Quotient>(floats, floats_out + 7);
}

__global__ void conversions(const double* in, float* out, int64_t* longs,
                            uint16_t* halves) {
  out[0] = leat::Normalized(out[1], out[2], out[3], out[4]);
  out[5] = leat::FloatOfHalf(halves[0]);
  halves[1] = leat::HalfOf(out[6]);
  longs[0] = leat::SaturatedInt(in[0], longs[1], longs[2]);
}

__global__ void colors(const formulas::ColorMatrix* matrix, const float* in,
                       uint8_t* bytes) {
  bytes[0] = formulas::ByteOf(formulas::Linear(in[0], in[1], in[2]));
  bytes[1] = formulas::ByteOf(
      formulas::MatrixRow(*matrix, threadIdx.x % 3, in[0], in[1], in[2]));
  formulas::CmykToRgb(bytes + 4, bytes + 8);
  formulas::RgbToYcbcr(bytes + 12, bytes + 16);
  bytes[20] = formulas::Luma(bytes + 21);
  bytes[24] = formulas::FinishTaps(
      formulas::AddTap(formulas::RoundingTerm(14), bytes[25], bytes[26]), 14);
}

__global__ void warps(const formulas::WarpMap* map, int64_t* at, uint8_t* bytes,
                      float* values) {
  at[0] = map->SourceX(threadIdx.x, threadIdx.y);
  at[1] = map->SourceY(threadIdx.x, threadIdx.y);
  at[2] = formulas::WarpFloor(at[0]);
  bytes[0] = formulas::WarpBlend(bytes[1], bytes[2], bytes[3], bytes[4],
                                 formulas::WarpWeight(at[0]),
                                 formulas::WarpWeight(at[1]));
  values[0] = formulas::WarpBlend(values[1], values[2], values[3], values[4],
                                  formulas::WarpFraction(at[0]),
                                  formulas::WarpFraction(at[1]));
}

__global__ void dali(const formulas::DaliMap* map, const float* in, float* out,
                     int32_t* at, uint8_t* bytes) {
  out[0] = formulas::DaliFilterAt(in, at[0], in[1]);
  out[1] = formulas::AddDaliTap(in[2], in[3], in[4]);
  out[2] = formulas::DaliBlend(in[5], in[6], in[7], in[8], in[9], in[10]);
  out[3] = map->FirstX(at[1]) + map->RunX();
  out[4] = map->FirstY(at[1]) + map->RunY();
  at[2] = formulas::DaliCeil(in[11]);
  at[3] = formulas::DaliNearest(in[12], at[4]);
  bytes[0] = formulas::FinishDaliTaps(in[13]);
  bytes[1] = formulas::FinishDaliBlend(in[14]);
}

__global__ void draws(const uint32_t* words, double none, float* out) {
  out[0] = formulas::LogOf(out[1]);
  formulas::NormalPair(words[0], words[1], out + 2, out + 3);
  out[4] = formulas::FewEvents(out[5], none, words[2]);
  out[6] = formulas::ManyEvents(out[7], words[3], words[4]);
}

__global__ void statistics(const double* in, const float* x, double* out,
                           float* factor) {
  formulas::StandardSum sum{in[0], in[1], 1};
  sum.Add(formulas::SquareOf(x[0], in[8]));
  out[0] = sum.Of();
  out[1] = formulas::VarianceOf(in[2], in[3], in[4]);
  factor[0] = formulas::StandardFactor(in[5], in[6], in[7]);
}

__global__ void augmentations(const int32_t* in, float factor, uint8_t* out) {
  out[0] = out[1] & formulas::PosterizeMask(in[0]);
  out[2] = formulas::Solarized(out[3], in[1]);
  out[4] = formulas::SolarizedByAdding(out[5], in[2]);
  out[6] = formulas::Sharpened(out[7], in[3], formulas::SharpnessOf(factor));
  out[8] = formulas::AutoContrasted(in[4], in[5], in[6]);
  out[9] = formulas::Equalized(in[7], in[8]);
}

}  // extern "C"
