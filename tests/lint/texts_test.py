# SPDX-License-Identifier: Apache-2.0
"""The reader of C++ sources that makes the site's texts evaluates what Leat's sources are written with."""

import pathlib
import sys
import unittest

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[2] / "docs" / "site"))

import leat_cpp as cpp
import leat_texts

SOURCE = r'''
// fmt::format("a comment") is no code.
constexpr char kRemedy[] =
    "give --one, "
    "or --two";
std::string More(size_t count, const char* one, const char* many) {
  return fmt::format("{} {}", Counted(count, "worker"), count == 1 ? one : many);
}
void Say(const Facts& at, Writer* to) {
  const auto who = [&](const std::string& name) { return "host " + name; };
  const char* const severity = at.all ? "error" : "warn";
  to->Add(%s);
}
'''


def texts(expression, assumed=None):
    """Returns the alternatives of an expression within Say."""
    tokens = cpp.tokens_of(SOURCE % expression)
    functions = cpp.functions(tokens)
    names = {name: [(value, None) for value in values] for name, values in cpp.assigned(tokens).items()}
    scope = cpp.Scope({**names, **{each.name: each for each in functions}}, assumed=assumed)
    for values in (value for value in scope.names.values() if isinstance(value, list)):
        values[:] = [(value, scope) for value, _ in values]
    _, at = next(cpp.calls(tokens, "Add"))
    return cpp.texts(cpp.arguments(tokens, at)[0], scope.local(cpp.enclosing(functions, at)))


class CppTest(unittest.TestCase):
    def test_literals_and_constants(self):
        self.assertEqual(texts(r'"a \"b\" " "c"'), ['a "b" c'])
        self.assertEqual(texts('R"(raw "text")"'), ['raw "text"'])
        self.assertEqual(texts("kRemedy"), ["give --one, or --two"])
        self.assertEqual(texts("std::string(kRemedy)"), ["give --one, or --two"])

    def test_values_that_a_run_decides_are_holes(self):
        self.assertEqual(texts("at.error"), ["…"])
        self.assertEqual(texts('fmt::format("{}: {:.1f} {{x}}", at.path, 7.5)'), ["…: … {x}"])
        self.assertEqual(texts('fmt::format("{}{}", at.path, at.error)'), ["…"])

    def test_conditions_give_alternatives(self):
        self.assertEqual(texts("severity"), ["error", "warn"])
        self.assertEqual(texts('at.bad ? "bad" : "good"', {"at . bad": True}), ["bad"])
        self.assertEqual(texts('!at.bad ? "good" : at.worse ? "worse" : "bad"', {"at . bad": True}), ["worse", "bad"])

    def test_a_part_that_may_be_missing_is_in_brackets(self):
        self.assertEqual(texts('fmt::format("it broke{}", at.why.empty() ? "" : ": " + at.why)'), ["it broke[: …]"])

    def test_functions_and_lambdas_are_called(self):
        self.assertEqual(texts('More(at.lost, "is lost", "are lost")'), ["… workers are lost"])
        self.assertEqual(texts('who("a")'), ["host a"])


class TextsTest(unittest.TestCase):
    def test_the_tree_has_findings_with_texts_and_remedies(self):
        found = leat_texts.findings()
        self.assertEqual(leat_texts.codes() - set(found), set())
        for code, cases in found.items():
            for case in cases:
                with self.subTest(code):
                    self.assertTrue(case.says)
                    self.assertLessEqual(set(case.severities), {"warn", "error"})
        remedy = found["NO_WORKERS"][0].remedies[0]
        self.assertTrue(remedy.startswith("start leat-worker --coordinator ADDRESS on some machine, or"), remedy)

    def test_the_page_has_every_verdict_of_leat_bottleneck(self):
        page = (cpp.ROOT / "docs/see/slow.md").read_text()
        names = cpp.assigned(cpp.read("core/observe/limit.cc"))["kLimitNames"][0]
        found = [token.value for token in names if token.kind == "text"]
        self.assertEqual(len(found), 20)
        for name in found:
            self.assertIn(f"`{name}`", page)

    def test_the_tree_has_errors(self):
        said = {error.says: error.kind for error in leat_texts.errors("client/api", "python_client/src/leat/torch.py")}
        self.assertEqual(said["window …: want 1 to 64 steps"], "InvalidArgument")
        self.assertEqual(said["leat.torch needs PyTorch 1.12 or later: pip install 'leat-data[torch]'"], "ImportError")


if __name__ == "__main__":
    unittest.main()
