# SPDX-License-Identifier: Apache-2.0
import dataclasses

import pytest

import leat


def test_a_record_names_its_file_and_its_place(job):
    record = job.record(42)
    assert record == leat.Record(42, "/data", "4.tar", None, 20, 10, 2, 0, 42)
    assert record.path == "/data/4.tar"
    assert job.record(-1).sample == 99
    with pytest.raises(dataclasses.FrozenInstanceError):
        record.file = "x"
    for samples in (100, -101):
        with pytest.raises(leat.OutOfRange, match="100 samples"):
            job.record(samples)
    with pytest.raises(leat.InvalidArgument, match="index"):
        job.record("0")
    with pytest.raises(leat.InvalidArgument, match="timeout"):
        job.record(0, timeout=0)


def test_the_record_of_a_packed_row_lists_its_documents(job):
    assert (job.record(42).num_documents, job.record(42).documents) == (0, ())
    record = job.record(50, first_document=2)
    assert record.num_documents == 3
    assert record.documents == (leat.Document(7, "/data", "7.bin", None, None, None, 2, 4, 6, 1, 10),)
    assert record.documents[0].path == "/data/7.bin"
    with pytest.raises(leat.InvalidArgument, match="first_document"):
        job.record(50, first_document=-1)


def test_a_row_says_what_it_holds_and_what_was_drawn(job):
    row = job.why(3, 7, 2)
    assert (row.row, row.record.sample, row.padding, row.partner_row, row.partner) == (7, 37, False, None, None)
    assert [(draw.name or draw.op, draw.value) for draw in row.draws] == [
        ("flip.horizontal", 1.0), ("random_resized_crop", (1.0, 2.0, 30.0, 40.0))]


def test_all_rows_of_a_step_come_without_what_is_in_their_records(job):
    rows = job.why(3)
    assert [row.record.sample for row in rows] == list(range(30, 40)) == job.samples(0, 3).tolist()
    assert all(row.draws[1].value is None and row.draws[1].unknown == "not read" for row in rows)


@pytest.mark.parametrize(
    ("asked", "error", "names"),
    [
        ((10,), leat.OutOfRange, "no such step"),
        ((0, 10), leat.InvalidArgument, "row = 10"),
        ((0, -1), leat.InvalidArgument, "row = -1"),
        ((-1,), leat.InvalidArgument, "step = -1"),
        ((0, 0, -1), leat.InvalidArgument, "epoch = -1"),
    ],
)
def test_what_is_not_there_is_an_error_that_names_it(job, asked, error, names):
    with pytest.raises(error, match=names):
        job.why(*asked)


def test_a_row_without_a_sample_has_no_record(service, graph, fake):
    fake.set_samples(95)
    rows = service.job("short", graph.images, batch=10, last_batch="partial").why(9)
    assert [row.record is None for row in rows] == [False] * 5 + [True] * 5
