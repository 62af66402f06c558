// SPDX-License-Identifier: Apache-2.0
#include "worker/source/tfrecord/tf_example.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "core/status.h"

namespace leat::worker {
namespace {

using Bytes = std::span<const std::byte>;
using Kind = FeatureValues::Kind;

enum WireType : uint32_t {
  kVarint = 0,
  kFixed64 = 1,
  kLength = 2,
  kFixed32 = 5
};

// A message's fields, one after the other.
class WireFields {
 public:
  explicit WireFields(Bytes message)
      : at_(message.data()), end_(message.data() + message.size()) {}

  bool done() const { return at_ == end_; }
  const std::byte* at() const { return at_; }
  // Reads the next field's number and type; its value must be taken next.
  // Returns false if it is malformed.
  bool Next(uint32_t* number, uint32_t* type) {
    uint64_t tag = 0;
    if (!Varint(&tag) || tag > UINT32_MAX) return false;
    *number = static_cast<uint32_t>(tag >> 3);
    *type = static_cast<uint32_t>(tag & 7);
    return *number != 0;
  }
  bool Varint(uint64_t* value) {
    *value = 0;
    for (int shift = 0; shift < 70; shift += 7) {
      if (at_ == end_) return false;
      const auto byte = std::to_integer<uint64_t>(*at_++);
      *value |= (byte & 0x7f) << shift;
      if (byte < 0x80) return true;
    }
    return false;
  }
  bool Take(uint64_t size, Bytes* bytes) {
    if (size > static_cast<uint64_t>(end_ - at_)) return false;
    *bytes = Bytes(at_, size);
    at_ += size;
    return true;
  }
  bool Length(Bytes* bytes) {
    uint64_t size = 0;
    return Varint(&size) && Take(size, bytes);
  }
  bool Skip(uint32_t type) {
    uint64_t ignored = 0;
    Bytes bytes;
    switch (type) {
      case kVarint:
        return Varint(&ignored);
      case kFixed64:
        return Take(8, &bytes);
      case kLength:
        return Length(&bytes);
      case kFixed32:
        return Take(4, &bytes);
      default:
        return false;
    }
  }

 private:
  const std::byte* at_;
  const std::byte* const end_;
};

absl::Status Malformed(std::string_view what) {
  return DataLoss("its {} is malformed: not a tf.Example, or corrupt", what);
}

// Calls take(number, type, &fields) for each field of `message`; it must take
// the value and return true, otherwise the field is malformed.
template <class Take>
bool ForFields(Bytes message, Take take) {
  WireFields fields(message);
  while (!fields.done()) {
    uint32_t number = 0, type = 0;
    if (!fields.Next(&number, &type) || !take(number, type, &fields))
      return false;
  }
  return true;
}

bool ParseEntry(Bytes entry, std::string_view* name, FeatureBytes* feature) {
  *name = {};
  // An entry without a value is an empty Feature, as for maps.
  *feature = entry.first(0);
  bool has_value = false;
  return ForFields(
      entry, [&](uint32_t number, uint32_t type, WireFields* fields) {
        if (type != kLength || number > 2) return fields->Skip(type);
        Bytes value;
        if (!fields->Length(&value)) return false;
        if (number == 1) {
          *name = {reinterpret_cast<const char*>(value.data()), value.size()};
          return true;
        }
        *feature = value;
        return !std::exchange(has_value, true);
      });
}

// Visits the value fields of the lists of `kind` in a Feature message.
template <class TakeValues>
bool ForValues(Bytes lists, Kind kind, TakeValues take) {
  return ForFields(
      lists, [&](uint32_t number, uint32_t type, WireFields* fields) {
        if (type != kLength || number != static_cast<uint32_t>(kind))
          return fields->Skip(type);
        Bytes list;
        if (!fields->Length(&list)) return false;
        return ForFields(list, [&](uint32_t n, uint32_t t, WireFields* values) {
          return n == 1 ? take(t, values) : values->Skip(t);
        });
      });
}

// Counts a packed sequence of varints. Returns false if it is malformed.
bool CountVarints(Bytes packed, uint64_t* count) {
  int length = 0;
  for (const std::byte byte : packed) {
    if (std::to_integer<uint32_t>(byte) < 0x80) {
      ++*count;
      length = 0;
    } else if (++length == 10) {
      return false;
    }
  }
  return length == 0;
}

struct Counter {
  FeatureValues* values;
  int pieces = 0;  // packed sequences and single values

