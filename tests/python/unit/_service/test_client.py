# SPDX-License-Identifier: Apache-2.0
import pickle
import re
import subprocess
import sys
import warnings

import pytest

import leat
from leat._library import native
from leat._service import shared, waiting


def test_a_job_tells_what_it_is(job):
    assert (len(job), job.batch, job.num_samples, job.plan_hash) == (10, 10, 100, "0123456789abcdef")
    assert job.schema["image"] == ("uint8", (8, 8, 3))
    assert job.schema["label"].shape == ()
    assert "100 samples, 10 steps of 10" in repr(job)
    assert job.to_dict()["spec"]["name"] == "images"


@pytest.mark.parametrize(
    ("asked", "settled"),
    [
        ("exact", "exact"),
        ("nvjpeg", "nvjpeg"),
        ("nvjpeg_shared", "nvjpeg_shared"),
        ("auto", "nvjpeg"),
        (None, "exact"),
    ],
)
def test_a_job_tells_which_decoder_it_has(service, graph, asked, settled):
    options = {} if asked is None else {"decoder": asked}
    assert service.job("a", graph.images, batch=10, **options).decoder == settled


def test_one_sample(job):
    assert job.sample(42)["label"] == 42
    assert job.sample(-1)["label"] == 99
    assert job.sample(0)["image"].shape == (8, 8, 3)
    with pytest.raises(IndexError, match="100 samples"):
        job.sample(100)
    with pytest.raises(leat.InvalidArgument):
        job.sample("0")


@pytest.mark.parametrize(
    ("code", "kinds"),
    [
        (3, (leat.InvalidArgument, ValueError)),
        (4, (leat.DeadlineExceeded, TimeoutError)),
        (5, (leat.NotFound, LookupError)),
        (6, (leat.AlreadyExists,)),
        (7, (leat.PermissionDenied, PermissionError)),
        (8, (leat.ResourceExhausted,)),
        (11, (leat.OutOfRange, IndexError)),
        (12, (leat.Unimplemented, NotImplementedError)),
        (14, (leat.Unavailable, ConnectionError)),
        (15, (leat.DataLoss,)),
        (16, (leat.Unauthenticated, PermissionError)),
        (77, (leat.Error, RuntimeError)),
    ],
)
def test_a_status_becomes_an_exception_with_the_services_text(service, graph, code, kinds):
    with pytest.raises(leat.Error) as caught:
        service.job(f"error-{code}", graph.images, batch=10)
    assert all(isinstance(caught.value, kind) for kind in kinds)
    assert str(caught.value).startswith("node 0: the text of the service\n  node 0 is fn.readers.image_folder at ")
    assert str(pickle.loads(pickle.dumps(caught.value))) == str(caught.value)


def test_a_job_that_waits_says_what_for_until_its_caller_leaves(service, graph, fake, caplog):
    fake.set_delay(0.01)
    service.job("slow", graph.images, batch=10)
    assert [(each.name, each.levelname, each.getMessage()) for each in caplog.records] == [
        ("leat", "WARNING", "job slow waits: worker w1 lists /data: 3 files so far")
    ]
    waiting._tell(None, b"slow", b"worker w1 lists /data: 4 files so far")
    assert len(caplog.records) == 1


@pytest.mark.parametrize(
    "wrong",
    [
        {"batch": 0},
        {"batch": -1},
        {"batch": 2.5},
        {"batch": None},
        {"seed": -1},
        {"seed": 2**64},
        {"augment_seed": -1},
        {"augment_seed": "8"},
        {"shuffle": "globl"},
        {"shuffle": None},
        {"last_batch": "keep"},
        {"num_parts": 0},
        {"on_bad_sample": "skip"},
        {"on_bad_sample": "zero", "max_bad": 1.5},
        {"on_bad_sample": "zero", "max_bad": "1%"},
        {"decoder": "fast"},
        {"timeout": 0},
        {"pipeline": lambda: None},
        {"pipeline": "train"},
        {"name": 3},
    ],
)
def test_a_wrong_option_is_named_with_its_value(service, graph, wrong):
    options = {"name": "a", "pipeline": graph.images, "batch": 10, **wrong}
    name, pipeline = options.pop("name"), options.pop("pipeline")
    with pytest.raises(leat.InvalidArgument):
        service.job(name, pipeline, **options)


def test_a_wrong_choice_names_the_nearest(service, graph):
    with pytest.raises(leat.InvalidArgument, match="shuffle = 'globl'; expected one of .*did you mean 'global'"):
        service.job("a", graph.images, batch=10, shuffle="globl")


