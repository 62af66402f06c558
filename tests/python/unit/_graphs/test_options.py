# SPDX-License-Identifier: Apache-2.0
"""Values of other types than the usual ones: NumPy's numbers are numbers, and what is wrong is named."""

import json

import numpy as np
import pytest

import leat
from leat._graphs import options as _options


@pytest.mark.parametrize("value", [2, 2.0, np.int64(2), np.uint8(2), np.float32(2), np.float64(2)])
def test_a_number_of_numpy_is_a_number(value):
    assert _options.seconds("timeout", value) == 2.0
    assert _options.share("max_bad", value / 4) == 0.5
    assert json.dumps([_options.seconds("timeout", value), _options.share("max_bad", value / 4)]) == "[2.0, 0.5]"


@pytest.mark.parametrize("value", [True, np.bool_(True), "2", None, [2], 0, -1, float("nan"), np.float32("nan"), 2j])
def test_what_is_no_time_is_named(value):
    with pytest.raises(leat.InvalidArgument, match="timeout = .*; expected seconds, more than 0"):
        _options.seconds("timeout", value)


def test_a_whole_number_beyond_all_floats_is_no_float():
    assert _options.seconds("timeout", 10**400) == 1e9
    assert _options.positive_number("share", 10**300) == 1e300
    with pytest.raises(leat.InvalidArgument, match="share = 1000.*; expected a number of 0 or more"):
        _options.positive_number("share", 10**400)


def test_a_place_may_have_been_in_json(job):
    place = json.loads(json.dumps(job.step_of(next_position(job))))
    assert place == [0, 1]
    with job.batches(start=place) as batches:
        next(batches)
        assert (batches.epoch, batches.step) == (0, 1)
    for wrong in ([0], [0, 1, 2], "01", 7, {0: 1}):
        with pytest.raises(leat.InvalidArgument, match="start = .*; expected \\(epoch, step\\)"):
            job.batches(start=wrong)


def next_position(job):
    with job.batches() as batches:
        next(batches)
        return batches.position()


@pytest.mark.parametrize("address", [7411, b"host:7411", ("host", 7411), " "])
def test_an_address_is_a_text(address):
    with pytest.raises(leat.InvalidArgument, match="address is .*; expected HOST:PORT"):
        leat.connect(address)


@pytest.mark.parametrize("path", [5, b"/etc/token", ["/etc/token"]])
@pytest.mark.parametrize("name", ["access_token_file", "ca", "cert", "key"])
def test_a_file_is_named_by_a_path(name, path):
    with pytest.raises(leat.InvalidArgument, match=f"{name} = .*; expected the path of a file"):
        leat.connect("host:7411", **{name: path})


@pytest.mark.parametrize("path", ["/etc/to\0ken", "/etc/\ud800"])
def test_a_path_that_no_file_can_have_is_named(path):
    with pytest.raises(leat.InvalidArgument, match="ca = '/etc/"):
        _options.file_text("ca", path)


def test_a_number_beyond_all_doubles_is_named():
    assert _options.seconds("timeout", 10**400) == 1e9
    with pytest.raises(leat.InvalidArgument, match="weight = 10+; expected a number of 0 or more"):
        _options.positive_number("weight", 10**400)


@pytest.mark.parametrize("name", ["access_token_file", "ca", "cert", "key"])
def test_no_error_shows_what_a_file_holds(name, tmp_path):
    path = tmp_path / "file.pem"
    path.write_bytes(b"-----BEGIN PRIVATE KEY-----\nsecret\0\n")
    with pytest.raises(leat.InvalidArgument, match=f"{name} = '.*/file.pem' has zero bytes in it") as caught:
        leat.connect("host:7411", **{name: path})
    assert "secret" not in str(caught.value)


def test_an_access_token_is_a_text_and_no_error_shows_it():
    with pytest.raises(leat.InvalidArgument, match="access_token is bytes; expected a text") as caught:
        leat.connect("host:7411", access_token=b"secret")
    assert "secret" not in str(caught.value)


def test_what_a_service_is_asked_for_is_a_word_that_it_knows(service):
    for what in ("job", 5, None):
        with pytest.raises(leat.InvalidArgument, match="what = .*; expected one of 'status', .* 'private'"):
            service.get(what)
    for what, name in (("jobs", "job"), ("shards", None)):
        with pytest.raises(leat.InvalidArgument, match="name = .*; expected the dataset's of 'shards'"):
            service.get(what, name)


@pytest.mark.parametrize("name", [5, b"job", None, ["job"]])
def test_a_jobs_name_is_a_text(service, graph, name):
    for ask in (
        lambda: service.delete_job(name),
        lambda: service.job(name),
        lambda: service.job(name, graph.images, batch=10),
        lambda: service.get("shards", name) if name is not None else service.job(name),
    ):
        with pytest.raises(leat.InvalidArgument, match="name = .*; expected a text"):
            ask()


@pytest.mark.parametrize("value", ["no", 0, 1, None, [], np.array([1, 2])])
def test_a_switch_is_true_or_false(value, service, graph):
    with pytest.raises(leat.InvalidArgument, match="mix_parts = .*; expected True or False"):
        _options.flag("mix_parts", value)
    assert _options.flag("mix_parts", np.bool_(True)) is True
    for name in ("rotate_parts", "mix_parts", "replace"):
        with pytest.raises(leat.InvalidArgument, match=f"{name} = .*; expected True or False"):
            service.job("job", graph.images, batch=8, **{name: value})


@pytest.mark.parametrize("value", ["no", 1, np.array([1, 2])])
def test_progress_is_true_or_false(value, job):
    with pytest.raises(leat.InvalidArgument, match="progress = .*; expected True or False"):
        job.batches(progress=value)


def test_an_array_is_no_word(job, service, graph):
    array = np.array([1, 2])
    with pytest.raises(leat.InvalidArgument, match="relist = .*; expected 'auto', True or False"):
        service.job("job", graph.images, batch=8, relist=array)
    with pytest.raises(leat.InvalidArgument, match="epilogue = .*; expected 'worker' or 'device'"):
        job.batches(epilogue=array)


@pytest.mark.parametrize("name", ["epochs", "window", "max_window_bytes", "row_timeout", "epilogue"])
def test_an_error_shows_the_head_of_a_long_value(name, job):
    with pytest.raises(leat.InvalidArgument) as raised:
        job.batches(**{name: "x" * 100_000})
    assert len(str(raised.value)) < 300