  bool Take(uint32_t type, WireFields* fields) {
    switch (values->kind) {
      case Kind::kBytes:
        return TakeBytes(type, fields);
      case Kind::kFloats:
        return TakeFloats(type, fields);
      default:
        return TakeInts(type, fields);
    }
  }
  bool TakeBytes(uint32_t type, WireFields* fields) {
    if (type != kLength) return fields->Skip(type);
    Bytes value;
    if (!fields->Length(&value)) return false;
    if (values->count++ == 0) values->bytes = value;
    return true;
  }
  bool TakeFloats(uint32_t type, WireFields* fields) {
    if (type != kLength && type != kFixed32) return fields->Skip(type);
    Bytes value;
    if (type == kLength ? !fields->Length(&value) : !fields->Take(4, &value))
      return false;
    if (value.size() % 4 != 0) return false;
    values->count += value.size() / 4;
    values->bytes = ++pieces == 1 ? value : Bytes();
    return true;
  }
  bool TakeInts(uint32_t type, WireFields* fields) {
    if (type != kLength && type != kVarint) return fields->Skip(type);
    uint64_t number = 0;
    Bytes value;
    if (type == kLength)
      return fields->Length(&value) && CountVarints(value, &values->count);
    ++values->count;
    return fields->Varint(&number);
  }
};

}  // namespace

absl::Status FindFeatures(std::span<const std::byte> example,
                          const std::vector<std::string>& names,
                          std::span<FeatureBytes> features) {
  std::fill(features.begin(), features.end(), FeatureBytes());
  const auto take_entry = [&](uint32_t number, uint32_t type,
                              WireFields* fields) {
    if (type != kLength || number != 1) return fields->Skip(type);
    Bytes entry;
    std::string_view name;
    FeatureBytes feature;
    if (!fields->Length(&entry) || !ParseEntry(entry, &name, &feature))
      return false;
    for (size_t i = 0; i < names.size(); ++i)
      if (names[i] == name) features[i] = feature;
    return true;
  };
  const bool good = ForFields(
      example, [&](uint32_t number, uint32_t type, WireFields* fields) {
        if (type != kLength || number != 1) return fields->Skip(type);
        Bytes message;
        return fields->Length(&message) && ForFields(message, take_entry);
      });
  return good ? absl::OkStatus() : Malformed("data");
}

std::string_view NameOf(FeatureValues::Kind kind) {
  switch (kind) {
    case Kind::kBytes:
      return "bytes";
    case Kind::kFloats:
      return "float32";
    case Kind::kInts:
      return "int64";
    case Kind::kNone:
      return "nothing";
  }
  return "nothing";
}

absl::StatusOr<FeatureValues> ParseFeature(FeatureBytes feature) {
  FeatureValues values;
  // The last member of the oneof, from where it last begins.
  WireFields fields(feature);
  while (!fields.done()) {
    const std::byte* const begin = fields.at();
    uint32_t number = 0, type = 0;
    if (!fields.Next(&number, &type)) return Malformed("feature");
    if (type == kLength && number <= 3 &&
        number != static_cast<uint32_t>(values.kind)) {
      values.kind = static_cast<Kind>(number);
      values.lists =
          feature.subspan(static_cast<size_t>(begin - feature.data()));
    }
    if (!fields.Skip(type)) return Malformed("feature");
  }
  if (values.kind == Kind::kNone) return values;
  Counter counter{&values};
  if (!ForValues(values.lists, values.kind,
                 [&](uint32_t type, WireFields* list) {
                   return counter.Take(type, list);
                 }))
    return Malformed("feature");
  return values;
}

void CopyFloats(const FeatureValues& values, std::span<std::byte> into) {
  std::byte* at = into.data();
  ForValues(values.lists, Kind::kFloats, [&](uint32_t type, WireFields* list) {
    if (type != kLength && type != kFixed32) return list->Skip(type);
    Bytes value;
    if (type == kLength ? !list->Length(&value) : !list->Take(4, &value))
      return false;
    if (!value.empty()) std::memcpy(at, value.data(), value.size());
    at += value.size();
    return true;
  });
}

void CopyInts(const FeatureValues& values, std::span<std::byte> into) {
  std::byte* at = into.data();
  const auto take_one = [&](WireFields* from) {
    uint64_t number = 0;
    if (!from->Varint(&number)) return false;
    std::memcpy(at, &number, sizeof number);
    at += sizeof number;
    return true;
  };
  ForValues(values.lists, Kind::kInts, [&](uint32_t type, WireFields* list) {
    if (type == kVarint) return take_one(list);
    if (type != kLength) return list->Skip(type);
    Bytes packed;
    if (!list->Length(&packed)) return false;
    WireFields numbers(packed);
    while (!numbers.done())
      if (!take_one(&numbers)) return false;
    return true;
  });
}

}  // namespace leat::worker
