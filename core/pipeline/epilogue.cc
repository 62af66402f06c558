// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/epilogue.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <span>
#include <utility>

#include "core/status.h"
#include "core/tensor/pointwise.h"

namespace leat {
namespace {

constexpr int kBytes = 256;

bool IsTail(const Node& node) {
  return node.op == "normalize" || node.op == "cast" || node.op == "transpose";
}

template <class T>
const T& Get(const Node& node, const char* name) {
  return std::get<T>(node.args.at(name));
}

// One element during the evaluation of a chain: its bytes and their type.
struct Element {
  DType dtype = DType::kUint8;
  std::byte bytes[8] = {};

  template <class T>
  static Element Of(DType dtype, T value) {
    Element x{dtype};
    std::memcpy(x.bytes, &value, sizeof value);
    return x;
  }
  template <class T>
  T As() const {
    T value;
    std::memcpy(&value, bytes, sizeof value);
    return value;
  }
};

Element Cast(const Element& x, DType dtype) {
  if (x.dtype == dtype) return x;
  Element result;
  WithStorage(x.dtype, [&]<class In>(In) {
    WithStorage(dtype, [&]<class Out>(Out) {
      result = Element::Of(dtype, Converted<Out>(x.As<In>()));
    });
  });
  return result;
}

Element Normalize(const Node& node, const Element& x, uint32_t channel,
                  DType dtype) {
  const auto of_channel = [&](const char* name) {
    const auto& numbers = Get<std::vector<double>>(node, name);
    return numbers[numbers.size() == 1 ? 0 : channel];
  };
  const auto mean = static_cast<float>(of_channel("mean"));
  const auto factor =
      static_cast<float>(Get<double>(node, "scale") / of_channel("std"));
  const auto shift = static_cast<float>(Get<double>(node, "shift"));
  const auto value = Cast(x, DType::kFloat32).As<float>();
  return Cast(
      Element::Of(DType::kFloat32, Normalized(value, mean, factor, shift)),
      dtype);
}

class Splitter {
 public:
  explicit Splitter(const CheckedGraph& graph) : graph_(graph) {}

  SplitGraph Run() {
    split_.head = graph_;
    for (size_t f = 0; f < graph_.schema.fields.size(); ++f) SplitField(f);
    DropUnused();
    return std::move(split_);
  }

 private:
  const Node& At(const NodeRef& ref) const {
    return graph_.graph.nodes[ref.node];
  }
  const ValueType& TypeOf(const NodeRef& ref) const {
    return graph_.types[ref.node][ref.output];
  }

  void SplitField(size_t field) {
    // The values of the trailing chain, from the field backwards.
    std::vector<NodeRef> chain = {graph_.graph.outputs[field].second};
    while (IsTail(At(chain.back())))
      chain.push_back(At(chain.back()).inputs[0]);
    std::reverse(chain.begin(), chain.end());
    split_.epilogue.emplace_back();
    for (size_t head = 0; head + 1 < chain.size(); ++head) {
      const ValueType& type = TypeOf(chain[head]);
      if (type.kind != ValueType::Kind::kTensor || type.dtype != DType::kUint8)
        continue;
      FieldEpilogue epilogue;
      const auto tail = std::span(chain).subspan(head + 1);
      if (!Express(type.shape, tail, &epilogue)) continue;
      split_.head.graph.outputs[field].second = chain[head];
      Field& sent = split_.head.schema.fields[field];
      sent.row_bytes /= SizeOf(sent.dtype);
      sent.dtype = DType::kUint8;
      sent.shape = type.shape;
      if (!epilogue.table.empty() || !epilogue.perm.empty())
        split_.epilogue[field] = std::move(epilogue);
      return;
    }
  }

