# SPDX-License-Identifier: Apache-2.0
"""deploy/debian/build: the packages are installed, used as documented, upgraded and purged in a bare Debian 12.

The chroot is a copy of bundle_test's with the packages that ours depend on, and is kept in the build tree. It needs
root, a Debian mirror (LEAT_DEBIAN_MIRROR) and debhelper; without them these tests are skipped with that reason.
"""

import hashlib
import json
import pathlib
import re
import shutil
import sys
import tempfile
import unittest

import cluster
import empty_root
from bundle_made import build_dir
from bundle_test import bare_debian, run

ROOT = pathlib.Path(__file__).resolve().parents[2]
OURS = ("leat", "leat-coordinator", "leat-worker", "libleat-dev", "libleat0", "python3-leat")
UNITS = ("leat-coordinator.service", "leat-worker.service", "leat-worker@.service")
TOOLS = ("dpkg-buildpackage", "dh", "dh_python3", "help2man", "lintian")
MAINTAINER = "Bean & Sons"

# Run in the chroot, with a loopback of its own: does what systemd does with the units, and trains.
USE = """
import hashlib, os, signal, socket, subprocess
import leat
from leat import fn

@leat.pipeline
def train():
    encoded, label = fn.readers.image_folder("/srv/photos")
    image = fn.random_resized_crop(fn.decode(encoded), size=(64, 64))
    return {"image": fn.flip(image, horizontal=fn.coin_flip(0.5)), "label": label}

def epoch(service):
    job = service.job("train", train, batch=16, seed=7, last_batch="fill")
    for batch in job.batches(epochs=1):
        digest = hashlib.sha256()
        for name in ("image", "label"):
            digest.update(name.encode() + bytes(1) + batch[name].tobytes())
        print(digest.hexdigest())

manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
manager.bind("/tmp/notify")
manager.settimeout(60)
daemons = []
for name, word in (("coordinator", "READY=1"), ("worker", "known to")):
    daemons.append(subprocess.Popen([f"/usr/bin/leat-{name}", "--config", f"/etc/leat/{name}.yaml"],
                                    env={"NOTIFY_SOCKET": "/tmp/notify"}))
    while word not in manager.recv(4096).decode():
        pass
with leat.connect("127.0.0.1:7411") as service:
    epoch(service)
for daemon in reversed(daemons):
    daemon.send_signal(signal.SIGTERM)
    assert daemon.wait(60) == 0, daemon.args
assert os.listdir("/var/lib/leat-coordinator"), "the state is elsewhere"
with leat.connect() as service:  # a private one
    epoch(service)
"""


class BillTest(unittest.TestCase):
    """deploy/sbom.py."""

    def test_the_bill_names_artefacts_and_every_library_with_its_version(self):
        folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-bill-"))
        self.addCleanup(shutil.rmtree, folder, ignore_errors=True)
        (folder / "leat.tar").write_text("x")
        bills = []
        for name in ("one.json", "two.json"):
            done = run(sys.executable, "-B", ROOT / "deploy/sbom.py", "--build", build_dir(), "-o", folder / name,
                       folder / "leat.tar")
            self.assertEqual(done.returncode, 0, done.stderr)
            bills.append((folder / name).read_bytes())
        self.assertEqual(*bills)
        bill = json.loads(bills[0])
        self.assertEqual((bill["bomFormat"], bill["specVersion"]), ("CycloneDX", "1.5"))
        parts = {one["name"]: one for one in bill["components"]}
        self.assertEqual(parts["leat.tar"]["hashes"][0]["content"], hashlib.sha256(b"x").hexdigest())
        for name, use in (("libgrpc29", "loaded"), ("libjpeg62-turbo", "loaded"), ("libcli11-dev", "compiled in")):
            installed = run("dpkg-query", "-W", "-f", "${Version}", name).stdout
            self.assertEqual(parts[name]["version"], installed)
            self.assertIn(f"pkg:deb/debian/{name}@", parts[name]["purl"])
            self.assertEqual(parts[name]["properties"][0]["value"], use)
        self.assertTrue(parts["libjpeg62-turbo"]["licenses"])
        references = [one["bom-ref"] for one in bill["components"]]
        self.assertEqual(len(references), len(set(references)))
        self.assertLessEqual(set(bill["dependencies"][0]["dependsOn"]), set(references))


