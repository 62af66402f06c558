# SPDX-License-Identifier: Apache-2.0
"""The texts that `leat inspect` and `leat sheet` show of tokens are those that `tokenizers` decodes."""

import html
import json
import os
import pathlib
import re
import subprocess

import numpy as np
import pytest

import leat
from leat import fn

tokenizers = pytest.importorskip("tokenizers", reason="no tokenizers here (deploy/packages/python-tests.txt)")

TEXTS = [
    "The quick brown fox doesn't jump over the lazy dog. It's late, isn't it?",
    "Größe, naïve café — 12,5 € für 3 m² · «да» · 日本語のテキスト 🙂👍🏽",
    "def f(x):\n\treturn {'a': x, \"b\": [1, 2]}  # <b>&amp;</b>\r\n",
    "  leading and   inner spaces  ",
    "\x1b[31mred\x1b[0m \x00 zero \u202e turned",
]
END = "<|end|>"


def trained(tokenizer, trainer_class, **options):
    trainer = trainer_class(vocab_size=400, special_tokens=["<unk>", END], show_progress=False, **options)
    tokenizer.train_from_iterator(TEXTS * 20, trainer)
    return tokenizer


def byte_level():
    from tokenizers import decoders, models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.BPE())
    made.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return trained(made, trainers.BpeTrainer, initial_alphabet=pre_tokenizers.ByteLevel.alphabet())


def word_piece():
    from tokenizers import decoders, models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.WordPiece(unk_token="<unk>"))
    made.pre_tokenizer = pre_tokenizers.Whitespace()
    made.decoder = decoders.WordPiece()
    return trained(made, trainers.WordPieceTrainer)


def unigram():
    from tokenizers import decoders, models, pre_tokenizers, trainers

    made = tokenizers.Tokenizer(models.Unigram())
    made.pre_tokenizer = pre_tokenizers.Metaspace()
    made.decoder = decoders.Metaspace()
    return trained(made, trainers.UnigramTrainer, unk_token="<unk>")


def byte_fallback():
    """As Llama 2 has it."""
    from tokenizers import decoders, models, normalizers

    letters = ["<unk>", *(f"<0x{byte:02X}>" for byte in range(256)), "▁", *"Thequickbrownfxjmpsvlazydgt.,'?I"]
    vocab = {letter: number for number, letter in enumerate(dict.fromkeys(letters))}
    merges = [("t", "h"), ("▁", "t")]
    for left, right in merges:
        vocab.setdefault(left + right, len(vocab))
    made = tokenizers.Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    made.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")])
    made.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    made.add_special_tokens([END])
    return made


MAKERS = [byte_level, word_piece, unigram, byte_fallback]


@pytest.fixture(scope="module", params=MAKERS, ids=lambda make: make.__name__)
def tokenizer(request):
    return request.param()


def program():
    return pathlib.Path(os.environ["LEAT_NATIVE_DIR"]) / "leat"


def run(*args):
    done = subprocess.run([program(), *map(str, args)], capture_output=True, text=True, timeout=60)
    assert done.returncode == 0, done.stderr
    return done.stdout


def inspect(folder, *args):
    """Inspects one.bin with tokenizer.json."""
    return run("inspect", folder / "one.bin", "--format", "tokens", "--arg", "dtype=uint16",
               "--vocabulary", folder / "tokenizer.json", *args)


def write(path, documents):
    np.concatenate([np.asarray(each, np.uint16) for each in documents]).tofile(path)


