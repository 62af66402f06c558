# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from dali_fake import FakePipeline
from leat.dali.tensors import TensorCPU, TensorListCPU
from leat.errors import FailedPrecondition

torch = pytest.importorskip("torch")

from leat.dali.plugin import pytorch  # noqa: E402
from leat.dali.plugin.base_iterator import LastBatchPolicy  # noqa: E402
from leat.dali.plugin.pytorch import (  # noqa: E402
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    feed_ndarray,
)


def pair(samples):
    return [np.float32(samples)[:, None], np.asarray(samples, np.int32)[:, None]]


def test_batches_are_a_dict_for_each_pipeline():
    pipelines = [FakePipeline(8, 2, shard, 2, outputs=pair) for shard in range(2)]
    it = DALIGenericIterator(pipelines, ["x", "y"], reader_name="reader")
    assert len(it) == 2
    for step, (first, second) in enumerate(it):
        assert first["x"].dtype == torch.float32 and first["y"].dtype == torch.int32
        assert first["y"].tolist() == [[2 * step], [2 * step + 1]]
        assert second["x"].tolist() == [[4 + 2 * step], [5 + 2 * step]]


def test_the_last_batch_may_be_smaller():
    pipelines = [FakePipeline(7, 2, shard, 2, pad=True, outputs=pair) for shard in range(2)]
    it = DALIClassificationIterator(pipelines, reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL)
    seen = [[each["label"].ravel().tolist() for each in batch] for batch in it]
    assert seen == [[[0, 1], [3, 4]], [[2], [5, 6]]]
    assert [len(each["data"]) for each in list(it)[-1]] == [2, 1]


def test_mask_marks_the_rows_that_count():
    pipelines = [FakePipeline(7, 2, shard, 2, pad=True, outputs=pair) for shard in range(2)]
    it = DALIGenericIterator(
        pipelines, ["x", "y"], reader_name="reader", last_batch_policy=LastBatchPolicy.MASK, auto_reset=True
    )
    for _ in range(2):  # each sample counts once per epoch
        counted = []
        for batch in it:
            assert all(each["valid"].dtype == torch.bool and len(each["valid"]) == 2 for each in batch)
            of_batch = [int(y) for each in batch for y in each["y"][each["valid"]]]
            samples = it.samples()
            assert len(samples) == 4 and samples[samples >= 0].tolist() == of_batch
            counted += of_batch
        assert sorted(counted) == list(range(7))


def test_mask_says_what_it_needs():
    with pytest.raises(AssertionError, match="MASK needs reader_name"):
        DALIGenericIterator(FakePipeline(), ["x"], last_batch_policy=LastBatchPolicy.MASK)
    with pytest.raises(AssertionError, match="MASK needs pad_last_batch=True of the reader 'reader'"):
        DALIGenericIterator(FakePipeline(), ["x"], reader_name="reader", last_batch_policy=LastBatchPolicy.MASK)
    with pytest.raises(AssertionError, match="'valid' is that of the marks"):
        DALIGenericIterator(
            FakePipeline(pad=True), ["valid"], reader_name="reader", last_batch_policy=LastBatchPolicy.MASK
        )


def test_samples_are_those_of_the_last_batch():
    it = DALIGenericIterator(
        FakePipeline(7, 3, pad=True), ["x"], reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL
    )
    with pytest.raises(FailedPrecondition, match="no batch has been handed out"):
        it.samples()
    assert [it.samples().tolist() for _ in it] == [[0, 1, 2], [3, 4, 5], [6]]
    it.reset()
    assert it.samples().tolist() == [6]


def test_an_iterator_says_where_it_is():
    it = DALIGenericIterator(FakePipeline(8, 2), ["x"], reader_name="reader")
    assert repr(it) == (
        "<leat.dali DALIGenericIterator: 1 pipelines with batches of 2, 0 of 8 samples into its epoch>"
    )
    next(it)
    assert "2 of 8 samples" in repr(it) and len(it) == 4


def test_tensors_borrow_the_memory():
    memory = np.zeros((2, 3), np.float32)
    it = DALIGenericIterator(FakePipeline(8, 2, outputs=lambda samples: [memory]), ["x"])
    assert next(it)[0]["x"].data_ptr() == memory.__array_interface__["data"][0]


