# SPDX-License-Identifier: Apache-2.0
"""The programs of docs/examples, which pages of docs/start and docs/guide show too, run unchanged on less data.

tests/docs/run runs those that need newer packages.
"""

import json
import os
import pathlib
import re
import struct
import subprocess

import pytest
from example_programs import data, few, finished, numbers, rest, run, started  # noqa: F401
from ports import free_port

SMALL = ("--epochs", "2", "--size", "32", "--width", "8")


def test_pmap_keeps_the_parameters_equal_on_eight_devices():
    pytest.importorskip("jax")
    out = run("pmap_cnn.py", data("mnist"), "--epochs", "2", "--steps", "12", "--check")
    assert "8 devices, 78 steps of 256 pictures" in out
    assert "parameters equal on 8 devices after each of 24 steps" in out
    losses = numbers(r"loss ([\d.]+)", out)
    assert losses[1] < losses[0] < 2.4
    assert numbers(r"accuracy ([\d.]+)", out)[0] > 0.6


def test_placement_in_one_process():
    pytest.importorskip("jax")
    out = run("placement.py", data("imagenet-sample"))
    assert out.count("32 rows here, of 32") == 4 and "what went there came back" in out


def test_placement_in_two_processes():
    jax = pytest.importorskip("jax")
    if jax.__version_info__ < (0, 5):
        pytest.skip("this JAX's CPU devices compute within one process only")
    address = f"127.0.0.1:{free_port()}"
    arguments = ("placement.py", data("imagenet-sample"), "--processes", "2", "--coordinator", address, "--process")
    processes = [started(*arguments, str(i)) for i in range(2)]
    for process in processes:
        out = finished(process)
        assert out.count("16 rows here, of 32") == 4 and "what went there came back" in out


def test_a_resnet_in_flax_learns():
    pytest.importorskip("flax")
    pytest.importorskip("optax")
    two_devices = "--xla_force_host_platform_device_count=2"
    out = run("resnet_nnx.py", data("imagenet-sample"), *SMALL, XLA_FLAGS=two_devices)
    assert "500 photos of" in out and "7 steps, 2 devices" in out
    losses = numbers(r"loss ([\d.]+)", out)
    assert len(losses) == 2 and losses[1] < losses[0]


def test_a_resnet_in_torch_learns_and_goes_on_where_it_was(tmp_path):
    pytest.importorskip("torch")
    out = run("resnet_torch.py", data("imagenet-sample"), *SMALL)
    losses = numbers(r"loss ([\d.]+)", out)
    assert len(losses) == 2 and losses[1] < losses[0]
    arguments = ("resnet_torch.py", data("imagenet-sample"), *SMALL, "--checkpoint", str(tmp_path / "run.pt"))
    killed = started(*arguments, "--save-every", "3")
    next(line for line in killed.stdout if "saved" in line)
    killed.kill()
    killed.communicate()
    out = run(*arguments)
    assert "going on in epoch" in out
    # Weights may differ in the last bit: torch's threads add in any order.
    assert numbers(r"epoch 2: loss ([\d.]+)", out) == pytest.approx(losses[1:], abs=1e-3)


def test_two_ranks_of_torch_train_together():
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or torch.cuda.is_available():
        pytest.skip("this torch has no torch.distributed, or would take GPUs")
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    arguments = ("resnet_torch.py", data("imagenet-sample"), *SMALL)
    ranks = [started(*arguments, RANK=str(rank), OMP_NUM_THREADS="1", **group) for rank in range(2)]
    first, second = [finished(rank) for rank in ranks]
    losses = numbers(r"loss ([\d.]+)", first)
    assert len(losses) == 2 and losses[1] < losses[0] and second == ""


def check_losses(out):
    """Checks the losses that a program of docs/start prints, one for each of its four epochs."""
    losses = numbers(r"loss ([\d.]+)", out)
    assert len(losses) == 4 and losses[-1] < losses[0], out


def test_the_first_batch(tmp_path):
    out = finished(started("first_batch.py", folder=tmp_path))
    assert "1,000 samples, 15 steps of 64" in out and out.count("uint8 (64, 32, 32, 3)") == 15


def test_your_own_photos():
    out = run("own_photos.py", data("imagenet-sample"))
    assert "500 photos of" in out and "(32, 224, 224, 3)" in out and ".jpg" in out


def test_the_examples_of_the_reference(few):
    assert "the checkpoint continues at epoch 0, step 1" in run("api.py", few)


def test_the_examples_of_the_reference_for_jax(few):
    pytest.importorskip("jax")
    assert "waited" in run("api_jax.py", few)


def test_the_examples_of_the_reference_for_torch(few):
    pytest.importorskip("torch")
    assert "rows so far" in run("api_torch.py", few)


