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
    numbers = [draw.value for row in rows for draw in row.draws if draw.name == "number"]
    assert numbers == batch["number"].tolist()
    y, x, height, width = job.why(0, 5).draws[0].value
    assert all(isinstance(each, float) for each in (y, x, height, width))
    assert 0 <= y <= 24 - height and 0 <= x <= 32 - width and height > 0 and width > 0
    assert service.job("drawn").why(0) == rows, "of a job that is attached to"


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
