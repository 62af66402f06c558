# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest
from dali_fake import FakePipeline

torch = pytest.importorskip("torch")

from leat.dali.plugin import pytorch  # noqa: E402
from leat.dali.plugin.base_iterator import LastBatchPolicy  # noqa: E402
from leat.dali.plugin.pytorch import DALIClassificationIterator, DALIGenericIterator  # noqa: E402


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
