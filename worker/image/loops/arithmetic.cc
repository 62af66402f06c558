// SPDX-License-Identifier: Apache-2.0
#include "worker/image/loops/arithmetic.h"

#include "worker/image/base/simd.h"
#include "worker/image/formulas/arithmetic.h"

namespace leat::worker {
namespace {

template <class Op, class T, class Out>
struct Loop {
  LEAT_BODY static void Run(const void* a, const void* b, size_t count,
                            void* out) {
    const T* const __restrict left = static_cast<const T*>(a);
    const T* const __restrict right = static_cast<const T*>(b);
    Out* const __restrict to = static_cast<Out*>(out);
    for (size_t i = 0; i < count; ++i)
      to[i] = static_cast<Out>(Op::Of(left[i], right[i]));
  }
};

template <class Op, class T, class Out>
BinaryLoops Pair() {
  return {Plain<Loop<Op, T, Out>>::Run, HasAvx2()
                                            ? Avx2<Loop<Op, T, Out>>::Run
                                            : Plain<Loop<Op, T, Out>>::Run};
}

template <class Op>
BinaryLoops OfNumbers(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return Pair<Op, uint8_t, uint8_t>();
    case DType::kInt32:
      return Pair<Op, int32_t, int32_t>();
    case DType::kInt64:
      return Pair<Op, int64_t, int64_t>();
    case DType::kFloat32:
      return Pair<Op, float, float>();
    default:
      return {};
  }
}

template <class Op>
BinaryLoops OfIntegers(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return Pair<Op, uint8_t, uint8_t>();
    case DType::kInt32:
      return Pair<Op, int32_t, int32_t>();
    case DType::kInt64:
      return Pair<Op, int64_t, int64_t>();
    default:
      return {};
  }
}

template <class Op>
BinaryLoops OfComparisons(DType dtype) {
  switch (dtype) {
    case DType::kUint8:
      return Pair<Op, uint8_t, uint8_t>();
    case DType::kInt32:
      return Pair<Op, int32_t, uint8_t>();
    case DType::kInt64:
      return Pair<Op, int64_t, uint8_t>();
    case DType::kFloat32:
      return Pair<Op, float, uint8_t>();
    default:
      return {};
  }
}

BinaryLoops OfQuotients(DType dtype) {
  if (dtype != DType::kFloat32) return {};
  return Pair<Quotient, float, float>();
}

template <class T>
struct Chosen {
  LEAT_BODY static void Run(const uint8_t* which, const void* a, const void* b,
                            size_t count, void* out) {
    const T* const left = static_cast<const T*>(a);
    const T* const right = static_cast<const T*>(b);
    T* const __restrict to = static_cast<T*>(out);
    for (size_t i = 0; i < count; ++i) {
      const T yes = left[i], no = right[i];
      to[i] = which[i] ? yes : no;
    }
  }
};

template <class T>
ChoiceLoop BestChoice() {
  return HasAvx2() ? Avx2<Chosen<T>>::Run : Plain<Chosen<T>>::Run;
}

struct Entry {
  std::string_view op;
  BinaryLoops (*loops)(DType);
};

constexpr Entry kEntries[] = {
    {"add", OfNumbers<Sum>},
    {"sub", OfNumbers<Difference>},
    {"mul", OfNumbers<Product>},
    {"div", OfQuotients},
    {"floordiv", OfIntegers<WholeQuotient>},
    {"min", OfNumbers<Least>},
    {"max", OfNumbers<Greatest>},
    {"neg", OfNumbers<Negative>},
    {"abs", OfNumbers<Magnitude>},
    {"lt", OfComparisons<IsLess>},
    {"le", OfComparisons<IsLessOrEqual>},
    {"eq", OfComparisons<IsEqual>},
    {"ne", OfComparisons<IsNotEqual>},
    {"bitwise_and", OfIntegers<BitsAnd>},
    {"bitwise_or", OfIntegers<BitsOr>},
    {"bitwise_xor", OfIntegers<BitsXor>},
};

}  // namespace

BinaryLoops FindBinaryLoops(std::string_view op, DType dtype) {
  for (const Entry& entry : kEntries)
    if (entry.op == op) return entry.loops(dtype);
  return {};
}

ChoiceLoop FindChoiceLoop(size_t element_bytes) {
  switch (element_bytes) {
    case 1:
      return BestChoice<uint8_t>();
    case 4:
      return BestChoice<uint32_t>();
    default:
      return BestChoice<uint64_t>();
  }
}

}  // namespace leat::worker