@pytest.mark.parametrize("shuffle", [True, False, "global", "shard", "sequential"])
def test_orders(service, graph, shuffle):
    assert len(service.job("a", graph.images, batch=10, shuffle=shuffle)) == 10


def test_attaching_to_a_job_that_does_not_exist(service):
    with pytest.raises(leat.NotFound):
        service.job("nobody")


def test_connect_refuses_what_does_not_fit(tmp_path):
    with pytest.raises(ConnectionError, match="nobody:1"):
        leat.connect("nobody:1")
    for option in ({"workers": 2}, {"threads": 1}, {"cache": 1}, {"disk_cache": ("/a", "1GiB")}, {"devices": "all"}):
        with pytest.raises(leat.InvalidArgument, match=f"{[*option][0]} is an option of a private service only"):
            leat.connect("host:1", **option)
    with pytest.raises(leat.InvalidArgument, match="access_token_file = .*No such file"):
        leat.connect("host:1", access_token_file=tmp_path / "absent")
    with pytest.raises(leat.InvalidArgument, match="one of access_token and access_token_file"):
        leat.connect("host:1", access_token="a", access_token_file=tmp_path / "absent")
    with pytest.raises(leat.InvalidArgument, match="ca is given, but no address"):
        leat.connect(ca=tmp_path / "absent")
    with pytest.raises(leat.InvalidArgument, match="threads"):
        leat.connect(threads=0)
    with pytest.raises(leat.InvalidArgument, match="timeout"):
        leat.connect(timeout=-1)


@pytest.fixture
def connected(monkeypatch):
    """Returns the options that the last `connect` passed to the library."""
    seen = {}

    class Service(leat.Service):
        def __init__(self, options):
            seen.clear()
            seen.update(options)
            super().__init__(options)

    monkeypatch.setattr("leat._service.client.Service", Service)
    return seen


def test_the_environment_gives_the_address_and_what_the_service_asks_for(monkeypatch, tmp_path, connected):
    monkeypatch.setenv("LEAT_COORDINATOR", "nobody:1")
    with pytest.raises(leat.Unavailable):
        leat.connect()
    monkeypatch.setenv("LEAT_COORDINATOR", "somebody:1")
    for name in ("access_token_file", "tls_ca", "tls_cert", "tls_key"):
        (tmp_path / name).write_text(f"{name}_of_the_environment\n")
        monkeypatch.setenv(f"LEAT_{name.upper()}", str(tmp_path / name))
    assert "private" not in repr(leat.connect())
    assert connected["access_token"] == "access_token_file_of_the_environment"
    assert connected["access_token_file"] == str(tmp_path / "access_token_file")  # it is read again
    for name in ("ca", "cert", "key"):
        assert connected[f"{name}_pem"] == f"tls_{name}_of_the_environment\n"
    (tmp_path / "mine").write_text("mine")
    leat.connect(access_token="given", ca=tmp_path / "mine")
    assert (connected["access_token"], connected["ca_pem"]) == ("given", "mine")
    assert "access_token_file" not in connected
    monkeypatch.setenv("LEAT_ACCESS_TOKEN", "itself")
    leat.connect()
    assert connected["access_token"] == "itself"
    monkeypatch.chdir(tmp_path)
    leat.connect(access_token_file="mine")
    assert connected["access_token_file"] == str(tmp_path / "mine")
    monkeypatch.setenv("LEAT_TLS_KEY", str(tmp_path / "absent"))
    with pytest.raises(leat.InvalidArgument, match="LEAT_TLS_KEY = .*No such file"):
        leat.connect()


@pytest.mark.parametrize("name", ["COORDINATOR", "ACCESS_TOKEN", "ACCESS_TOKEN_FILE", "TLS_CA", "TLS_CERT", "TLS_KEY"])
def test_a_variable_that_is_empty_is_an_error_and_not_the_default(monkeypatch, connected, name):
    monkeypatch.setenv("LEAT_COORDINATOR", "somebody:1")
    monkeypatch.setenv(f"LEAT_{name}", "")
    with pytest.raises(leat.InvalidArgument, match=f"LEAT_{name} is set and empty; expected a value"):
        leat.connect()
    assert connected == {}


