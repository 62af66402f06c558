# SPDX-License-Identifier: Apache-2.0
"""leat.dali's readers.webdataset over a private service: archives with malformed samples."""

import io
import tarfile

import numpy as np
import pytest
from leat.dali import fn, pipeline_def

import leat

PARTS = [("0.txt", b"a"), ("0.cls", b"1"), ("0.txt", b"b"), ("0.cls", b"2"), ("1.txt", b"c"), ("2.txt", b"d")]


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    """Makes two consecutive samples of one name, and two without a class."""
    path = tmp_path_factory.mktemp("archive") / "a.tar"
    with tarfile.open(path, "w") as file:
        for name, data in PARTS:
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return str(path)


def read(archive, ext, batch, **behaviour):
    """Returns the bytes of the first output's samples."""

    @pipeline_def(batch_size=batch)
    def pipeline():
        return tuple(fn.readers.webdataset(paths=archive, ext=ext, **behaviour))

    return [np.asarray(each).tobytes() for each in pipeline().run()[0]]


@pytest.mark.parametrize(("behaviour", "texts"), [("", "acd"), ("empty", "acd"), ("Skip", "a"), ("SKIP", "a")])
def test_of_samples_of_one_name_the_first_is_taken_as_by_dali(archive, behaviour, texts):
    found = read(archive, ["txt", "cls"], len(texts), missing_component_behavior=behaviour)
    assert found == [text.encode() for text in texts]


def test_where_a_missing_component_is_an_error_samples_of_one_name_are_too_unlike_dalis(archive):
    with pytest.raises(leat.FailedPrecondition, match='a.tar: sample "0" has the component "txt" twice, at 512 and at'):
        read(archive, ["txt", "txt"], 1, missing_component_behavior="error")


def test_a_behaviour_that_is_none_is_an_error_that_names_the_argument(archive):
    with pytest.raises(leat.InvalidArgument, match="missing_component_behavior = 'drop'; expected 'skip', 'empty' or"):
        read(archive, ["txt", "cls"], 1, missing_component_behavior="drop")
