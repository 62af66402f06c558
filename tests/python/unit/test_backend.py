# SPDX-License-Identifier: Apache-2.0
"""The wheel's builder: the tag, the libraries that are left out, and the errors of a build that cannot succeed."""

import os
import pathlib
import shutil
import subprocess
import sys
import tarfile

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[3]
sys.path.insert(0, str(ROOT / "python_client/backend"))
pytest.importorskip("tomllib" if sys.version_info >= (3, 11) else "tomli")

from leat_backend import elf, left_out, licenses, native, needs, sdist, tag, tree, wheel  # noqa: E402
from leat_backend.errors import BuildError  # noqa: E402

if shutil.which("cc") is None or shutil.which("patchelf") is None:
    pytest.skip("no compiler or no patchelf", allow_module_level=True)


def library(folder, name, source, *links, version=""):
    """Makes a shared library of that name; `version` is that of all its symbols."""
    (folder / "source.c").write_text(source)
    (folder / "source.map").write_text(f"{version} {{ global: *; }};")
    flags = [f"-Wl,--version-script={folder}/source.map"] if version else []
    command = ["cc", "-shared", "-fPIC", f"-Wl,-soname,{name}", *flags, "-o", folder / name, folder / "source.c",
               f"-Wl,-rpath,{folder}", *links]
    subprocess.run(command, check=True, capture_output=True, timeout=60)
    return folder / name


@pytest.mark.parametrize(("version", "glibc"), [
    ("GLIBCXX_3.4.30", (2, 35)), ("GLIBCXX_3.4.33", (2, 39)), ("CXXABI_1.3.14", (2, 38)), ("GLIBC_2.39", (2, 39)),
    ("GLIBC_ABI_DT_RELR", (2, 36)), ("LIBOURS_9.1", (2, 17))])
def test_the_tag_is_the_newest_version_that_is_needed(tmp_path, version, glibc):
    needed = library(tmp_path, "libneeded.so.1", "int far(void) { return 1; }", version=version)
    user = library(tmp_path, "libuser.so", "int far(void); int near(void) { return far(); }", needed, "-nostdlib")
    assert tag.glibc([user])[0] == glibc
    if glibc != (2, 17):
        assert tag.glibc([user])[1] == f"libuser.so needs {version}"
    machine = os.uname().machine
    assert tag.platform_tag([user]) == f"manylinux_{glibc[0]}_{glibc[1]}_{machine}"


def test_a_version_that_is_not_known_has_no_tag(tmp_path):
    needed = library(tmp_path, "libneeded.so.1", "int far(void) { return 1; }", version="GLIBCXX_3.4.99")
    user = library(tmp_path, "libuser.so", "int far(void); int near(void) { return far(); }", needed)
    with pytest.raises(BuildError, match="libuser.so needs GLIBCXX_3.4.99: no glibc is known"):
        tag.platform_tag([user])


@pytest.mark.parametrize("name", [
    "libjbig.so.0", "libldap-2.5.so.0", "libldap_r-2.4.so.2", "liblber-2.5.so.0", "librtmp.so.1", "libssh2.so.1",
    "libssh.so.4", "libgssapi_krb5.so.2", "libkrb5.so.3", "libgnutls.so.30", "libidn2.so.0", "libunistring.so.2"])
def test_what_is_left_out(name):
    assert left_out.is_left_out(name)
    assert left_out.stand_in_of(name).startswith("leat-no-")


@pytest.mark.parametrize("name", ["libcurl.so.4", "libtiff.so.6", "libssl.so.3", "libjpeg.so.62", "libgrpc.so.29"])
def test_what_is_not_left_out(name):
    assert not left_out.is_left_out(name)


CURL = """
#include <stdio.h>
int libssh2_init(int); void* ldap_open(void); extern char* name_of_it;
int start(void) { return libssh2_init(0); }
int go(void) { return ldap_open() != 0; }
char* of_it(void) { return name_of_it; }
"""


@pytest.fixture
def gathered(tmp_path):
    """Gathers a program over a library that needs left-out libraries into a folder with a space in its name."""
    ssh = library(tmp_path, "libssh2.so.1", "int libssh2_init(int x) { return 7; }")
    ldap = library(tmp_path, "libldap-2.5.so.0", 'void* ldap_open(void) { return 0; } char* name_of_it = "it";',
                   version="OPENLDAP_2.5")
    curl = library(tmp_path, "libcurlish.so.4", CURL, ssh, ldap)
    (tmp_path / "program.c").write_text(
        "int start(void); int go(void); char* of_it(void);\n"
        "int main(int count, char** words) { return of_it() ? 9 : count > 1 ? go() : start(); }")
    subprocess.run(["cc", "-o", tmp_path / "program", tmp_path / "program.c", curl, f"-Wl,-rpath,{tmp_path}",
                    f"-Wl,-rpath-link,{tmp_path}"], check=True, capture_output=True, timeout=60)
    return native.Gathered(tmp_path / "any folder", {"program": tmp_path / "program"})


