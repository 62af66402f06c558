# SPDX-License-Identifier: Apache-2.0
import numpy as np
import pytest

torch = pytest.importorskip("torch")

import leat  # noqa: E402
import leat.torch  # noqa: E402


def test_tensors_are_the_batches(job):
    for got, expected in zip(leat.torch.batches(job, epochs=2), job.batches(epochs=2)):
        assert got["image"].dtype == torch.uint8 and got["label"].dtype == torch.int32
        np.testing.assert_array_equal(got["image"].numpy(), expected["image"])


def test_a_tensor_keeps_its_buffer(fake, job):
    before = fake.live()
    it = leat.torch.batches(job, epochs=0, pin_memory=False)
    part = next(it)["image"][2:4].permute(0, 3, 1, 2)
    expected = part.clone()
    for _ in range(30):
        next(it)
    assert torch.equal(part, expected) and fake.live() == before + 1
    del part
    assert fake.live() == before
    token = it.token()
    assert int(next(leat.torch.batches(job, token=token))["label"][0]) == 10
    it.close()


@pytest.mark.parametrize("pin_memory", [None, False])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_finishing_in_torch_gives_the_workers_bits(floats, device, pin_memory):
    it = leat.torch.batches(floats, epochs=2, finish="device", device=device, pin_memory=pin_memory)
    for got, expected in zip(it, floats.batches(epochs=2), strict=True):
        assert got["image"].dtype == torch.float32 and got["image"].is_contiguous()
        assert got["image"].numpy().tobytes() == expected["image"].tobytes()
        np.testing.assert_array_equal(got["label"].numpy(), expected["label"])


def test_finish_is_one_of_two_words(floats):
    with pytest.raises(leat.InvalidArgument, match="finish = 'gpu'; expected 'worker' or 'device'"):
        leat.torch.batches(floats, finish="gpu")