def test_boxes_are_padded(few, tmp_path):
    photos = [str(path.relative_to(few)) for path in sorted(pathlib.Path(few).rglob("*.jpg"))[:2]]
    annotations = {
        "images": [{"id": i, "file_name": name, "height": 64, "width": 64} for i, name in enumerate(photos)],
        "categories": [{"id": 1, "name": "thing"}],
        "annotations": [
            {"id": i, "image_id": i // 2, "category_id": 1, "iscrowd": 0, "bbox": [1.0, 2.0, 3.0, 4.0 + i]}
            for i in range(3)
        ],
    }
    (tmp_path / "instances.json").write_text(json.dumps(annotations))
    out = run("boxes.py", str(tmp_path / "instances.json"), few)
    assert sorted(out.splitlines()) == [
        "1 boxes: [[1.0, 2.0, 3.0, 6.0]]", "2 boxes: [[1.0, 2.0, 3.0, 4.0], [1.0, 2.0, 3.0, 5.0]]"]


def test_a_training_in_numpy_continues_after_a_stop(few, tmp_path):
    killed = started("train_numpy.py", few, str(tmp_path / "checkpoint.npz"))
    first = next(line for line in killed.stdout if "epoch 0" in line)
    killed.kill()
    second = rest(killed)
    third = run("train_numpy.py", few, str(tmp_path / "checkpoint.npz"))
    # If it was killed between writing the checkpoint and printing, an epoch's line is missing.
    assert "epoch 0" not in third
    if "epoch 1" in third:
        check_losses(first + second + third)


def test_a_training_in_jax(few):
    pytest.importorskip("jax")
    check_losses(run("train_jax.py", few, XLA_FLAGS="--xla_force_host_platform_device_count=2"))


def test_a_training_in_torch(few):
    pytest.importorskip("torch")
    check_losses(run("train_torch.py", few))


def test_a_batch_depends_on_its_position_alone():
    out = run("same_batch.py")
    assert "samples in the rows: [" in out and "row 16 has ('random_resized_crop', (" in out


def test_a_script_for_dali(few):
    out = run("from_dali.py", few)
    assert "100 photos" in out and "(32, 3, 224, 224) float32 (32, 1)" in out


def test_a_script_for_rocal(few):
    assert "(32, 224, 224, 3) uint8 (32,)" in run("from_rocal.py", few)


def converted(few, folder, form):
    cli = pathlib.Path(os.environ["LEAT_NATIVE_DIR"]) / "leat"
    subprocess.run([cli, "convert", few, folder / form, "--to", form], check=True, capture_output=True, timeout=60)
    return str(folder / form)


def test_a_program_for_tf_data(few, tmp_path):
    out = run("from_tf_data.py", converted(few, tmp_path, "tfrecord"))
    assert out.count("(32, 224, 224, 3) uint8") == 6


def test_a_program_for_grain(few):
    pytest.importorskip("jax")
    assert "(16, 224, 224, 3) uint8 resumed at step 1" in run("from_grain.py", few)


def test_a_program_for_webdataset(few, tmp_path):
    pytest.importorskip("torch")
    out = run("from_webdataset.py", converted(few, tmp_path, "webdataset"))
    assert out.count("torch.Size([32, 3, 224, 224])") == 6


def test_a_program_for_mosaicml_streaming(few, tmp_path):
    pytest.importorskip("torch")
    rows = []
    for number, path in enumerate(sorted(pathlib.Path(few).glob("*/*"))):
        data = path.read_bytes()
        rows.append(struct.pack("<I", len(data)) + data + struct.pack("<q", number // 4))
    ends = [4 + 4 * (len(rows) + 1)]
    for row in rows:
        ends.append(ends[-1] + len(row))
    shard = struct.pack(f"<I{len(ends)}I", len(rows), *ends) + b"".join(rows)
    (tmp_path / "shard.00000.mds").write_bytes(shard)
    described = {
        "column_names": ["image", "label"], "column_encodings": ["bytes", "int"], "column_sizes": [None, 8],
        "compression": None, "hashes": [], "format": "mds", "samples": len(rows), "size_limit": 1 << 26, "version": 2,
        "raw_data": {"basename": "shard.00000.mds", "bytes": len(shard), "hashes": {}}, "zip_data": None,
    }
    (tmp_path / "index.json").write_text(json.dumps({"shards": [described], "version": 2}))
    out = run("from_mosaicml.py", str(tmp_path))
    assert "torch.Size([32, 3, 224, 224])" in out and "'epoch'" in out


def test_your_own_formats(tmp_path):
    formats = "file_list files webdataset tfrecord caffe2 numpy_array numpy_files idx cifar10 cifar100 coco".split()
    native = os.environ["LEAT_NATIVE_DIR"] + os.pathsep + os.environ["PATH"]  # `leat convert` writes two of them
    out = finished(started("formats.py", folder=tmp_path, PATH=native))
    assert re.findall(r"^(\w+): (?:9|12) samples", out, re.M) == formats


def test_your_own_format_of_a_package(tmp_path):
    pytest.importorskip("pyarrow")
    out = finished(started("formats_packages.py", "parquet", folder=tmp_path))
    assert "parquet: 12 samples; image uint8 (4, 32, 32, 3), label int32 (4,)" in out


def test_your_own_source(few, tmp_path):
    photos = tmp_path / "photos"
    for file in pathlib.Path(few).glob("*/*.jpg"):  # ImageNet's files end so
        (photos / file.parent.name).mkdir(parents=True, exist_ok=True)
        (photos / file.parent.name / f"{file.stem}.JPEG").symlink_to(file)
    out = finished(started("own_source.py", photos, folder=tmp_path))
    assert "100 samples" in out and out.count("(32, 64, 64, 3)") == 3


def test_a_look(few, tmp_path):
    native = os.environ["LEAT_NATIVE_DIR"] + os.pathsep + os.environ["PATH"]
    out = finished(started("look.py", few, folder=tmp_path, PATH=native))
    assert "row 5 of step 2:" in out and "random_resized_crop" in out
    assert (tmp_path / "sheet.png").read_bytes().startswith(b"\x89PNG")


def test_an_evaluation_counts_each_photo_once(few):
    out = run("evaluate.py", few)
    assert numbers(r"% of (\d+) photos", out) == 4 * [20]


def losses_by_step(out):
    return dict(re.findall(r"(step \d+): loss ([\d.]+)", out))


def test_a_training_that_is_preempted_continues(few, tmp_path):
    arguments = ("preempted.py", few, str(tmp_path / "checkpoint.npz"))
    first = started(*arguments)
    before = next(line for line in first.stdout if "epoch 1" in line)
    first.terminate()
    before += rest(first)
    assert first.returncode == 143
    last = before.splitlines()[-1].split(":")[0]
    out = run(*arguments)
    assert last not in out and "the training is complete" in out
    steps = re.findall(r"^epoch (\d) step (\d)", before + out, re.M)
    assert steps == [(str(epoch), str(step)) for epoch in range(1, 4) for step in range(3)]


def check_resumes(name, few, tmp_path):
    """Runs a program of twelve steps, and once more from its last checkpoint. The losses must be the same."""
    whole = losses_by_step(run(name, few, str(tmp_path / "checkpoint")))
    out = run(name, few, str(tmp_path / "checkpoint"))
    assert "continues after step 10\n" in out
    rest = losses_by_step(out)
    assert list(rest) == ["step 11", "step 12"]
    # Weights may differ in the last bit: threads add in any order.
    assert [float(loss) for loss in rest.values()] == pytest.approx([float(whole[step]) for step in rest], abs=1e-3)


def test_a_training_with_orbax_continues(few, tmp_path):
    pytest.importorskip("orbax.checkpoint")
    check_resumes("resume_orbax.py", few, tmp_path)


def test_a_cnn_that_is_killed_continues(few, tmp_path):
    pytest.importorskip("orbax.checkpoint")
    arguments = ("cnn_jax.py", few, str(tmp_path / "checkpoints"))
    killed = started(*arguments)
    before = ""
    while "step 13:" not in before:
        line = killed.stdout.readline()
        assert line, killed.communicate()[1][-4000:]
        before += line
    killed.kill()
    before += rest(killed).rpartition("\n")[0]
    after = run(*arguments)
    # The save of step 10 may have been under way.
    last = int(re.search(r"continues after step (5|10|15|20)\n", after)[1])
    losses, again = losses_by_step(before), losses_by_step(after)
    assert list(again) == [f"step {step}" for step in range(last + 1, 41)]
    both = [step for step in again if step in losses]
    assert both
    assert [float(again[step]) for step in both] == pytest.approx([float(losses[step]) for step in both], abs=1e-3)
    assert re.search(r"epoch 1: \d+ of 20 held-out photos are right\n$", after)


def test_a_training_with_a_stateful_loader_continues(few, tmp_path):
    pytest.importorskip("torchdata.stateful_dataloader")
    check_resumes("resume_torch.py", few, tmp_path)


def test_two_processes_of_torch_train_as_one(few):
    torch = pytest.importorskip("torch")
    if not torch.distributed.is_available() or torch.cuda.is_available():
        pytest.skip("this torch has no torch.distributed, or would take GPUs")
    group = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    ranks = [started("train_torchrun.py", few, RANK=str(rank), OMP_NUM_THREADS="1", **group) for rank in range(2)]
    first, second = [finished(rank) for rank in ranks]
    check_losses(first)
    assert second == ""


def test_two_hosts_of_jax_train_and_evaluate_as_one(few):
    jax = pytest.importorskip("jax")
    one = run("hosts_jax.py", few, "-", "1", "0", XLA_FLAGS="--xla_force_host_platform_device_count=4")
    assert "of 100 photos" in one and one.count("loss") == 4
    if jax.__version_info__ < (0, 5):
        return  # this JAX's CPU devices compute within one process only
    arguments = ("hosts_jax.py", few, f"127.0.0.1:{free_port()}", "2")
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=2"}
    hosts = [started(*arguments, str(host), **flags) for host in range(2)]
    first, second = [finished(host) for host in hosts]
    assert "pulls 16 of 32 rows" in first
    assert numbers(r"loss ([\d.]+)", first) == pytest.approx(numbers(r"loss ([\d.]+)", one), abs=1e-3)
    (right,), (other,) = (re.findall(r"(\d+ of 100) photos", out) for out in (first, second))
    assert right == other