def test_stand_ins_answer_what_is_asked_at_the_start_and_stop_the_rest(gathered):
    names = {p.name for p in (gathered.folder / "lib").iterdir()}
    assert names == {"leat-libcurlish.so.4", "leat-no-ssh2.so", "leat-no-ldap.so"}
    program = gathered.folder / "program"
    done = subprocess.run([program], capture_output=True, text=True, timeout=60)
    assert (done.returncode, done.stderr) == (0, "")  # the stand-in's answer, not the library's; and no missing version
    done = subprocess.run([program, "go"], capture_output=True, text=True, timeout=60)
    assert done.returncode < 0
    assert "ldap_open of libldap-2.5.so.0 was called, which is left out" in done.stderr


def test_one_that_slipped_in_is_found(tmp_path, gathered):
    jbig = library(tmp_path, "libjbig.so.0", "int jbg_newlen(void) { return 1; }")
    user = library(tmp_path, "libuser.so", "int jbg_newlen(void); int near(void) { return jbg_newlen(); }", jbig)
    left_out.check(gathered.elf_files())
    with pytest.raises(BuildError, match=r"libuser.so: libjbig.so.0 may not be in a package"):
        left_out.check([user])
    copy = tmp_path / "leat-libjbig.so.0"
    jbig.rename(copy)
    with pytest.raises(BuildError, match=r"leat-libjbig.so.0: libjbig.so.0 may not be"):
        left_out.check([copy])


def test_a_library_that_no_package_holds_has_no_licence(tmp_path):
    with pytest.raises(BuildError, match="libours.so.1: no Debian package holds it"):
        licenses.packages_of([library(tmp_path, "libours.so.1", "int f(void) { return 1; }")])


def test_an_old_python_is_said_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(sys, "version_info", (3, 9, 18))
    with pytest.raises(BuildError, match=r"this is Python .*: want 3.10 or later"):
        needs.check(tmp_path)


def test_a_missing_program_is_said_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError) as error:
        needs.check(tmp_path)
    assert "patchelf" in str(error.value) and "install-dependencies build" in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(("said", "name"), [
    ('Could not find a package configuration file provided by "gRPC" with any', "gRPC"),
    ("Could NOT find Protobuf (missing: Protobuf_LIBRARIES)", "Protobuf")])
def test_what_cmake_misses_is_said_in_a_line(said, name):
    said = needs.of_cmake(f"CMake Error at CMakeLists.txt:44:\n  {said}\n")
    assert said.startswith(f"CMake finds no {name}: install its development package")


def test_what_cmake_only_remarks_on_is_not_what_is_missing():
    remark = "-- Could NOT find c-ares (missing: c-ares_DIR)\n"
    assert needs.of_cmake(f"{remark}CMake Error at CMakeLists.txt:179:\n  not an existing directory\n") == ""
    assert needs.of_cmake(remark) == ""


def test_a_tree_of_other_sources_is_refused(tmp_path, monkeypatch):
    (tmp_path / "CMakeCache.txt").write_text("CMAKE_HOME_DIRECTORY:INTERNAL=/elsewhere/leat\n")
    monkeypatch.setenv("LEAT_BUILD_DIR", str(tmp_path))
    with pytest.raises(BuildError, match="is a build of other sources, /elsewhere/leat: remove it, or set LEAT_BUILD"):
        tree.build()


@pytest.mark.parametrize(("own", "wanted"), [(False, ["-DLEAT_GPU=AUTO"]), (True, [])])
def test_a_tree_that_the_demo_made_without_gpus_gets_them(tmp_path, monkeypatch, own, wanted):
    (tmp_path / "CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={tree.ROOT}\nLEAT_GPU:STRING=OFF\n")
    monkeypatch.setenv("LEAT_PARQUET", "OFF")
    monkeypatch.delenv("LEAT_BUILD_DIR", raising=False)
    if own:  # a tree of the user's, which stays unchanged
        monkeypatch.setenv("LEAT_BUILD_DIR", str(tmp_path))
    ran = []
    monkeypatch.setattr(tree, "_run", lambda *words: ran.append(words))
    tree._configure(tmp_path)
    assert [word for words in ran for word in words if str(word).startswith("-DLEAT_GPU")] == wanted


