// SPDX-License-Identifier: Apache-2.0
//
// Arguments of operators: conversion to their types, ranges, and texts for
// error messages. Part of Check().
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "core/pipeline/operators.h"

namespace leat {

// Returns `name`, cut for an error message: names are untrusted input.
std::string Shown(std::string_view name);

// Returns "; did you mean \"decode\"?", or all known names if none is near.
std::string Suggestion(std::string_view name,
                       const std::vector<std::string_view>& known);

// Returns for example "integers 1 to 65500".
std::string ExpectedText(const ArgInfo& arg);

// Replaces lists that are too long for a message by LongLists with their
// values. kInvalidArgument: the list is too long and its argument is not one
// for data; an entry that CompleteArgument would reject in a short list; a
// bound of LongList. Names operator and argument.
absl::Status ShortenLists(Graph* graph);

// Checks bounds of all lists together, which FromProto does not check.
// kInvalidArgument: too many lists, or too many bytes.
absl::Status CheckLists(const Graph& graph);

// Checks that the argument accepts the entries. REQUIRES: the list has its
// values. kInvalidArgument names the entry.
absl::Status CheckEntries(const ArgInfo& arg, const LongList& list);

// Converts a constant to the argument's type, in place: to an integer where a
// number is wanted, one number to a list. kInvalidArgument: another type, out
// of range, too long, not among the choices; the message lacks the name.
absl::Status CompleteArgument(const ArgInfo& arg, Value* value);

}  // namespace leat