def test_inspect_shows_the_text_of_a_document(tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    end = tokenizer.token_to_id(END)
    for number, text in enumerate(TEXTS):
        ids = [*tokenizer.encode(text).ids, end]
        write(tmp_path / "one.bin", [ids])
        answer = json.loads(
            inspect(tmp_path, "--arg", f"end={end}", "--row-length", 64, "-o", "json"))
        assert answer["example"]["first"] == ids
        assert answer["example"]["text"] == tokenizer.decode(ids, skip_special_tokens=False), number
        assert answer["sequences"]["elements"] == len(ids)
        assert [each["length"] for each in answer["sequences"]["packed"]] == [64]


def test_an_unknown_token_is_shown_as_its_number(tmp_path):
    byte_level().save(str(tmp_path / "tokenizer.json"))
    write(tmp_path / "one.bin", [[60_000]])
    assert "<id 60000>" in inspect(tmp_path)


def test_inspect_shows_the_first_row_that_a_pipeline_packs(service, tmp_path):
    tokenizer = byte_level()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    end = tokenizer.token_to_id(END)
    write(tmp_path / "text.bin", [[*tokenizer.encode(text).ids, end] for text in TEXTS * 20])

    @leat.pipeline
    def rows():
        tokens = fn.readers.tokens([str(tmp_path / "text.bin")], dtype="uint16", end=end)
        return {"tokens": fn.cast(fn.pack(tokens, length=512, how="fit")[0], dtype="int32")}

    (tmp_path / "rows.json").write_text(json.dumps(rows.to_dict()))
    answer = json.loads(run("inspect", tmp_path / "rows.json", "--vocabulary", tmp_path / "tokenizer.json",
                            "-o", "json"))
    job = service.job("inspected", rows, batch=1, shuffle=False, replace=True)
    first = next(job.batches())["tokens"][0].tolist()
    assert answer["example"]["first"] == first
    assert answer["example"]["text"] == tokenizer.decode(first, skip_special_tokens=False)
    documents = job.record(0).documents
    assert [each["begin"] for each in answer["example"]["documents"]["listed"]] == [each.begin for each in documents]
    assert answer["sequences"]["documents"] == 20 * len(TEXTS)
    packed, = answer["sequences"]["packed"]
    assert (packed["how"], packed["length"], packed["rows"]) == ("fit", 512, job.num_samples)
    assert packed["fill"] == pytest.approx(answer["sequences"]["elements"] / (512 * packed["rows"]))


def test_a_page_shows_the_text_of_each_document_of_a_row(service, tokenizer, tmp_path):
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    end = tokenizer.token_to_id(END)
    documents = [[*tokenizer.encode(text).ids, end] for text in TEXTS * 20]
    write(tmp_path / "text.bin", documents)

    @leat.pipeline
    def rows():
        tokens = fn.readers.tokens([str(tmp_path / "text.bin")], dtype="uint16", end=end)
        tokens, segments, positions = fn.pack(tokens, length=512, how="fit")
        return {"tokens": fn.cast(tokens, dtype="int32"), "parts": segments, "positions": positions}

    job = service.job("texts", rows, batch=2, seed=1, replace=True)
    page = tmp_path / "rows.html"
    private = f"--private={service.get('private')['pid']}"
    run(private, "sheet", "texts", "--vocabulary", tmp_path / "tokenizer.json", "-o", page)
    text = page.read_text()
    assert "\x1b" not in text and "\x00" not in text and "\u202e" not in text
    shown = re.findall(r'<span class="c\d" title="([^"]*)">(.*?)</span> ', text, re.DOTALL)
    batch = next(job.batches())
    wanted = []
    for row, sample in enumerate(job.samples(0, 0)):
        for number, document in enumerate(job.record(int(sample)).documents, 1):
            ids = batch["tokens"][row][batch["parts"][row] == number]
            wanted.append((f"text.bin: record {document.index}", tokenizer.decode(ids, skip_special_tokens=False)))
    assert len(shown) == len(wanted) > 2
    for (title, have), (name, want) in zip(shown, wanted):
        assert title == name
        assert html.unescape(have) == printable(want)


def printable(text):
    """Returns the text as `leat` shows it: what could control a terminal is an escape."""
    def shown(char):
        if char in "\n\t\r":
            return {"\n": "\\n", "\t": "\\t", "\r": "\\r"}[char]
        if ord(char) < 32 or ord(char) == 127:
            return f"\\x{ord(char):02x}"
        return f"\\u{ord(char):04x}" if char == "\u202e" else char
    return "".join(map(shown, text))
