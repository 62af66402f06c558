# SPDX-License-Identifier: Apache-2.0
"""deploy/bundle: the tar runs in a bare Debian 12 (debootstrap --variant=minbase), where nothing is installed.

The chroot is made once and kept in the build tree (LEAT_BUILD_DIR). It needs root and a Debian mirror
(LEAT_DEBIAN_MIRROR); without them those tests are skipped and say so.
"""

import json
import os
import pathlib
import re
import select
import shutil
import stat
import subprocess
import sys
import tarfile
import tempfile
import unittest
import urllib.request
import zipfile

import bundle_made
import cluster

ROOT = pathlib.Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "deploy"), str(ROOT / "python_client/backend")]
import bundle_pack  # noqa: E402

MIRROR = os.environ.get("LEAT_DEBIAN_MIRROR", "http://deb.debian.org/debian")
GLIBC = re.compile(r"^(ld-linux|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util)\.so)")


def run(*argv, **options):
    return subprocess.run([str(word) for word in argv], capture_output=True, text=True, timeout=600, **options)


def bare_debian(folder):
    """Returns the folder of a bare Debian 12, made on first use. Skips the test if it cannot be made."""
    if os.geteuid() != 0:
        raise unittest.SkipTest("a chroot needs root")
    if (folder / "etc/debian_version").exists():
        return folder
    if not shutil.which("debootstrap"):
        raise unittest.SkipTest("no debootstrap here (deploy/packages/test-tools.txt)")
    with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
        try:
            os.mknod(f"{scratch}/null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
        except PermissionError:
            raise unittest.SkipTest("no device nodes can be made here: a container without CAP_MKNOD") from None
    try:
        urllib.request.urlopen(f"{MIRROR}/dists/bookworm/Release", timeout=30).close()
    except OSError as error:
        raise unittest.SkipTest(f"no Debian mirror at {MIRROR}: {error}") from None
    partial = folder.with_name(f"{folder.name}.partial")
    shutil.rmtree(partial, ignore_errors=True)
    with tempfile.TemporaryDirectory() as scratch:
        # debootstrap makes a root without a working linker if the path has a space.
        link = pathlib.Path(scratch) / "parent"
        link.symlink_to(folder.parent)
        made = run("debootstrap", "--variant=minbase", "bookworm", link / partial.name, MIRROR)
    if made.returncode != 0:
        raise AssertionError(f"debootstrap: exit code {made.returncode}\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
    shutil.rmtree(partial / "var/cache/apt", ignore_errors=True)
    shutil.rmtree(folder, ignore_errors=True)
    partial.rename(folder)
    return folder


class BundleTest(cluster.ClusterTest):
    """`cls.tar`: the bundle."""

    @classmethod
    def setUpClass(cls):
        cls.tar = bundle_made.bundle()

    @classmethod
    def unpack(cls, folder):
        """Unpacks the bundle into `folder`; returns its top folder."""
        folder.mkdir(parents=True, exist_ok=True)
        done = run("tar", "-xf", cls.tar, "-C", folder)
        assert done.returncode == 0, done.stderr
        (top,) = folder.iterdir()
        return top


class BuiltTest(unittest.TestCase):
    def test_a_program_is_found_where_cmake_made_it(self):
        """It is not taken from a bundle that another test has unpacked in the tree."""
        with tempfile.TemporaryDirectory() as tree:
            for folder in ("a-debian/srv/checks", "tests/support"):
                program = pathlib.Path(tree, folder, "leat_oracle")
                program.parent.mkdir(parents=True)
                program.touch(0o755)
            for folder in ("tests", "tests/support"):
                pathlib.Path(tree, folder, "cmake_install.cmake").touch()
            found = bundle_pack.built(pathlib.Path(tree), "leat_oracle")
            self.assertEqual(found, pathlib.Path(tree, "tests/support/leat_oracle"))
            self.assertIsNone(bundle_pack.built(pathlib.Path(tree), "leat_gpu_check"))


class BareDebianTest(BundleTest):
    """`bundle` is the unpacked folder as seen in the chroot: a path unknown to the build, with a blank in it."""

    @classmethod
    def setUpClass(cls):
        cls.debian = bare_debian(bundle_made.build_dir() / "bookworm-minbase")
        mounted = run("unshare", "--mount", "mount", "-t", "proc", "proc", cls.debian / "proc")
        if mounted.returncode != 0:
            raise unittest.SkipTest(f"/proc cannot be mounted in a chroot here: {mounted.stderr.strip()}")
        super().setUpClass()
        shutil.rmtree(cls.debian / "srv", ignore_errors=True)
        cls.addClassCleanup(shutil.rmtree, cls.debian / "srv", ignore_errors=True)
        top = cls.unpack(cls.debian / "srv/any folder")
        cls.bundle = pathlib.Path("/", top.relative_to(cls.debian))
        made = cls.inside("checks/leat_make_photos", "/srv/photos", "48", "--max-side", "160")
        assert made.returncode == 0, made.stderr

    @classmethod
    def argv(cls, program, *words):
        """Returns the command for a program of the bundle, or of the chroot (an absolute path), with an empty
        environment.

        /proc is mounted for this process and its children only: the loader resolves $ORIGIN by it.
        """
        return ["unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"',
                str(cls.debian), "/usr/bin/env", "-i", "PATH=/usr/bin:/bin", str(cls.bundle / program),
                *map(str, words)]

    @classmethod
    def inside(cls, program, *words):
        return run(*cls.argv(program, *words))

    def inside_ok(self, program, *words):
        done = self.inside(program, *words)
        self.assertEqual(done.returncode, 0, f"{program}: {done.stdout}{done.stderr}")
        return done.stdout

    def left_running(self):
        """Returns processes that run in the chroot and do not end soon: daemons may outlive their client by a
        moment."""
        left = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                if not entry.name.isdigit() or os.readlink(entry / "root") != str(self.debian.resolve()):
                    continue
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                process = os.pidfd_open(int(entry.name))
            except OSError:
                continue  # it has just ended, or is a kernel's thread
            ended, _, _ = select.select([process], [], [], cluster.PATIENCE_S)
            os.close(process)
            if not ended:
                left.append(command)
        return left

    def job(self, path):
        spec = {"name": "bundle", "pipeline": cluster.train_graph(path, side=64), "seed": 7, "batch": 16,
                "last_batch": "LAST_BATCH_FILL"}
        file = self.debian / "srv/job.json"
        file.write_text(json.dumps(spec))
        return "/srv/job.json"

    def expected(self):
        """Returns the hashes of a job over the chroot's photos, computed on this machine by the tree's own program."""
        spec = self.spec(cluster.train_graph(self.debian / "srv/photos", side=64), batch=16)
        done = run(cluster.program("ORACLE"), spec, 2)
        self.assertEqual(done.returncode, 0, done.stderr)
        return [tuple(line.split()) for line in done.stdout.splitlines()]

    def hashes(self, output):
        lines = [line.split() for line in output.splitlines()]
        self.assertEqual(lines[-1][0], "end", output)
        return [(words[1], words[2], words[4]) for words in lines if words[0] == "step"]

    def test_of_the_machine_only_glibc_is_used(self):
        elf = [p for folder in ("bin", "checks", "lib") for p in (self.debian / self.bundle.relative_to("/") / folder)
               .iterdir()]
        self.assertGreater(len(elf), 20)
        for file in elf:
            listed = self.inside_ok("/lib64/ld-linux-x86-64.so.2", "--list", pathlib.Path("/") /
                                    file.relative_to(self.debian))
            foreign = []
            for line in listed.splitlines():
                name, arrow, path = line.strip().partition(" => ")
                if arrow and not GLIBC.match(name) and not os.path.normpath(path).startswith(str(self.bundle / "lib")):
                    foreign.append(line.strip())
            self.assertEqual(foreign, [], file.name)

    def test_every_program_says_its_version(self):
        for program in ("leat", "leat-coordinator", "leat-worker"):
            self.assertRegex(self.inside_ok(f"bin/{program}", "--version"), r"\b\d+\.\d+\.\d+\b")

    def test_a_private_service_gives_the_bytes_that_the_oracle_computed_here_and_stops(self):
        output = self.inside_ok("checks/e2e_consumer", "--daemon-dir", self.bundle / "bin", "--spec",
                                self.job("/srv/photos"), "--epochs", 2)
        self.assertEqual(self.hashes(output), self.expected())
        self.assertEqual(self.left_running(), [])

    def test_the_oracle_of_the_bundle_agrees_with_the_one_here(self):
        output = self.inside_ok("checks/leat_oracle", self.job("/srv/photos"), 2)
        self.assertEqual([tuple(line.split()) for line in output.splitlines()], self.expected())

    def test_a_program_in_c_over_the_library_finds_the_daemons_by_itself(self):
        output = self.inside_ok("checks/leat_example_batches", "/srv/photos")
        self.assertIn("image uint8 (8, 64, 64, 3)", output)
        self.assertEqual(self.left_running(), [])

    def test_coordinator_worker_and_cli_work_together_and_stop(self):
        log = self.folder / "coordinator.log"
        coordinator = self._keep(cluster.Daemon("coordinator", self.argv(
            "bin/leat-coordinator", "--listen", "127.0.0.1:0", "--state", "/srv/state"), log))
        worker = self._keep(cluster.Daemon("worker", self.argv(
            "bin/leat-worker", "--coordinator", coordinator.address, "--name", "mill", "--threads", 1),
            self.folder / "worker.log"))
        output = self.inside_ok("checks/e2e_consumer", "--address", coordinator.address, "--spec",
                                self.job("/srv/photos"), "--epochs", 2)
        self.assertEqual(self.hashes(output), self.expected())
        listed = self.inside("bin/leat", "--coordinator", coordinator.address, "get", "workers", "-o", "json")
        self.assertEqual(listed.returncode, 0, listed.stderr)
        self.assertIn("mill", listed.stdout)
        self.assertEqual((worker.stop(), coordinator.stop()), (0, 0))
        self.assertEqual(self.left_running(), [])

    def test_parquet_is_read_by_what_the_bundle_brings(self):
        if "LEAT_PARQUET_LIBRARY" not in os.environ:
            self.skipTest("built without Parquet (LEAT_PARQUET)")
        shutil.copy(ROOT / "tests/golden/parquet/flat.parquet", self.debian / "srv")
        reader = cluster.node("readers.parquet", paths={"strings_value": {"values": ["/srv/flat.parquet"]}},
                              columns={"strings_value": {"values": ["label"]}},
                              types={"strings_value": {"values": ["int64"]}})
        spec = {"name": "parquet", "seed": 1, "batch": 5, "last_batch": "LAST_BATCH_FILL",
                "pipeline": {"nodes": [reader], "outputs": [{"name": "label", "ref": {"node": 0}}]}}
        (self.debian / "srv/parquet.json").write_text(json.dumps(spec))
        self.assertEqual(len(self.inside_ok("checks/leat_oracle", "/srv/parquet.json", 1).splitlines()), 2)


class ContentsTest(BundleTest):
    def test_the_manifest_holds_and_every_library_has_a_licence(self):
        top = self.unpack(self.folder / "unpacked")
        checked = run("sha256sum", "--quiet", "-c", "MANIFEST", cwd=top)
        self.assertEqual(checked.returncode, 0, checked.stdout + checked.stderr)
        licences = {p.name for p in (top / "share/licenses").iterdir()}
        self.assertLessEqual({"leat", "libgrpc29", "libprotobuf32", "libssl3", "libjpeg62-turbo", "libstdc++6"},
                             licences)
        self.assertIn("Apache-2.0", os.listdir(top / "share/licenses/common-licenses"))
        unwanted = re.compile(r"lib(jbig|ldap|lber|rtmp|ssh2|gssapi|krb5|gnutls|idn2|unistring|nettle|gmp)")
        self.assertEqual([name for name in [*licences, *os.listdir(top / "lib")] if unwanted.search(name)], [])
        self.assertRegex((top / "README.txt").read_text(), r"with glibc 2\.\d+ or later")

    def test_its_image_holds_all_that_the_programs_need(self):
        if os.geteuid() != 0:
            self.skipTest("a chroot needs root")
        image, root = self.folder / "image.tar", self.folder / "root"
        packed = run(ROOT / "deploy/image/pack", self.tar, "-o", image)
        self.assertEqual(packed.returncode, 0, packed.stderr)
        with tarfile.open(image) as archive:
            layer = max(archive, key=lambda member: member.size)
            with tarfile.open(fileobj=archive.extractfile(layer), mode="r:gz") as files:
                files.extractall(root)
        for name in ("leat", "leat-coordinator", "leat-worker"):
            done = run("unshare", "--mount", "sh", "-c", 'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', root,
                       f"/opt/leat/bin/{name}", "--version")
            self.assertEqual(done.returncode, 0, done.stderr)

    def test_packing_again_gives_the_same_bytes(self):
        again = bundle_made.pack(self.folder / "again.tar")
        self.assertEqual(again.read_bytes(), self.tar.read_bytes())

    def test_a_bundle_that_is_too_large_is_refused_and_not_left_behind(self):
        large = self.folder / "photos"
        large.mkdir()
        for number in range(2):
            (large / f"{number}.jpg").write_bytes(os.urandom(35 << 20))
        with self.assertRaisesRegex(bundle_pack.BuildError, "large.tar.gz: would be .* want under 47,185,920"):
            bundle_pack.write_tar(large, self.folder / "large.tar.gz", mtime=0)
        self.assertEqual(list(self.folder.glob("large*")), [])

    def test_the_photos_of_a_bundle_leave_room_for_the_rest(self):
        """NVIDIA's library, programs and wheel take 23 MiB, the Parquet reader 14 more."""
        for parquet, rest in ((True, 38), (False, 24)):
            self.assertLess(bundle_pack.DATA_MIB[parquet] + rest, bundle_pack.MAX_BYTES >> 20)
        listed = run("git", "-C", ROOT, "ls-files", "-z")
        if listed.returncode != 0:
            self.skipTest("this is no checkout")
        tracked = sum((ROOT / name).stat().st_size for name in listed.stdout.split("\0") if (ROOT / name).is_file())
        self.assertLess(bundle_pack.MAX_BYTES + tracked, 64 << 20, "a checkout and a bundle are carried together")

    def test_a_sample_of_the_photos_is_bounded_and_keeps_the_classes(self):
        for number in range(40):
            folder = self.folder / "photos" / f"class{number % 4}"
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{number:02}.JPG").write_bytes(os.urandom(100 << 10))
        packer = bundle_pack.Packer(bundle_made.build_dir(), self.folder / "stage")
        packer.pack_photos(self.folder / "photos", max_bytes=2 << 20)
        taken = list((packer.root / "photos").rglob("*.JPG"))
        self.assertIn(len(taken), (19, 20))
        self.assertEqual({photo.parent.name for photo in taken}, {f"class{c}" for c in range(4)})

    def test_wrong_use_is_said_in_a_line(self):
        for words in (("--out-of-this-world",),
                      ("-o", self.folder / "leat.zip", "--build-dir", bundle_made.build_dir())):
            packed = run(ROOT / "deploy/bundle", *words)
            self.assertNotEqual(packed.returncode, 0)
            self.assertIn("bundle: ", packed.stderr)

    def test_the_wheel_inside_serves_a_script(self):
        if run(sys.executable, "-c", "import numpy").returncode != 0:
            self.skipTest(f"{sys.executable} has no NumPy")
        top = self.unpack(self.folder / "unpacked")
        (wheel,) = (top / "wheel").iterdir()
        site = self.folder / "site"
        run(sys.executable, "-m", "zipfile", "-e", wheel, site)
        for program in (site / "leat/_native").iterdir():
            if program.is_file():
                program.chmod(0o755)
        with zipfile.ZipFile(wheel) as archive:
            self.assertIsNone(archive.testzip())
        photos = self.folder / "photos"
        self.assertEqual(run(top / "checks/leat_make_photos", photos, 20, "--max-side", 96).returncode, 0)
        script = ("import leat\nfrom leat import fn\n"
                  "@leat.pipeline\ndef p():\n"
                  f"    e, label = fn.readers.image_folder({str(photos)!r})\n"
                  "    return {'image': fn.resize(fn.decode(e), size=(32, 32)), 'label': label}\n"
                  "with leat.connect() as service:\n"
                  "    job = service.job('wheel', p, batch=10, seed=1)\n"
                  "    print([b['image'].shape for b in job.batches(epochs=1)])\n")
        done = run(sys.executable, "-c", script, env={"PYTHONPATH": str(site), "PATH": "/usr/bin:/bin"})
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout.strip(), "[(10, 32, 32, 3), (10, 32, 32, 3)]")


if __name__ == "__main__":
    unittest.main()
