// SPDX-License-Identifier: Apache-2.0
//
// Arguments of operators: conversion to their type, ranges, and the words for
// messages. Part of Check().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/pipeline/operators.h"

namespace leat {

// `name`, cut to what fits a message: names come from outside.
std::string Shown(std::string_view name);

// "; did you mean \"decode\"?" or, if nothing is near, all that is known.
std::string Suggestion(std::string_view name,
                       const std::vector<std::string_view>& known);

// "integers 1 to 65500".
std::string ExpectedText(const ArgInfo& arg);

// Replaces lists that are too long for a message by LongLists with their
// values. kInvalidArgument: a list that is no data is too long; an entry that
// CompleteArgument would refuse in a short list; a bound of LongList. Names
// operator and argument.
absl::Status ShortenLists(Graph* graph);

// What FromProto does not know of single lists. kInvalidArgument: too many, or
// too many bytes.
absl::Status CheckLists(const Graph& graph);

// Whether the entries are such as the argument takes. REQUIRES: values.
// kInvalidArgument names the entry.
absl::Status CheckEntries(const ArgInfo& arg, const LongList& list);

// Brings a constant into the argument's type, in place: an integer where a
// number is wanted, one number in place of a list. kInvalidArgument: another
// type, out of range, too long, not among the choices; without the name.
absl::Status CompleteArgument(const ArgInfo& arg, Value* value);

}  // namespace leat