def test_outputs_of_the_cpu_stay_there(monkeypatch):
    monkeypatch.setattr(pytorch, "_device", lambda number: torch.device("meta"))
    it = DALIGenericIterator(FakePipeline(8, 2, outputs=pair), ["label", "image"])
    (batch,) = next(it)
    assert (batch["label"].device.type, batch["image"].device.type) == ("cpu", "meta")


def test_wrong_names_are_told():
    with pytest.raises(AssertionError, match="output_map names should be distinct"):
        DALIGenericIterator(FakePipeline(), ["x", "x"])
    with pytest.raises(ValueError, match="'x', 'y'.* and the pipeline 1 outputs"):
        DALIGenericIterator(FakePipeline(), ["x", "y"])


def test_a_batch_or_a_sample_is_copied_into_a_tensor():
    batch = TensorListCPU(np.arange(6, dtype=np.float32).reshape(2, 3))
    target = torch.zeros(2, 3)
    assert feed_ndarray(batch, target) is target
    assert target.tolist() == [[0, 1, 2], [3, 4, 5]]
    assert feed_ndarray(batch[1], torch.zeros(3), non_blocking=True).tolist() == [3, 4, 5]
    assert feed_ndarray(TensorCPU(np.float32(7)), torch.zeros(())).item() == 7
    with pytest.raises(AssertionError, match=r"shape \(2, 3\) into \(3, 2\)"):
        feed_ndarray(batch, torch.zeros(3, 2))
    with pytest.raises(AssertionError, match="doesn't match the element type.*float32 and torch.int64"):
        feed_ndarray(batch, torch.zeros(2, 3, dtype=torch.int64))
    with pytest.raises(TypeError, match="ndarray into Tensor; expected a TensorCPU"):
        feed_ndarray(np.zeros(3), torch.zeros(3))


def ragged(samples):
    """Sample n is n, n + 1, … n times; and n."""
    return [[np.arange(n, 2 * n, dtype=np.float32) for n in samples], np.asarray(samples, np.int32)[:, None]]


TAGS = DALIRaggedIterator


def test_samples_of_several_shapes_become_a_list_or_a_sparse_tensor():
    for tag in (TAGS.SPARSE_LIST_TAG, TAGS.SPARSE_COO_TAG):
        it = DALIRaggedIterator(
            FakePipeline(5, 2, pad=True, outputs=ragged),
            ["x", "n"],
            reader_name="reader",
            output_types=[tag, TAGS.DENSE_TAG],
            last_batch_policy=LastBatchPolicy.PARTIAL,
        )
        seen = [batch for (batch,) in it]
        assert [each["n"].ravel().tolist() for each in seen] == [[0, 1], [2, 3], [4]]
        assert [len(each["x"]) for each in seen] == [2, 2, 1]
        if tag == TAGS.SPARSE_LIST_TAG:
            assert [x.tolist() for each in seen for x in each["x"]] == [[], [1], [2, 3], [3, 4, 5], [4, 5, 6, 7]]
        else:
            assert all(each["x"].is_sparse for each in seen)
            assert seen[1]["x"].to_dense().tolist() == [[2, 3, 0], [3, 4, 5]]
            assert seen[1]["x"].coalesce().values().tolist() == [2, 3, 3, 4, 5]


def test_samples_of_several_shapes_are_no_tensor():
    with pytest.raises(ValueError, match=r"'x' has samples of several shapes, \(0,\) and \(1,\).*SPARSE_LIST_TAG"):
        DALIRaggedIterator(FakePipeline(4, 2, outputs=ragged), ["x", "n"], reader_name="reader")
    with pytest.raises(ValueError, match="output 0 of the pipeline has samples of several shapes.*DALIRaggedIterator"):
        DALIGenericIterator(FakePipeline(4, 2, outputs=ragged), ["x", "n"], reader_name="reader")
    with pytest.raises(AssertionError, match="output_types has 1 entries"):
        DALIRaggedIterator(FakePipeline(4, 2), ["x", "n"], output_types=[TAGS.DENSE_TAG])
    with pytest.raises(AssertionError, match="expected each to be one of"):
        DALIRaggedIterator(FakePipeline(4, 2), ["x"], output_types=["odd"])
