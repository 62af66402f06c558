// SPDX-License-Identifier: Apache-2.0
//
// Input of the kernels of stages: for each launch an array of descriptors, one
// per row, in the block that fused_descriptor.h begins. Addresses are the
// device's, steps count elements.
//
// All descriptors begin with a StageHead, which can exclude a row from a
// launch.
#pragma once

#include <cstddef>
#include <cstdint>

#include "core/tensor/tensor.h"
#include "worker/gpu/layout/fused_descriptor.h"
#include "worker/image/formulas/augment.h"
#include "worker/image/formulas/color.h"
#include "worker/image/formulas/dali_pixel.h"
#include "worker/image/formulas/draws.h"
#include "worker/image/formulas/warp.h"

namespace leat::worker {

// A kernel of stages.
enum class StageKind : uint8_t {
  kMap,
  kPixels,
  kResample,
  kWarp,
  kBlur,
  kNoise,
  kCount,
  kByteTable,
  kByteLookup,
  kSharpen,
  kStandard,
};
inline constexpr int kStageKinds = 11;

struct StageHead {
  uint64_t out = 0;             // of the result; 0: the row is not written
  uint32_t threads = 0;         // for the row; 0: the row is not written
  DType dtype = DType::kUint8;  // of the result
};

// --- Element by element -----------------------------------------------------

inline constexpr int kStageAxes = 8;

struct StageOperand {
  uint64_t at = 0;  // address of the element for the result's first
  DType dtype = DType::kUint8;
  int32_t steps[kStageAxes] = {};
};

enum class MapOp : uint8_t {
  kCopy,       // Converted
  kNormalize,  // Normalized by the operands mean and factor, and `constant`
  kLinear,     // Linear by `factor` and `constant`
  // an element of `table`, which has `count` places and one for others
  kLookup,
  // `count` elements for each of the operand's: table[1] at its index, else
  // table[0]
  kOneHot,
  // the second operand where the first is true, else the third; operand k is
  // left unconverted if bit k of `count` is set
  kWhere,
  kInBoxes,  // the first operand inside any of the boxes, else the second
  kAdd,      // from here on: worker/image/formulas/arithmetic.h
  kSub,
  kMul,
  kDiv,
  kFloorDiv,
  kMin,
  kMax,
  kNeg,
  kAbs,
  kLess,
  kLessOrEqual,
  kEqual,
  kNotEqual,
  kBitAnd,
  kBitOr,
  kBitXor,
};

struct StageBox {
  int32_t begin[kStageAxes], end[kStageAxes];
};

struct MapRow {
  StageHead head;
  MapOp op = MapOp::kCopy;
  DType type = DType::kUint8;  // arithmetic converts its operands to it
  // the type of arithmetic's result, before it is converted
  DType computed = DType::kUint8;
  uint32_t rank = 0;
  uint32_t dims[kStageAxes] = {};  // of the result
  StageOperand in[3];
  float factor = 1, constant = 0;
  // kLookup, kOneHot: elements; kInBoxes: StageBox[count].
  uint64_t table = 0;
  uint64_t count = 0;
  // The address of the row's uint32_t that is set if an element is invalid (a
  // divisor of 0, an unknown class). 0: the operation cannot fail.
  uint64_t fault = 0;
};

// --- Pixel by pixel ---------------------------------------------------------

// MatrixRow from dense to dense; or RgbToYcbcr, for three bytes.
struct PixelsRow {
  StageHead head;
  uint64_t in = 0;
  bool ycbcr = false;
  DType in_dtype = DType::kUint8;
  uint32_t in_channels = 3, channels = 3;
  ColorMatrix matrix;
};

// Makes a dense value from a view of a value of bytes, or of decoded pixels. It
// works on one channel at a time unless there are three.
struct ResampleRow {
  StageHead head;
  FusedView view;
  FusedRow from;  // tables as offsets from `tables`
  uint64_t tables = 0;
  uint32_t channels = 3;
};

struct WarpRow {
  StageHead head;
  uint64_t in = 0;
  DType in_dtype = DType::kUint8;  // uint8 or float32; also of the result
  bool dali = false, nearest = false, clamped = false;
  float fill = 0;
  int32_t in_height = 0, in_width = 0;
  uint32_t width = 0, channels = 3;  // of the result
  WarpMap map;
  DaliMap dali_map;
};

// One of the two passes of a blur: down a value of bytes or floats, or across
// the floats that the first pass made.
struct BlurRow {
  StageHead head;
  uint64_t in = 0;
  DType in_dtype = DType::kUint8;
  bool across = false;
  int32_t radius = 0;
  uint64_t weights = 0;  // float[radius + 1]
  int32_t height = 0, width = 0, channels = 3;
};

// --- Noise ------------------------------------------------------------------

struct NoiseRow {
  StageHead head;
  uint64_t in = 0;
  NoiseKind kind = NoiseKind::kNormal;
  uint32_t counter[4] = {}, key[2] = {};  // SampleRng::Origin
  uint32_t group = 1;                     // elements per drawn word
  float mean = 0, deviation = 0;
  float factor = 0;
  uint64_t noisy = 0, salted = 0;
  uint64_t salt = 0, pepper = 0;  // addresses of one element each
};

// --- Statistics -------------------------------------------------------------

// Axes of a dense value, in their order; adjacent axes that belong together are
// merged.
struct StageAxes {
  uint32_t count = 0;
  uint32_t sizes[kStageAxes] = {};
  uint32_t steps[kStageAxes] = {};  // in elements
};

// The result of a launch: the sums of all runs of each group (kStandardRun),
// the sums of the squares of the distances from the mean, or two floats per
// group, its mean and the factor by its deviation.
enum class StandardPart : uint8_t { kSums, kSquares, kFactors };

struct StandardRow {
  StageHead head;
  StandardPart part = StandardPart::kSums;
  uint32_t groups = 0, runs = 0;  // runs per group
  uint64_t in = 0;
  DType in_dtype = DType::kUint8;
  StageAxes kept, summed;
  // double each; run r of group g has the index r * groups + g.
  uint64_t sums = 0, squares = 0;
  // Given values: double each, `…_step` apart (0: one for all); 0: computed.
  uint64_t means = 0, deviations = 0;
  uint32_t mean_step = 0, deviation_step = 0;
  double ddof = 0, epsilon = 0, scale = 1;
};

// --- Images of bytes --------------------------------------------------------

// How often each byte occurs: the result is uint32_t[channels][256].
struct CountRow {
  StageHead head;
  uint64_t in = 0;
  uint32_t channels = 3;
};

// The new value of each byte: the result is uint8_t[channels][256].
struct ByteTableRow {
  StageHead head;
  uint64_t counts = 0;
  ByteMap kind = ByteMap::kSame;
  uint32_t channels = 3;
  int32_t number = 0;
  float factor = 1, constant = 0;
  double pixels = 1;
};

struct ByteLookupRow {
  StageHead head;
  uint64_t in = 0, tables = 0;
  uint32_t channels = 3;
};

struct SharpenRow {
  StageHead head;
  uint64_t in = 0;
  SharpnessWeights weights;
  int32_t height = 0, width = 0, channels = 3;
};

}  // namespace leat::worker