class PackagesTest(cluster.ClusterTest):
    """`cls.debs`: revision -> the folder of its packages. `cls.debian`: the chroot, with none of ours installed."""

    @classmethod
    def setUpClass(cls):
        for tool in TOOLS:
            if not shutil.which(tool):
                raise unittest.SkipTest(f"no {tool} here (deploy/packages/debian.txt)")
        bare = bare_debian(build_dir() / "bookworm-minbase")
        cls.scratch = pathlib.Path(tempfile.mkdtemp(prefix="leat-packages-"))
        cls.addClassCleanup(shutil.rmtree, cls.scratch, ignore_errors=True)
        cls.debs = {1: cls.scratch / "1", 2: cls.scratch / "2"}
        built = run("env", f"DEBFULLNAME={MAINTAINER}", "DEBEMAIL=us@example.com", ROOT / "deploy/debian/build",
                    "--build-dir", build_dir(), "--fast", "-o", cls.debs[1])
        assert built.returncode == 0, built.stdout + built.stderr
        cls.make_newer()
        cls.debian = cls.chroot(bare, build_dir() / "bookworm-packages")

    @classmethod
    def make_newer(cls):
        """Makes revision 2: the same packages with another version, and another comment in the configuration files."""
        cls.debs[2].mkdir()
        for deb in cls.debs[1].glob("*.deb"):
            root = cls.scratch / deb.stem
            assert run("dpkg-deb", "-R", deb, root).returncode == 0
            control = root / "DEBIAN/control"
            old = re.search(r"(?m)^Version: (.*)-1$", control.read_text())[1]
            control.write_text(control.read_text().replace(f"{old}-1", f"{old}-2"))
            for file in root.glob("etc/leat/*.yaml"):
                file.write_text(f"# A newer file.\n{file.read_text()}")
            packed = run("dpkg-deb", "--root-owner-group", "-Znone", "-b", root, cls.debs[2])
            assert packed.returncode == 0, packed.stderr
            shutil.rmtree(root)

    @classmethod
    def chroot(cls, bare, folder):
        """Makes a copy of `bare` with our packages' dependencies."""
        needs = set()
        for deb in cls.debs[1].glob("*.deb"):
            listed = run("dpkg-deb", "-f", deb, "Depends").stdout.replace("\n", " ")
            for one in listed.split(","):
                name = one.split("|")[0].split("(")[0].strip()
                if name and name not in OURS:
                    needs.add(name)
        stamp = " ".join(sorted(needs))
        if not (folder / "srv/needs").exists() or (folder / "srv/needs").read_text() != stamp:
            shutil.rmtree(folder, ignore_errors=True)
            assert run("cp", "-a", bare, folder).returncode == 0
            shutil.copy("/etc/resolv.conf", folder / "etc/resolv.conf")
            for words in (("update",), ("install", "-y", "--no-install-recommends", *sorted(needs))):
                done = cls.inside_of(folder, "apt-get", "-q", "-o", "Acquire::Retries=3", *words)
                assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
            (folder / "srv/needs").write_text(stamp)
        cls.inside_of(folder, "dpkg", "--purge", *OURS)  # left by an interrupted test
        return folder

    @staticmethod
    def inside_of(folder, *words):
        """Runs a program in a chroot, with /proc; the network is the machine's."""
        return run("unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-c",
                   'mount -t proc proc "$0/proc" && exec chroot "$0" "$@"', folder, "/usr/bin/env", "-i",
                   "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", "HOME=/root", "DEBIAN_FRONTEND=noninteractive",
                   *words)

    def inside(self, *words, code=0):
        done = self.inside_of(self.debian, *words)
        self.assertEqual(done.returncode, code, f"{words}: {done.stdout[-3000:]}{done.stderr[-3000:]}")
        return done.stdout + done.stderr

    def install(self, revision):
        shutil.copytree(self.debs[revision], self.debian / "srv/debs", dirs_exist_ok=True)
        self.addCleanup(shutil.rmtree, self.debian / "srv/debs", ignore_errors=True)
        debs = sorted(f"/srv/debs/{deb.name}" for deb in self.debs[revision].glob("*.deb"))
        self.assertEqual(len(debs), len(OURS))
        # By dpkg alone: their Depends must list everything that they need.
        self.inside("dpkg", "--install", "--force-confold", *debs)

    def check_units(self):
        units = [f"/lib/systemd/system/{unit}" for unit in UNITS]
        self.assertEqual(self.inside("systemd-analyze", "verify", "--man=no", *units), "")
        for unit in units:
            told = self.inside("systemd-analyze", "security", "--offline=yes", "--threshold=20", "--no-pager", unit)
            self.assertIn("Overall exposure level", told)
        # Installing a package starts no service.
        self.assertEqual(list((self.debian / "etc/systemd/system").rglob("leat*")), [])

    def check_use(self):
        """Daemons with their default configuration, a training, a private service: the oracle's bytes."""
        photos = self.debian / "srv/photos"
        made = run(cluster.program("MAKE_PHOTOS"), photos, 48, "--max-side", 160)
        self.assertEqual(made.returncode, 0, made.stderr)
        for folder in ("src", "var/lib/leat-coordinator"):  # systemd would make the second one
            (self.debian / folder).mkdir(exist_ok=True)
        (self.debian / "src/use.py").write_text(USE)
        self.addCleanup(shutil.rmtree, self.debian / "src", ignore_errors=True)
        self.addCleanup(shutil.rmtree, photos, ignore_errors=True)
        done = run(*empty_root.EmptyRoot._unshare(), sys.executable, "-B", empty_root.__file__, self.debian,
                   "/usr/bin/python3", "-B", "/src/use.py")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr[-3000:])
        (self.debian / "tmp/notify").unlink()
        spec = self.spec(cluster.train_graph(photos, side=64), batch=16)
        expected = [sha for _, _, sha in self.oracle_steps(spec, 1)]
        self.assertEqual(done.stdout.split(), 2 * expected)

    def test_install_use_upgrade_purge(self):
        self.install(1)
        for program in ("leat", "leat-coordinator", "leat-worker"):
            self.assertRegex(self.inside(program, "--version"), r"\b\d+\.\d+\.\d+\b")
        for page, package in (("leat", "leat"), ("leat-top", "leat"), ("leat-worker", "leat-worker")):
            self.assertIn(f"/usr/share/man/man1/{page}.1.gz", self.inside("dpkg-query", "-L", package))
        for name in ("coordinator", "worker"):
            self.assertIn("good", self.inside(f"leat-{name}", "--check-config", "--config", f"/etc/leat/{name}.yaml"))
        self.assertRegex((self.debian / "etc/group").read_text(), r"(?m)^leat:")
        self.check_units()
        self.check_use()
        # An upgrade keeps the operator's changes, and the state.
        with open(self.debian / "etc/leat/worker.yaml", "a") as file:
            file.write("\nthreads: 2\n")
        self.install(2)
        self.assertIn("-2", self.inside("dpkg-query", "-W", "-f", "${Version}", "leat-worker"))
        self.assertTrue((self.debian / "etc/leat/worker.yaml").read_text().endswith("threads: 2\n"))
        self.assertTrue((self.debian / "etc/leat/coordinator.yaml").read_text().startswith("# A newer file.\n"))
        self.inside("leat-worker", "--check-config", "--config", "/etc/leat/worker.yaml")
        # A removal keeps both, a purge neither.
        self.inside("dpkg", "--remove", *OURS)
        self.assertTrue((self.debian / "etc/leat/worker.yaml").exists())
        self.assertTrue((self.debian / "var/lib/leat-coordinator").exists())
        self.inside("dpkg", "--purge", *OURS)
        left = [str(path) for top in ("etc", "usr", "var/lib", "var/cache")
                for path in (self.debian / top).rglob("*leat*") if "apt" not in path.parts]
        self.assertEqual(left, [])

    def test_the_maintainer_is_who_the_environment_says(self):
        for deb in self.debs[1].glob("*.deb"):
            self.assertEqual(run("dpkg-deb", "-f", deb, "Maintainer").stdout, f"{MAINTAINER} <us@example.com>\n")

    def test_lintian_finds_no_error(self):
        (changes,) = self.debs[1].glob("*.changes")
        told = run("lintian", "--allow-root", "--fail-on", "error", "--tag-display-limit", "0", changes)
        self.assertEqual(told.returncode, 0, told.stdout + told.stderr)

    def test_wrong_use_is_said_in_a_line(self):
        for words, said in ((("--revision", "one"), "--revision one"), (("--build-dir", "/etc"), "no build tree"),
                            (("--nonsense",), "--nonsense")):
            done = run(ROOT / "deploy/debian/build", *words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(said, done.stderr)


if __name__ == "__main__":
    unittest.main()