@pytest.mark.parametrize("text", ["secret", "secret\n", "secret\r\n", " secret \n\n"])
def test_line_ends_are_no_part_of_an_access_token(monkeypatch, tmp_path, connected, text):
    (tmp_path / "token").write_bytes(text.encode())
    leat.connect("somebody:1", access_token_file=tmp_path / "token").close()
    assert connected["access_token"] == "secret"
    connected.clear()
    monkeypatch.setenv("LEAT_ACCESS_TOKEN", text)
    leat.connect("somebody:1").close()
    assert connected["access_token"] == "secret"
    connected.clear()
    leat.connect("somebody:1", access_token=text).close()  # as from open(file).read()
    assert connected["access_token"] == "secret"


@pytest.mark.parametrize("text", ["", "\n", "a\nsecret\n", "\ufeffsecret\n", "two secret words"])
def test_a_file_that_holds_no_access_token_is_named_and_not_shown(monkeypatch, tmp_path, connected, text):
    (tmp_path / "token").write_text(text)
    file = tmp_path / "token"
    monkeypatch.setenv("LEAT_ACCESS_TOKEN_FILE", str(file))
    for name, options in ("access_token_file", {"access_token_file": file}), ("LEAT_ACCESS_TOKEN_FILE", {}):
        with pytest.raises(leat.InvalidArgument, match=f"{name} = '{file}' (has|is) no access token") as said:
            leat.connect("somebody:1", **options)
        assert "secret" not in str(said.value)
    assert connected == {}


def test_an_empty_address_is_an_error_and_not_a_private_service(connected):
    with pytest.raises(leat.InvalidArgument, match="address is ''; expected HOST:PORT"):
        leat.connect("")
    assert connected == {}


def test_the_facades_reach_a_service_that_wants_tls(monkeypatch, tmp_path, connected):
    (tmp_path / "ca").write_text("roots")
    monkeypatch.setenv("LEAT_COORDINATOR", "somebody:1")
    monkeypatch.setenv("LEAT_TLS_CA", str(tmp_path / "ca"))
    monkeypatch.setattr(shared, "_service", None)
    shared.service()
    assert connected["ca_pem"] == "roots"
    monkeypatch.setattr(shared, "_service", None)


def test_the_roots_of_the_system(monkeypatch, tmp_path, connected):
    (tmp_path / "bundle").write_text("the system's roots")
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "bundle"))
    leat.connect("somebody:1", ca="system").close()
    assert connected["ca_pem"] == "the system's roots"
    connected.clear()
    monkeypatch.setenv("LEAT_TLS_CA", "system")
    leat.connect("somebody:1").close()
    assert connected["ca_pem"] == "the system's roots"
    monkeypatch.delenv("SSL_CERT_FILE")
    monkeypatch.setattr("leat._service.credentials.SYSTEM_ROOTS", (str(tmp_path / "none"),))
    with pytest.raises(leat.InvalidArgument, match="LEAT_TLS_CA is \"system\".*ca-certificates"):
        leat.connect("somebody:1")


def test_a_private_service_needs_nothing_of_the_environment(monkeypatch, connected):
    monkeypatch.setenv("LEAT_TLS_CA", "/no/such/file")
    leat.connect().close()
    assert "ca_pem" not in connected


def test_a_script_with_options_of_a_private_service_runs_with_another_one(monkeypatch, connected, caplog):
    monkeypatch.setenv("LEAT_COORDINATOR", "somebody:1")
    with caplog.at_level("INFO", logger="leat"):
        leat.connect(threads=2, cache="1GiB").close()
    assert connected == {"address": "somebody:1", "timeout_s": 10.0}
    assert [line.split()[0] for line in caplog.messages] == ["threads", "cache"]
    assert "not used: LEAT_COORDINATOR is somebody:1" in caplog.text


def test_the_address_is_not_asked_of_a_handle_that_another_thread_may_free(monkeypatch, service):
    monkeypatch.delattr(native.lib, "leat_service_address")
    assert service.address == "unix-abstract:fake"
    service.close()
    with pytest.raises(leat.FailedPrecondition, match="this service is closed"):
        _ = service.address


def test_a_closed_service_says_so(service):
    service.close()
    service.close()
    with pytest.raises(leat.FailedPrecondition, match="this service is closed"):
        service.get("status")
    assert "closed" in repr(service)


@pytest.mark.parametrize("what", ["service", "job", "batches"])
def test_handles_do_not_pickle(service, job, what):
    thing = {"service": service, "job": job, "batches": job.batches()}[what]
    with pytest.raises(TypeError, match="pickle"):
        pickle.dumps(thing)