  // Returns false if no table with a column for each index of the last axis can
  // express `tail` for a head of this shape.
  bool Express(const Shape& shape, std::span<const NodeRef> tail,
               FieldEpilogue* epilogue) const {
    std::vector<int64_t> perm(shape.size());  // so far
    std::iota(perm.begin(), perm.end(), 0);
    for (const NodeRef& ref : tail) {
      const Node& node = At(ref);
      if (node.op == "transpose") {
        const std::vector<int64_t> before = perm;
        const auto& turn = Get<std::vector<int64_t>>(node, "perm");
        for (size_t i = 0; i < turn.size(); ++i) perm[i] = before[turn[i]];
      } else if (node.op == "normalize" && IsPerChannel(node)) {
        if (perm.back() != static_cast<int64_t>(shape.size()) - 1) return false;
        epilogue->channels = static_cast<uint32_t>(shape.back());
      }
    }
    epilogue->dtype = TypeOf(tail.back()).dtype;
    if (!std::is_sorted(perm.begin(), perm.end()))
      epilogue->perm = std::move(perm);
    FillTable(tail, epilogue);
    return true;
  }

  static bool IsPerChannel(const Node& node) {
    return Get<std::vector<double>>(node, "mean").size() > 1 ||
           Get<std::vector<double>>(node, "std").size() > 1;
  }

  void FillTable(std::span<const NodeRef> tail, FieldEpilogue* epilogue) const {
    const size_t size = SizeOf(epilogue->dtype);
    epilogue->table.resize(kBytes * epilogue->channels * size);
    bool same = epilogue->dtype == DType::kUint8;
    std::byte* out = epilogue->table.data();
    for (int byte = 0; byte < kBytes; ++byte)
      for (uint32_t c = 0; c < epilogue->channels; ++c, out += size) {
        const auto value = static_cast<uint8_t>(byte);
        Element x = Element::Of(DType::kUint8, value);
        for (const NodeRef& ref : tail) {
          const Node& node = At(ref);
          if (node.op == "cast") x = Cast(x, TypeOf(ref).dtype);
          if (node.op == "normalize")
            x = Normalize(node, x, c, TypeOf(ref).dtype);
        }
        std::memcpy(out, x.bytes, size);
        same = same && x.As<uint8_t>() == value;
      }
    if (!same) return;
    epilogue->table.clear();
    epilogue->channels = 1;
  }

  void DropUnused() {
    Graph& graph = split_.head.graph;
    std::vector<bool> used(graph.nodes.size());
    used[graph_.reader] = true;
    used[graph_.stored] = true;
    for (const auto& [name, ref] : graph.outputs) used[ref.node] = true;
    for (size_t i = used.size(); i-- > 0;) {
      if (!used[i]) continue;
      for (const NodeRef& ref : graph.nodes[i].inputs) used[ref.node] = true;
      for (const auto& [name, value] : graph.nodes[i].args)
        if (const auto* ref = std::get_if<NodeRef>(&value))
          used[ref->node] = true;
    }
    while (!used.back()) used.pop_back();
    graph.nodes.resize(used.size());
    split_.head.types.resize(used.size());
    for (size_t i = 0; i < used.size(); ++i) {
      if (used[i]) continue;
      graph.nodes[i] = {"coin_flip", {}, {{"probability", Value(0.5)}}};
      split_.head.types[i] = {{ValueType::Kind::kTensor, DType::kBool, {}}};
    }
  }

  const CheckedGraph& graph_;
  SplitGraph split_;
};

}  // namespace

std::string_view Name(Epilogue epilogue) {
  return epilogue == Epilogue::kDevice ? "device" : "worker";
}

absl::StatusOr<Epilogue> EpilogueFromWire(int value) {
  switch (value) {
    case 0:
    case static_cast<int>(Epilogue::kWorker):
      return Epilogue::kWorker;
    case static_cast<int>(Epilogue::kDevice):
      return Epilogue::kDevice;
    default:
      return InvalidArgument("epilogue {}: want 1 (worker) or 2 (device)",
                             value);
  }
}

SplitGraph SplitEpilogue(const CheckedGraph& graph) {
  return Splitter(graph).Run();
}

}  // namespace leat
