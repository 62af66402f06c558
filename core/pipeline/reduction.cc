// SPDX-License-Identifier: Apache-2.0
#include "core/pipeline/reduction.h"

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "core/status.h"

namespace leat {
namespace {

bool IsWindow(std::string_view op) {
  return op == "crop" || op == "random_crop" || op == "window";
}
bool IsResize(std::string_view op) {
  return op == "resize" || op == "random_resized_crop";
}

// Users lists the nodes that take the value of each node.
class Users {
 public:
  explicit Users(const Graph& graph)
      : users_(graph.nodes.size()), outputs_(graph.nodes.size()) {
    std::vector<bool> needed(graph.nodes.size());
    for (const auto& [name, ref] : graph.outputs) {
      needed[ref.node] = true;
      outputs_[ref.node] = name;
    }
    for (size_t i = graph.nodes.size(); i-- > 0;) {
      if (!needed[i]) continue;
      const auto use = [&](const NodeRef& ref) {
        needed[ref.node] = true;
        users_[ref.node].push_back(static_cast<uint32_t>(i));
      };
      for (const NodeRef& ref : graph.nodes[i].inputs) use(ref);
      for (const auto& [name, value] : graph.nodes[i].args)
        if (const auto* ref = std::get_if<NodeRef>(&value)) use(*ref);
    }
  }

  const std::vector<uint32_t>& Of(uint32_t node) const { return users_[node]; }
  // Returns an output that is the node's value; empty: there is none.
  const std::string& OutputOf(uint32_t node) const { return outputs_[node]; }

 private:
  std::vector<std::vector<uint32_t>> users_;
  std::vector<std::string> outputs_;
};

// `why` is a clause about the node's image.
absl::Status Refused(uint32_t decode, const std::string& why) {
  return InvalidArgument(
      "node {} (decode): argument \"reduce\" is \"auto\", {}; want its image "
      "to go to one resize or random_resized_crop, with nothing but crop, "
      "random_crop and window between them, or reduce=\"none\"",
      decode, why);
}

// `at` is the decode, or a later operator that only selects a window.
absl::Status CheckChain(const Graph& graph, const Users& users,
                        uint32_t decode) {
  for (uint32_t at = decode;;) {
    const std::vector<uint32_t>& by = users.Of(at);
    if (!users.OutputOf(at).empty())
      return Refused(decode,
                     fmt::format("but output \"{}\" is its image before a "
                                 "resize, from which the scale is chosen",
                                 users.OutputOf(at)));
    if (by.empty()) return absl::OkStatus();  // no output needs it
    if (by.size() > 1)
      return Refused(
          decode,
          fmt::format("but node {} ({}) and node {} ({}) both take its image, "
                      "and each may need another scale: decode it once for "
                      "each of them",
                      by.back(), graph.nodes[by.back()].op, by[by.size() - 2],
                      graph.nodes[by[by.size() - 2]].op));
    const std::string& op = graph.nodes[by[0]].op;
    if (IsResize(op)) return absl::OkStatus();
    if (op == "flip")
      return Refused(decode,
                     fmt::format("but node {} (flip) mirrors its image before "
                                 "a resize: put the flip behind the resize",
                                 by[0]));
    if (!IsWindow(op))
      return Refused(
          decode,
          fmt::format("but node {} ({}) looks at its pixels before a resize, "
                      "and would see other ones at each scale",
                      by[0], op));
    at = by[0];
  }
}

}  // namespace

bool IsReduced(const Node& decode) {
  return std::get<std::string>(decode.args.at("reduce")) == "auto";
}

absl::Status CheckReductions(const Graph& graph) {
  const Users users(graph);
  for (uint32_t i = 0; i < graph.nodes.size(); ++i)
    if (graph.nodes[i].op == "decode" && IsReduced(graph.nodes[i]))
      RETURN_IF_ERROR(CheckChain(graph, users, i));
  return absl::OkStatus();
}

}  // namespace leat