def test_a_read_only_checkout_is_said_in_a_line(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "access", lambda path, mode: mode != os.W_OK)
    with pytest.raises(BuildError, match="cannot be written to: set LEAT_BUILD_DIR"):
        needs.check(tmp_path / "build/release")


def test_a_full_disk_is_said_in_a_line(tmp_path, monkeypatch):
    build = tmp_path / "build"
    monkeypatch.setenv("LEAT_BUILD_DIR", str(build))
    monkeypatch.setattr(tree.shutil, "disk_usage", lambda path: shutil._ntuple_diskusage(1 << 40, 1 << 40, 20 << 20))
    with pytest.raises(BuildError, match="20 MiB are free, want"):
        tree.build()
    build.joinpath("CMakeCache.txt").write_text(f"CMAKE_HOME_DIRECTORY:INTERNAL={ROOT}\n")
    full = tmp_path / "cmake"
    full.write_text("#!/bin/sh\necho 'cmake version 3.25.1'\n[ \"$1\" = --version ] || {\n"
                    "echo 'fatal error: error writing to x.s: No space left on device'; exit 1; }\n")
    full.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    with pytest.raises(BuildError, match="no space is left there; make some and run this again"):
        tree.build()


def test_extras_name_the_releases_of_pyarrow_that_were_built():
    plugins = ["libleat_parquet-2500.so", "libleat_parquet-2600.so", "leat"]
    assert wheel.arrow_majors(plugins) == [25, 26]
    lines = wheel.metadata([], [25, 26]).splitlines()
    assert 'Requires-Dist: pyarrow>=25,<27; extra == "parquet"' in lines
    assert "Provides-Extra: parquet" not in wheel.metadata([], []).splitlines()
    with pytest.raises(BuildError, match="without a gap"):
        wheel.arrow_majors([plugins[0], "libleat_parquet-2700.so"])


def test_names_and_extras_are_the_documented_ones():
    lines = wheel.metadata([], []).splitlines()
    assert {"Name: leat-data", f"Version: {wheel.version()}", "Requires-Python: >=3.10"} <= set(lines)
    assert {"Author: The Leat authors", "License-Expression: Apache-2.0"} <= set(lines)
    for extra in ("jax", "torch", "orbax"):  # README's ten lines say progress=True
        assert f'Requires-Dist: tqdm>=4.60; extra == "{extra}"' in lines


def test_the_source_distribution_has_what_a_build_wants_at_the_places_where_pip_looks(tmp_path):
    with tarfile.open(sdist.write(tmp_path)) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
        top = wheel.stem()
        pyproject = archive.extractfile(f"{top}/pyproject.toml").read().decode()
    assert {"PKG-INFO", "CMakeLists.txt", "CMakePresets.json", "LICENSE", "worker/main.cc", "client/c/api.cc",
            "python_client/src/leat/__init__.py", "python_client/backend/leat_backend/__init__.py"} <= names
    assert not any(name.startswith(("tests/", ".", "build/")) for name in names)
    assert 'backend-path = ["python_client/backend"]' in pyproject
    assert 'readme = "python_client/README.md"' in pyproject


def test_files_of_any_name_are_in_the_source_distribution(tmp_path, monkeypatch):
    names = ["plain.cc", "straße.cc", 'a "quoted" name.cc', "two\nlines.cc"]
    for name in names:
        (tmp_path / name).write_text("")
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    monkeypatch.setattr(sdist, "ROOT", tmp_path)
    assert sdist.files() == sorted(names)


def test_a_clone_of_which_git_says_nothing_gives_no_source_distribution(tmp_path, monkeypatch):
    (tmp_path / ".git").write_text("gitdir: nowhere")
    monkeypatch.setattr(sdist, "ROOT", tmp_path)
    with pytest.raises(BuildError, match="git cannot list the files of"):
        sdist.files()
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(BuildError, match="no git here.*apt-get install git"):
        sdist.files()


def test_changelog_and_version_agree():
    assert f"\n## {wheel.version()}" in (ROOT / "CHANGELOG.md").read_text()


def test_symbols_are_read_with_their_versions_and_sizes(tmp_path):
    file = library(tmp_path, "libdata.so.1", "char table[24]; int f(void) { return 1; }", version="DATA_1")
    symbols = elf.defined(file)
    assert (symbols["table"].bytes, symbols["table"].version, symbols["f"].bytes) == (24, "DATA_1", 0)
