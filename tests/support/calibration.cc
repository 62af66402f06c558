// SPDX-License-Identifier: Apache-2.0
//
// tests/budget.py compiles this file to measure how fast this machine compiles;
// it is never linked. It includes only the standard library, so that our
// changes do not change the measure.
#include <algorithm>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <sstream>
#include <string>
#include <unordered_map>
#include <variant>
#include <vector>

namespace {

template <int N>
std::map<std::string, std::variant<int, std::string, std::vector<double>>>
Table(const std::string& text) {
  std::map<std::string, std::variant<int, std::string, std::vector<double>>> of;
  std::istringstream words(text);
  for (std::string word; words >> word;) of[word] = word;
  std::mt19937_64 random(N);
  std::vector<double> values(N);
  std::generate(values.begin(), values.end(), [&] {
    return std::uniform_real_distribution<double>(0, N)(random);
  });
  std::stable_sort(values.begin(), values.end());
  of["values"] = std::move(values);
  return of;
}

}  // namespace

std::unordered_map<std::string, std::function<size_t(const std::string&)>>
Tables() {
  return {{"1", [](const std::string& s) { return Table<1>(s).size(); }},
          {"2", [](const std::string& s) { return Table<2>(s).size(); }},
          {"3", [](const std::string& s) { return Table<3>(s).size(); }},
          {"path", [](const std::string& s) {
             return std::filesystem::path(s).lexically_normal().string().size();
           }}};
}
