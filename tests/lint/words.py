# SPDX-License-Identifier: Apache-2.0
"""Comments and docstrings are sentences in the field's words (docs/STYLE.md).

A comment or a docstring does not begin with a word that hides its subject, as "Of the stream." or "What it holds.", and
it has none of the phrases below. Texts that people read (errors, help, findings) do not have TEXTS either; tests' own
texts may. Names that were replaced (docs/decisions/0062-names-are-the-fields.md) do not return. A help text begins as a
comment does; those of the programs are looked for in the pages that test_reference.py compares with them.
"""

import io
import re
import tokenize

import common

FIRST = ("Of", "What", "Who", "Whoever", "Whom", "Whose", "Nobody", "That")
PHRASES = {
    r"of which": "name the noun again",
    r"but for": "except",
    r"(?:is|are|be|was|were) had": "is available, is obtained",
    r"[Ww]hoever|[Nn]obody|[Aa]nybody": "name who it is: the caller, a worker, a client",
    r"of before": "previous",
    r"mend|mends|mended|mending": "fix, repair",
    r"vouch|vouches": "trust, guarantee",
    r"tells? of|told of": "report",
}
TEXTS = r"of which|but for|[Ww]hoever|[Nn]obody|[Aa]nybody|(?:is|are|be) had"
# Names in code, and the ones that replaced them.
NAMES = {
    "leat_batches_token": "leat_batches_position",
    "leat_batches_token_at": "leat_batches_position_at",
    "leat_job_position": "leat_job_step_of",
    "EncodeToken": "EncodePosition",
    "DecodeToken": "DecodePosition",
    "TokenAt": "PositionAt",
    "TokenHash": "PositionHash",
    "batches.token": "batches.position",
    "it.token": "it.position",
    "leat_finish": "leat_epilogue",
    "leat_batches_finish": "leat_batches_epilogue",
    "FinishAt": "EpilogueAt",
    "TensorFinish": "TensorEpilogue",
    "FieldFinish": "FieldEpilogue",
    "SplitFinish": "SplitEpilogue",
    "WorkerFigures": "WorkerStatistics",
    "ConsumerFigures": "ConsumerStatistics",
    "JobFigures": "JobStatistics",
    "ToPictures": "ToPreviews",
    'finish="device"': 'epilogue="device"',
}
_TEXTS = re.compile(rf"\b(?:{TEXTS})\b")
_LITERALS = re.compile(r'//[^\n]*|"(?:[^"\\\n]|\\.)*"(?:\s*"(?:[^"\\\n]|\\.)*")*')
_PHRASES = [(re.compile(rf"\b(?:{phrase})\b"), better) for phrase, better in PHRASES.items()]
_NAMES = re.compile(r"\b(?:%s)(?!\w)" % "|".join(map(re.escape, sorted(NAMES, key=len, reverse=True))))
_HELP_PAGES = ("docs/reference/cli/", "docs/reference/flags/")
_COMMENT = re.compile(r"^\s*//+ ?(.*)$")


def cpp_paragraphs(text):
    """(line, text) of each paragraph of a C++ or protobuf source's comments that have lines of their own."""
    found, begin = [], None
    for number, line in enumerate([*text.split("\n"), ""], 1):
        match = _COMMENT.match(line)
        words = match[1].strip() if match else ""
        if words and begin is not None:
            found[-1][1].append(words)
        elif words:
            found.append((number, [words]))
            begin = number
        else:
            begin = None
    return [(number, " ".join(lines)) for number, lines in found]


def python_paragraphs(text):
    """(line, text) of each docstring's and comment's paragraphs."""
    found = []
    previous = None
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            found.append((token.start[0], token.string.lstrip("#! ")))
        elif token.type == tokenize.STRING and previous in (None, tokenize.NEWLINE, tokenize.INDENT, tokenize.NL,
                                                            tokenize.DEDENT):
            line = token.start[0]
            for paragraph in token.string.strip("\"'rbuRBU").split("\n\n"):
                found.append((line, " ".join(paragraph.split())))
                line += paragraph.count("\n") + 2
        if token.type not in (tokenize.NL, tokenize.COMMENT):
            previous = token.type
    return found


def literals(path, text):
    """(line, text) of each string but docstrings; C++ joins adjacent ones."""
    if path.suffix == ".py":
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            if token.type == tokenize.STRING and not token.string.lstrip("rbfuRBFU").startswith('"""'):
                yield token.start[0], token.string
        return
    for match in _LITERALS.finditer(text):
        if not match[0].startswith("//"):
            yield text.count("\n", 0, match.start()) + 1, re.sub(r'"\s*"', "", match[0])


def findings_of(path, text):
    """(line, what is wrong) of each finding."""
    paragraphs = python_paragraphs(text) if path.suffix == ".py" else cpp_paragraphs(text)
    for line, words in paragraphs:
        first = re.match(r"[A-Za-z]+", words)
        if first and first[0] in FIRST:
            yield line, f'begins with "{first[0]}": begin with the subject'
        for phrase, better in _PHRASES:
            for match in phrase.finditer(words):
                yield line, f'"{match[0]}": {better}'
    if path.parts[0] != "tests" and path.suffix != ".proto":
        for line, words in literals(path, text):
            for match in _TEXTS.finditer(words):
                yield line, f'"{match[0]}" in a text: name who or what it is'
    for number, line in enumerate(text.split("\n"), 1):
        for match in _NAMES.finditer(line):
            yield number, f"{match[0]}: its name is {NAMES[match[0]]}"


def helps(text):
    """(line, finding) of each help text in a page that is made from the programs: the last cell of a row."""
    for number, line in enumerate(text.split("\n"), 1):
        cells = re.split(r"(?<!\\)\|", line)
        word = re.match(r"\w+", cells[-2].strip()) if len(cells) > 3 else None
        if word is not None and word[0] in FIRST:
            yield number, f'begins with "{word[0]}"; say in the help text what the value is'


def check(root):
    found = [f"{path}:{line}: {what}" for path in common.files(root, *common.CPP, ".cu", ".cuh", ".proto", ".py")
             if path.name not in ("words.py", "words_test.py")
             for line, what in findings_of(path, common.text(root, path))]
    return found + [f"{path}:{line}: {what}" for path in common.files(root, ".md") if str(path).startswith(_HELP_PAGES)
                    for line, what in helps(common.text(root, path))]


if __name__ == "__main__":
    common.main(check, __doc__)