def test_get_returns_parsed_json(service):
    assert service.get("shards", "photos") == {"what": "shards", "name": "photos"}


FORKED = """
import os, sys, leat
from leat import fn
job = leat.connect().job("a", leat.pipeline(lambda: fn.readers.image_folder("/x")[1]), batch=10)
it = job.batches()
batch = next(it)
if os.fork() == 0:
    try:
        next(it)
    except leat.FailedPrecondition as error:
        assert "forked" in str(error), error
        del batch, it
        os._exit(17)
    os._exit(1)
assert os.waitstatus_to_exitcode(os.wait()[1]) == 17
next(it)
"""


def test_a_forked_child_is_told_to_connect_itself():
    subprocess.run([sys.executable, "-c", FORKED], check=True, timeout=60)


def test_a_job_is_replaced_only_on_request(service, graph, monkeypatch):
    done, create = [], service._create

    def creates(pipeline, spec, relist, timeout_s):
        done.append("create")
        if done.count("create") == 1:
            raise leat.AlreadyExists("another spec")
        return create(pipeline, spec, relist, timeout_s)

    monkeypatch.setattr(service, "_create", creates)
    monkeypatch.setattr(service, "delete_job", lambda name: done.append(f"delete {name}"))
    with pytest.raises(leat.AlreadyExists):
        service.job("job", graph.images, batch=10)
    done.clear()
    assert service.job("job", graph.images, batch=10, replace=True).batch == 10
    assert done == ["create", "delete job", "create"]


@pytest.mark.parametrize("replace, relist", [(False, "auto"), (True, "auto"), (True, True), (False, True)])
@pytest.mark.parametrize("changed", ["", "list.txt: its text has changed"])
def test_a_job_whose_dataset_has_changed_is_replaced_on_request(service, graph, monkeypatch, replace, relist, changed):
    done, create = [], service._create

    def creates(pipeline, spec, wish, timeout_s):
        done.append(wish)
        job = create(pipeline, spec, wish, timeout_s)
        job._attached, job.dataset_changed = done.count(wish) == 1, changed if done.count(wish) == 1 else ""
        return job

    monkeypatch.setattr(service, "_create", creates)
    monkeypatch.setattr(service, "delete_job", lambda name: done.append(f"delete {name}"))
    again = replace and (changed or relist is True)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        service.job("job", graph.images, batch=10, replace=replace, relist=relist)
    wish = "always" if relist is True else "auto"
    assert done == ([wish, "delete job", wish] if again else [wish])
    told = [str(each.message) for each in caught if each.category is leat.DatasetChanged]
    assert bool(told) == bool(changed and not again)
    assert all("job job keeps" in text and changed in text and "replace=True" in text for text in told)


@pytest.mark.parametrize("relist", ["always", 1, None])
def test_relist_is_auto_or_a_bool(service, graph, relist):
    with pytest.raises(leat.InvalidArgument, match="relist = .*; expected 'auto', True or False"):
        service.job("job", graph.images, batch=10, relist=relist)


@pytest.mark.parametrize("replace", ["yes", 1, None])
def test_replace_is_a_bool(service, graph, replace):
    with pytest.raises(leat.InvalidArgument, match="replace = .*; expected True or False"):
        service.job("job", graph.images, batch=10, replace=replace)


def test_a_job_that_somebody_else_deletes_is_replaced_too(service, graph):
    with pytest.raises(leat.AlreadyExists):  # the fake knows no job to delete
        service.job("error-6", graph.images, batch=10, replace=True)


@pytest.mark.parametrize("text", ["caf\udce9", "a\0b"])
def test_texts_that_are_no_unicode_are_refused_where_they_stand(service, graph, text):
    shown = re.escape(repr(text))
    mixture = leat.mix({"a": graph.images, text: graph.images}, {"a": 1, text: 1})
    for make, place in {
        lambda: service.job(text): "name",
        lambda: service.job(text, graph.images, batch=1): "name",
        lambda: service.delete_job(text): "name",
        lambda: service.job("j", graph.images.select(where=text), batch=1): r"selection\.where",
        lambda: service.job("j", graph.images.select(weights={text: 1}), batch=1): r"selection\.shares\[0\]\.name",
        lambda: service.job("j", mixture, batch=1): r"sources\[1\]\.name",
        lambda: leat.connect(text): "address",
    }.items():
        with pytest.raises(leat.InvalidArgument, match=f"^{place} = {shown}; expected a text of Unicode"):
            make()
