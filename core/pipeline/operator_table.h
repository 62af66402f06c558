// SPDX-License-Identifier: Apache-2.0
//
// The table of operators, and the functions with which its entries are written.
// Each family has one file in core/operators, with signatures and types side by
// side.
//
// docs/howto/operator.md says how to add one.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "core/pipeline/operators.h"
#include "core/tensor/image_size.h"

namespace leat {

using TypesOr = absl::StatusOr<std::vector<ValueType>>;
using Inputs = std::span<const ValueType>;
// The types of arguments that are lists.
using Ints = std::vector<int64_t>;
using Floats = std::vector<double>;
using Texts = std::vector<std::string>;

struct OperatorEntry {
  OperatorInfo info;
  // Returns the types of a node's outputs. Checks constraints between
  // arguments, and completes the node: a single number in `size` becomes two.
  // kInvalidArgument: names the argument or the input, without the node.
  // REQUIRES: the arguments are complete and have their types; the number of
  // inputs is the operator's. nullptr if `stored_types`.
  TypesOr (*infer)(Node* node, Inputs inputs);
};

std::span<const OperatorEntry> OperatorTable();

using OperatorList = std::vector<OperatorEntry>;
void AddReaders(OperatorList* list);
void AddLoaderReaders(OperatorList* list);
void AddRecordReaders(OperatorList* list);
void AddArrayReaders(OperatorList* list);
void AddTokenReaders(OperatorList* list);
void AddImageOperators(OperatorList* list);
void AddGeometryOperators(OperatorList* list);
void AddWarpOperators(OperatorList* list);  // called by AddGeometryOperators
void AddTensorOperators(OperatorList* list);
void AddColorOperators(OperatorList* list);
void AddArithmeticOperators(OperatorList* list);
void AddValueOperators(OperatorList* list);
void AddRandomOperators(OperatorList* list);
void AddBatchOperators(OperatorList* list);
void AddPackOperator(OperatorList* list);
void AddAugmentOperators(OperatorList* list);

// --- Signatures -------------------------------------------------------------

inline constexpr double kMaxSide = 65'500;  // of an image: as JPEG's

ArgInfo Arg(std::string name, ArgType type, std::optional<Value> default_value,
            std::string doc);
ArgInfo Ranged(ArgInfo arg, double min, double max);
ArgInfo PerSample(ArgInfo arg);
// Return an argument with a default: a flag, a number of a range, or a list of
// such numbers, which is empty.
ArgInfo FlagArg(std::string name, bool value, std::string doc);
ArgInfo IntArg(std::string name, int64_t value, double least, double most,
               std::string doc);
ArgInfo FloatArg(std::string name, double value, double least, double most,
                 std::string doc);
ArgInfo IntsArg(std::string name, double least, double most, std::string doc);
ArgInfo FloatsArg(std::string name, double least, double most, std::string doc);
// A number that may differ from sample to sample.
ArgInfo Scalar(std::string name, double value, double least, double most,
               std::string doc);
// Marks an argument added to an operator after its first release.
ArgInfo AddedLater(ArgInfo arg);
// Marks a list that may have an entry for each sample.
ArgInfo OfData(ArgInfo arg);
ArgInfo Choice(std::string name, std::optional<Value> default_value,
               std::vector<std::string> choices, std::string doc);
Value Text(const char* text);
// Returns the argument "rule" of operators that move pixels.
ArgInfo PlacesRuleArg();
// Returns the argument "size": height and width.
ArgInfo SizeArg(std::string doc);
std::vector<ArgInfo> ResamplingArgs();
ArgInfo ResamplingRuleArg();
std::vector<ArgInfo> Join(std::vector<ArgInfo> first,
                          std::vector<ArgInfo> second);
OperatorInfo Operator(std::string name, int inputs, int outputs,
                      std::vector<ArgInfo> args, std::string doc);
OperatorInfo Random(OperatorInfo info);
// Marks a reader whose output types depend on the stored data.
OperatorInfo StoredTypes(OperatorInfo info);
// Marks an operator that only moves, counts or converts elements, so that it
// takes those of all types.
OperatorInfo TakesCarried(OperatorInfo info);

// --- Types ------------------------------------------------------------------

template <class T>
const T& ArgOf(const Node& node, const char* name) {
  return std::get<T>(node.args.at(name));
}
// Returns the number of entries of a list argument, in either of its forms.
template <class T>
uint64_t CountOf(const Node& node, const char* name) {
  const Value& value = node.args.at(name);
  const auto* const list = std::get_if<LongList>(&value);
  return list != nullptr ? list->count : std::get<std::vector<T>>(value).size();
}
std::vector<ValueType> OneTensor(DType dtype, Shape shape);
// Accepts (height, width, 1 to 4 channels).
absl::Status WantImage(const ValueType& type);
absl::Status WantUint8Image(const ValueType& type);
// Accepts an image whose sides, as far as the type says them, are at most
// kMaxSide.
absl::Status WantSides(const ValueType& image);
absl::Status WantTensor(const ValueType& type);
absl::Status WantNumbers(const ValueType& type);
// Accepts two numbers: minimum and maximum.
absl::Status WantInterval(const Node& node, const char* name);
absl::Status WantAtMostOne(const Node& node, const char* name);
// Accepts one number, or one for each channel.
absl::Status WantPerChannel(const Node& node, const char* name,
                            int64_t channels);
// Returns the type that the argument "dtype" names.
DType DTypeOf(const Node& node);
// Completes a list of one number to two, height and width. kInvalidArgument: it
// has more than two. T: int64_t or double.
template <class T>
absl::Status CompletePair(Node* node, const char* name);
// Returns the argument "size", completed; {0, 0} if it was not given.
absl::StatusOr<ImageSize> OptionalSize(Node* node);

}  // namespace leat
