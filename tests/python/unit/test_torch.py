# SPDX-License-Identifier: Apache-2.0
import copy
import pickle

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
    position = it.position()
    assert int(next(leat.torch.batches(job, position=position))["label"][0]) == 10
    it.close()


@pytest.mark.parametrize("pin_memory", [None, False])
@pytest.mark.parametrize("device", [None, "cpu"])
def test_finishing_in_torch_gives_the_workers_bits(floats, device, pin_memory):
    it = leat.torch.batches(floats, epochs=2, epilogue="device", device=device, pin_memory=pin_memory)
    for got, expected in zip(it, floats.batches(epochs=2), strict=True):
        assert got["image"].dtype == torch.float32 and got["image"].is_contiguous()
        assert got["image"].numpy().tobytes() == expected["image"].tobytes()
        np.testing.assert_array_equal(got["label"].numpy(), expected["label"])


def test_epilogue_is_one_of_two_words(floats):
    with pytest.raises(leat.InvalidArgument, match="epilogue = 'gpu'; expected 'worker' or 'device'"):
        leat.torch.batches(floats, epilogue="gpu")


def test_a_state_is_gone_back_to(job):
    it = leat.torch.batches(job, epochs=2)
    next(it)
    state = it.get_state()
    assert (it.epoch, it.step) == (0, 0) and state == it.position()
    rest = labels(it)
    it.set_state(state)
    assert it.epoch is None and labels(it) == rest


def labels(batches):
    return [int(batch["label"][0]) for batch in batches]


def images(job, epoch):
    return [batch["image"].tobytes() for batch in job.batches(start=(epoch, 0))]


def loader(dataset):
    return torch.utils.data.DataLoader(dataset, batch_size=None)


@pytest.mark.parametrize("wrapped", [loader, lambda dataset: dataset])
def test_each_pass_over_a_dataset_is_the_next_epoch(job, wrapped):
    dataset = leat.torch.IterableDataset(job)
    batches = wrapped(dataset)
    assert len(batches) == len(dataset) == len(job)
    for epoch in range(3):
        assert [batch["image"].numpy().tobytes() for batch in batches] == images(job, epoch)
    dataset.set_epoch(1)
    assert [batch["image"].numpy().tobytes() for batch in batches] == images(job, 1)
    dataset.close()
    assert [batch["image"].numpy().tobytes() for batch in batches] == images(job, 2)


def test_after_a_look_at_one_batch_the_epoch_can_begin_anew(job):
    dataset = leat.torch.IterableDataset(job)
    batches = loader(dataset)
    next(iter(batches))
    dataset.set_epoch(0)
    assert [batch["image"].numpy().tobytes() for batch in batches] == images(job, 0)


def test_an_epoch_that_was_broken_off_is_over(job):
    dataset = leat.torch.IterableDataset(job)
    for _ in zip(range(3), dataset):
        pass
    iter(dataset)  # a pass that has not begun does not count
    assert [batch["image"].numpy().tobytes() for batch in dataset] == images(job, 1)
    old, new = iter(dataset), iter(dataset)
    next(old)
    next(new)
    with pytest.raises(leat.FailedPrecondition, match="another pass has begun"):
        next(old)  # and not an epoch that ends early
    assert len(list(new)) == len(job) - 1
    assert list(new) == []


def test_a_look_within_a_pass_does_not_end_it_silently(job):
    dataset = leat.torch.IterableDataset(job)
    with pytest.raises(leat.FailedPrecondition, match="one pass at a time"):
        for _ in loader(dataset):
            next(iter(loader(dataset)))
    with pytest.raises(leat.FailedPrecondition, match="set_epoch"):
        for _ in dataset:
            dataset.set_epoch(7)


