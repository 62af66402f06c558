# SPDX-License-Identifier: Apache-2.0
"""README's instructions: its pip line in an empty environment, then its ten lines unchanged.

The pip line makes its wheel from this build tree (LEAT_BUILD_DIR), and fetches its dependencies from PyPI; without a
network this test fails. It also checks what pip has installed.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest

import cluster
from ports import free_port

ROOT = pathlib.Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
PHOTOS = 100
OF_THE_MACHINE = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|stdc\+\+|gcc_s))\.so")
# Libraries under the GPL or LGPL, or for protocols that are never used.
UNWANTED = ("jbig", "ldap", "lber", "rtmp", "ssh2", "gssapi", "krb5", "gnutls", "idn2", "unistring", "nettle", "gmp")
# The glibc of the first distributions with a libstdc++, from PEP 600's policies in auditwheel.
CAME_WITH = {(3, 4, 28): (2, 31), (3, 4, 29): (2, 34), (3, 4, 30): (2, 35), (3, 4, 32): (2, 38), (3, 4, 33): (2, 39)}


def run(*argv, **options):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=280, **options)


class ReadmeTest(cluster.ClusterTest):
    """`python` is that of the environment in which README's pip line ran; `site` its site-packages."""

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        scratch = pathlib.Path(tempfile.mkdtemp(prefix="leat readme "))
        cls.addClassCleanup(shutil.rmtree, scratch, ignore_errors=True)
        made = run(sys.executable, "-m", "venv", scratch / "venv")
        assert made.returncode == 0, made.stdout + made.stderr
        cls.python = scratch / "venv/bin/python"
        (cls.site,) = (scratch / "venv/lib").glob("python3*/site-packages")
        cls.environment = {name: value for name, value in os.environ.items()
                           if not name.startswith(("LEAT_", "PYTHON", "VIRTUAL_ENV"))}
        cls.environment["PATH"] = f"{scratch}/venv/bin:{os.environ['PATH']}"
        (line,) = re.findall(r"^ *(pip install '\./python_client\[jax\]')$", README, re.M)
        installed = run("bash", "-c", line, cwd=ROOT, env={
            **cls.environment, "LEAT_BUILD_DIR": os.environ["LEAT_BUILD_DIR"], "PIP_DISABLE_PIP_VERSION_CHECK": "1"})
        assert installed.returncode == 0, f"{line}\n{installed.stdout[-3000:]}{installed.stderr[-3000:]}"
        cls.native = cls.site / "leat/_native"

    def code(self, text, **environment):
        done = run(self.python, "-c", text, cwd=self.folder, env={**self.environment, **environment})
        self.assertEqual(done.returncode, 0, done.stderr[-3000:])
        return done.stdout

    def elf_files(self):
        return [p for p in self.native.rglob("*") if p.is_file() and p.read_bytes()[:4] == b"\x7fELF"]

    def dist_info(self):
        (folder,) = self.site.glob("leat_data-*.dist-info")
        return folder

    def test_the_ten_lines_give_batches(self):
        made = run(os.environ["LEAT_MAKE_PHOTOS_BIN"], self.folder / "photos", PHOTOS)
        self.assertEqual(made.returncode, 0, made.stderr)
        blocks = re.findall(r"```python\n(.*?)```", README, re.S)
        trains, resumes = blocks
        said = self.code(f"{trains}\n{resumes}\nprint('resumed', next(it)['image'].sharding == sharding, it.step)",
                         JAX_PLATFORMS="cpu")
        self.assertEqual(said.count("(32, 224, 224, 3)"), PHOTOS // 32, said)
        self.assertIn("resumed True 1\n", said)

    def test_a_service_by_its_three_lines(self):
        (block,) = re.findall(r"((?:    leat.*\n)+)\nTraining scripts then say", README)
        port = str(free_port())
        coordinator, worker, status = block.replace("7411", port).splitlines()
        environment = {**self.environment, "LEAT_COORDINATOR": f"127.0.0.1:{port}"}
        with open(self.folder / "log", "wb") as log:
            for line in coordinator, worker:
                daemon = subprocess.Popen(["bash", "-c", f"exec {line.strip()}"], cwd=self.folder, env=environment,
                                          stdout=log, stderr=log)
                self.addCleanup(daemon.wait)
                self.addCleanup(daemon.terminate)

        def is_healthy_with_a_worker():
            done = run("bash", "-c", status, cwd=self.folder, env=environment)
            return done.returncode == 0 and "Workers (1)" in done.stdout

        self.until("the service is healthy and has a worker", is_healthy_with_a_worker)

    def test_version_and_commands_are_those_of_the_build(self):
        wanted = re.search(r"project\(leat VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())[1]
        said = self.code("import leat, importlib.metadata as m; print(leat.__version__, m.version('leat-data'))")
        self.assertEqual(said.split(), [wanted, wanted])
        said = self.code("import leat; print(leat.__version__)", PYTHONPATH=str(ROOT / "python_client/src"),
                         LEAT_NATIVE_DIR=str(self.native))
        self.assertEqual(said.split(), [wanted])
        for command in ("leat", "leat-coordinator", "leat-worker"):
            self.assertIn(wanted, run(self.python.with_name(command), "--version", env=self.environment).stdout)

    def test_the_tag_is_the_glibc_that_the_files_need(self):
        newest = (2, 17)
        for file in self.elf_files():
            said = run("readelf", "--version-info", "--wide", file).stdout.partition("'.gnu.version_r'")[2]
            for kind, number in re.findall(r"Name: (GLIBC|GLIBCXX)_([\d.]+)", said):
                version = tuple(map(int, number.split(".")))
                newest = max(newest, version[:2] if kind == "GLIBC" else
                             next(glibc for runtime, glibc in sorted(CAME_WITH.items()) if version <= runtime))
        (tag,) = re.findall(r"^Tag: (.*)$", (self.dist_info() / "WHEEL").read_text(), re.M)
        self.assertEqual(tag, f"py3-none-manylinux_{newest[0]}_{newest[1]}_{os.uname().machine}")

    def test_each_library_has_its_licence_and_none_is_unwanted(self):
        names = [p.name for p in (self.native / "lib").iterdir()]
        self.assertGreater(len(names), 20)
        for name in names:
            if name.startswith("leat-no-"):
                self.assertLess((self.native / "lib" / name).stat().st_size, 64 << 10, name)
            else:
                self.assertFalse([word for word in UNWANTED if f"lib{word}" in name], name)
                self.assertTrue(name.startswith("leat-lib"), name)
        licences = self.dist_info() / "licenses"
        packages = {p.name for p in licences.iterdir()}
        self.assertLessEqual({"leat", "libgrpc29", "libssl3", "libcurl4", "libtiff6", "common-licenses"}, packages)
        self.assertFalse([p for p in packages if any(p.startswith(f"lib{word}") for word in UNWANTED)])
        # An SONAME and the Debian package of its library begin alike, except for abseil, which has one package.
        for name in names:
            if name.startswith("leat-lib") and "absl" not in name:
                said = run("dpkg-query", "-S", f"*/{name.removeprefix('leat-')}").stdout
                owners = {line.split(":")[0] for line in said.splitlines()}
                self.assertTrue(owners & packages, f"{name}: {owners}")

    def test_nothing_else_of_the_machine_is_loaded(self):
        for file in self.elf_files():
            if file.name.startswith("libleat_parquet"):
                continue
            for line in run("ldd", file).stdout.splitlines():
                name, arrow, where = line.strip().partition(" => ")
                if arrow and not OF_THE_MACHINE.match(name):
                    self.assertTrue(where.startswith(str(self.native)), f"{file.name}: {line}")

    def test_a_picture_that_would_call_what_is_left_out_is_refused(self):
        # A TIFF of one strip with JBIG compression.
        entries = [(256, 4, 8), (257, 4, 8), (258, 3, 1), (259, 3, 34661), (262, 3, 1), (273, 4, 8), (277, 3, 1),
                   (278, 4, 8), (279, 4, 8)]
        tiff = b"II*\0" + (16).to_bytes(4, "little") + bytes(8) + len(entries).to_bytes(2, "little")
        for tag, kind, value in entries:
            tiff += tag.to_bytes(2, "little") + kind.to_bytes(2, "little") + (1).to_bytes(4, "little")
            tiff += value.to_bytes(4, "little")
        (self.folder / "photos").mkdir()
        (self.folder / "photos/a.tiff").write_bytes(tiff + bytes(4))
        said = self.code("""
import leat
from leat import fn
with leat.connect() as service:
    pipeline = leat.pipeline(lambda: fn.resize(fn.decode(fn.readers.image_folder("photos")[0]), size=8))
    job = service.job("a", pipeline, batch=1)
    try:
        list(job.batches(epochs=1))
    except leat.Error as error:
        print(error)
""")
        self.assertIn("34661", said)


class SourceDistributionTest(cluster.ClusterTest):
    def test_it_holds_all_that_the_wheel_is_built_of(self):
        backend = ROOT / "python_client/backend"
        packed = run(sys.executable, "-B", "-c", "import leat_backend; print(leat_backend.build_sdist('.'))",
                     cwd=self.folder, env={**os.environ, "PYTHONPATH": str(backend)})
        self.assertEqual(packed.returncode, 0, packed.stderr)
        with tarfile.open(self.folder / packed.stdout.strip()) as tar:
            tar.extractall(self.folder)
        (top,) = self.folder.glob("leat_data-*/")
        configured = run("cmake", "--preset", "release", "-DLEAT_GPU=OFF", "-DLEAT_PARQUET=OFF", cwd=top)
        self.assertEqual(configured.returncode, 0, configured.stdout + configured.stderr)
        planned = run("ninja", "-C", top / "build/release", "-n", "leat_wheel")
        self.assertEqual(planned.returncode, 0, planned.stdout + planned.stderr)


if __name__ == "__main__":
    unittest.main()
