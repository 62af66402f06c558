# SPDX-License-Identifier: Apache-2.0
"""A job's explanations of its rows, compared with the rows."""

import numpy as np
import pytest

import leat
from leat import fn


def test_records_and_draws_are_those_of_the_batches(service, folder):
    @leat.pipeline
    def drawn():
        encoded, label = fn.readers.image_folder(str(folder))
        window = fn.random_resized_crop(fn.decode(encoded), size=(8, 8))
        return {"image": window, "label": label, "number": fn.uniform(low=2.0, high=3.0)}

    job = service.job("drawn", drawn, batch=16, seed=3)
    batches = job.batches(epochs=1)
    batch, rows = next(batches), job.why(0)
    assert [row.record.sample for row in rows] == job.samples(0, 0).tolist()
    assert [row.record for row in rows] == [job.record(i) for i in job.samples(0, 0)]
    assert [int(row.record.file[len("class")]) for row in rows] == batch["label"].tolist()
    assert all((folder / row.record.file).stat().st_size == row.record.size for row in rows)
    assert {row.record.class_name for row in rows} <= {each.name for each in folder.iterdir()}
    assert all(row.record.file.startswith(f"{row.record.class_name}/") for row in rows)
    numbers = [draw.value for row in rows for draw in row.draws if draw.name == "number"]
    assert numbers == batch["number"].tolist()
    y, x, height, width = job.why(0, 5).draws[0].value
    assert all(isinstance(each, float) for each in (y, x, height, width))
    assert 0 <= y <= 24 - height and 0 <= x <= 32 - width and height > 0 and width > 0
    assert service.job("drawn").why(0) == rows, "of a job that is attached to"


def test_a_record_of_a_mixture_has_the_class_of_its_own_source(service, folder):
    @leat.pipeline
    def labels(path):
        return {"label": fn.readers.image_folder(str(path))[1]}

    mixed = leat.mix({"first": labels(folder), "second": labels(folder)}, {"first": 1, "second": 1})
    job = service.job("why-classes", mixed, batch=4)
    records = [job.record(sample) for sample in range(job.num_samples)]
    assert len({record.class_name for record in records}) > 1
    for record in records:
        assert record.file.startswith(f"{record.class_name}/"), record


@pytest.fixture(scope="module")
def packed(service, tmp_path_factory):
    """A mixture of two packed corpora: files of uint16, whose documents end with 0."""
    root = tmp_path_factory.mktemp("tokens")
    rng = np.random.default_rng(5)
    for name in ("web", "books"):
        documents = [np.append(rng.integers(1, 60_000, length), 0) for length in rng.integers(1, 40, 300)]
        np.concatenate(documents).astype(np.uint16).tofile(root / f"{name}.bin")

    @leat.pipeline
    def rows(name, how):
        tokens = fn.readers.tokens([str(root / f"{name}.bin")], dtype="uint16", end=0)
        tokens, segments, positions = fn.pack(tokens, length=64, how=how)
        return {"tokens": tokens, "segments": segments, "positions": positions}

    mixed = leat.mix({"web": rows("web", "fit"), "books": rows("books", "cut")}, {"web": 1, "books": 1})
    return service.job("packed-why", mixed, batch=8, seed=3)


def held(document):
    """Reads the elements of a document that are in its row."""
    begin = document.offset + 2 * document.begin
    return np.fromfile(document.path, np.uint16, document.elements, offset=begin)


def test_a_packed_row_has_the_elements_of_its_documents(packed):
    batch = next(packed.batches())
    for row, sample in enumerate(packed.samples(0, 0)):
        record = packed.record(int(sample))
        assert (record.num_documents, record.file) == (len(record.documents), f"{record.source}.bin")
        assert record.num_documents == batch["segments"][row].max()
        end = 0
        for number, document in enumerate(record.documents, 1):
            there = np.flatnonzero(batch["segments"][row] == number)
            assert (document.row_begin, document.elements) == (end, there.size) == (there[0], there.size)
            np.testing.assert_array_equal(batch["tokens"][row][there], held(document))
            assert 0 < document.elements <= document.document_elements == document.size // 2
            end += document.elements
        assert end == np.count_nonzero(batch["segments"][row])


def test_documents_of_a_row_come_in_pages(packed):
    sample = int(packed.samples(0, 0)[0])
    whole = packed.record(sample)
    rest = packed.record(sample, first_document=1)
    assert (rest.documents, rest.num_documents) == (whole.documents[1:], whole.num_documents)
    assert packed.record(sample, first_document=1_000).documents == ()
    assert packed.why(0, 0).record == whole
    for row in packed.why(0):
        assert row.record.documents == packed.record(row.record.sample).documents, "few enough for a step"


def test_what_is_in_no_storage_cannot_be_said(service):
    @leat.pipeline
    def brought():
        return {"x": leat.external_source(np.int32, "int32", num_samples=4, name="numbers")}

    job = service.job("brought-why", brought, batch=2)
    for ask in (lambda: job.record(0), lambda: job.why(0), lambda: job.why(0, 1)):
        with pytest.raises(leat.FailedPrecondition, match="in no storage"):
            ask()


def test_what_is_not_there_is_named(job):
    with pytest.raises(leat.OutOfRange, match=f"{len(job)} steps"):
        job.why(len(job))
    with pytest.raises(leat.OutOfRange, match="100 samples"):
        job.record(100)