@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_ranks_have_their_own_rows_and_the_same_steps(job, world_size):
    ranks = [leat.torch.IterableDataset(job, rank=rank, world_size=world_size) for rank in range(world_size)]
    steps = 0
    for parts, whole in zip(zip(*ranks), job.batches(), strict=True):
        assert {len(part["label"]) for part in parts} == {10 // world_size}
        together = torch.cat([part["image"] for part in parts])
        np.testing.assert_array_equal(together.numpy(), whole["image"])
        steps += 1
    assert steps == len(job)


def test_the_rank_is_that_of_the_process_group(job, tmp_path):
    group = torch.distributed
    if not group.is_available():
        pytest.skip("this torch has no torch.distributed")
    dataset = leat.torch.IterableDataset(job)  # may be made before the group
    group.init_process_group("gloo", init_method=f"file://{tmp_path}/group", rank=0, world_size=1)
    try:
        assert len(next(iter(dataset))["label"]) == 10
    finally:
        group.destroy_process_group()


def test_a_dataset_goes_on_from_its_state_on_any_number_of_processes(job):
    dataset = leat.torch.IterableDataset(job)
    dataset.set_epoch(2)
    it = iter(dataset)
    for _ in range(4):
        next(it)
    state = dataset.state_dict()
    assert (state["epoch"], state["step"]) == (2, 4) and isinstance(state["position"], bytes)
    rest = [batch["image"].numpy() for batch in it]
    ranks = [leat.torch.IterableDataset(job, rank=rank, world_size=2) for rank in range(2)]
    for again in ranks:
        again.load_state_dict(state)
        again.set_epoch(2)  # as loops do: the position stays
    for parts, expected in zip(zip(*ranks), rest, strict=True):
        np.testing.assert_array_equal(torch.cat([part["image"] for part in parts]).numpy(), expected)
    assert [again.state_dict()["epoch"] for again in ranks] == [3, 3]
    ranks[0].load_state_dict(dataset.state_dict())  # the state at the end of an epoch
    assert len(list(ranks[0])) == len(job) and ranks[0].state_dict()["epoch"] == 4


def test_a_state_of_another_job_leaves_a_dataset_where_it_was(job):
    dataset = leat.torch.IterableDataset(job)
    it = iter(dataset)
    next(it)
    state = dataset.state_dict()
    for wrong in ({**state, "position": b"nonsense"}, {"epoch": 0}, None):
        with pytest.raises(leat.InvalidArgument):
            dataset.load_state_dict(wrong)
    assert dataset.state_dict() == state and len(list(it)) == len(job) - 1


def test_a_failure_ends_the_pass_and_the_state_is_before_it(fake, job):
    dataset = leat.torch.IterableDataset(job)
    fake.fail_at_step(2)
    it = iter(dataset)
    next(it), next(it)
    with pytest.raises(leat.DataLoss, match="cats/1.jpg"):
        next(it)
    state = dataset.state_dict()
    assert (state["epoch"], state["step"]) == (0, 2)
    fake.fail_at_step(-1)
    dataset.load_state_dict(state)
    assert labels(dataset)[0] == 20


def test_a_dataset_keeps_no_buffers_and_can_be_closed(fake, job):
    before = fake.live()
    dataset = leat.torch.IterableDataset(job, pin_memory=False)
    kept = next(iter(dataset))
    assert dataset.stats()["rows_per_s"] == 1234.5
    dataset.close()
    dataset.close()
    assert dataset.stats() == {} and fake.live() == before + 1
    del kept
    assert fake.live() == before


def test_what_a_dataset_cannot_be_is_told(service, graph, job):
    for arguments in ({"rank": 0}, {"world_size": 2}, {"rank": 2, "world_size": 2}, {"rank": -1, "world_size": 1}):
        with pytest.raises(leat.InvalidArgument, match="expected both, 0 <= rank < world_size"):
            leat.torch.IterableDataset(job, **arguments)
    with pytest.raises(leat.InvalidArgument, match="batch of 10 rows; expected a multiple of the 3 processes"):
        leat.torch.IterableDataset(job, rank=0, world_size=3)
    partial = service.job("partial", graph.images, batch=16, last_batch="partial")
    with pytest.raises(leat.InvalidArgument, match="expected 'mask', 'drop', 'fill' or 'pad'"):
        leat.torch.IterableDataset(partial, rank=0, world_size=2)
    for epoch in (-1, 1.5, True):
        with pytest.raises(leat.InvalidArgument, match="expected a whole number"):
            leat.torch.IterableDataset(job).set_epoch(epoch)


def test_a_stream_goes_on_from_pass_to_pass(service, graph):
    stream = service.job("stream", graph.images, batch=10, last_batch="stream")
    dataset = leat.torch.IterableDataset(stream)
    first = [batch["image"].numpy().tobytes() for _, batch in zip(range(3), dataset)]
    dataset.set_epoch(0)
    again = [batch["image"].numpy().tobytes() for _, batch in zip(range(2), dataset)]
    on = [batch["image"].numpy().tobytes() for _, batch in zip(range(2), dataset)]
    assert again + on[:1] == first and dataset.state_dict()["step"] == 4
    with pytest.raises(leat.InvalidArgument, match="epoch = 1; expected 0: job 'stream' is a stream"):
        dataset.set_epoch(1)
    assert dataset.state_dict()["step"] == 4
    dataset.close()


def test_loader_workers_are_refused_by_name(job, monkeypatch):
    dataset = leat.torch.IterableDataset(job)
    with pytest.raises(TypeError, match="num_workers=0"):
        pickle.dumps(dataset)  # as a loader that spawns does
    with pytest.raises(TypeError, match="neither copied nor pickled, since it holds a connection"):
        copy.deepcopy(dataset)
    monkeypatch.setattr(torch.utils.data, "get_worker_info", lambda: "in a process that a loader forked")
    with pytest.raises(leat.FailedPrecondition, match="num_workers=0"):
        iter(dataset)


def test_torchdatas_stateful_loader_saves_and_restores_the_place(job):
    stateful = pytest.importorskip("torchdata.stateful_dataloader")

    def opened():
        return stateful.StatefulDataLoader(leat.torch.IterableDataset(job), batch_size=None)

    first = opened()
    assert labels(first) == [10 * step for step in range(10)]
    for step, _ in enumerate(first):
        if step == 3:
            break
    saved = pickle.dumps(first.state_dict())
    again = opened()
    again.load_state_dict(pickle.loads(saved))
    assert [batch["image"].numpy().tobytes() for batch in again] == images(job, 1)[4:]
    saved = again.state_dict()  # the state at the end of an epoch
    assert [batch["image"].numpy().tobytes() for batch in again] == images(job, 2)
    last = opened()
    last.load_state_dict(saved)
    rest = [batch["image"].numpy().tobytes() for batch in last]
    assert (rest or [batch["image"].numpy().tobytes() for batch in last]) == images(job, 2)


def test_samples_are_those_of_the_ranks_rows(job):
    dataset = leat.torch.IterableDataset(job, rank=1, world_size=2)
    assert repr(dataset) == "<leat.torch dataset of job 'images': rows 5 … 9 of 10, next epoch 0 step 0>"
    with pytest.raises(leat.FailedPrecondition, match="no batch has been handed out"):
        dataset.samples()
    for batch in dataset:
        assert dataset.samples().tolist() == batch["label"].tolist()
    dataset.close()
    it = leat.torch.batches(job, 2, rows=[3, 1], start=(4, 9))
    assert len(it) == 11 and next(it)["label"].tolist() == [93, 91] == it.samples().tolist()


@pytest.mark.parametrize("make", [leat.torch.batches, leat.torch.IterableDataset])
def test_what_no_option_is_called_is_refused_at_once(job, make):
    with pytest.raises(TypeError, match="got an unexpected keyword argument 'widnow'"):
        make(job, widnow=3)


@pytest.mark.parametrize(("there", "used", "pins"), [(True, True, True), (True, False, False), (False, False, False)])
def test_memory_is_page_locked_for_processes_that_use_cuda(job, monkeypatch, there, used, pins):
    """Asking for pinned memory creates a context on some GPU."""
    pinned = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    it = leat.torch.batches(job)
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: used)  # a model was moved to its GPU meanwhile
    monkeypatch.setattr(torch.Tensor, "pin_memory", lambda tensor: pinned.append(1) or tensor)
    next(it)
    assert bool(pinned) == pins
