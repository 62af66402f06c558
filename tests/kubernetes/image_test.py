# SPDX-License-Identifier: Apache-2.0
"""deploy/image: the result of pack for a bundle, and the Containerfile."""

import gzip
import hashlib
import io
import json
import os
import pathlib
import re
import shutil
import subprocess
import tarfile
import tempfile
import unittest

ROOT = pathlib.Path(__file__).resolve().parents[2]
PACK = ROOT / "deploy/image/pack"
FILE = ROOT / "deploy/image/Containerfile"
PROGRAMS = ("leat", "leat-coordinator", "leat-worker")
# Resolves a name, so that glibc's resolver has to be there.
SOURCE = r"""
#include <netdb.h>
#include <pwd.h>
#include <stdio.h>
#include <unistd.h>
int main(int argc, char** argv) {
  struct addrinfo* found = NULL;
  struct passwd* user = getpwuid(65532);
  int error = getaddrinfo("127.0.0.1", "7411", NULL, &found);
  printf("%s %s %d %d\n", argv[argc - 1], user ? user->pw_name : "nobody", error, access("/bin/sh", F_OK));
  return 0;
}
"""


def machine():
    return os.uname().machine


class Image(unittest.TestCase):
    def setUp(self):
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="leat-image-"))
        self.addCleanup(shutil.rmtree, self.folder, ignore_errors=True)

    def bundle(self, top=None, programs=PROGRAMS, more=()):
        """Makes a bundle of one small program under several names, which needs only glibc."""
        (self.folder / "main.c").write_text(SOURCE)
        if not (self.folder / "main").exists():
            subprocess.run(["cc", "-o", self.folder / "main", self.folder / "main.c"], check=True)
        files = {f"bin/{name}": (self.folder / "main").read_bytes() for name in programs}
        files |= {"bin/leat-private": b"x", "lib/leat-x.so": b"library", "share/licenses/leat/copyright": b"licence",
                  "checks/e2e_consumer": b"check", "wheel/leat.whl": b"wheel", **dict(more)}
        path = self.folder / "leat.tar.gz"
        with tarfile.open(path, "w:gz") as archive:
            for name, data in files.items():
                info = tarfile.TarInfo(f"{top or f'leat-1.2.3-linux-{machine()}'}/{name}")
                info.size, info.mode = len(data), 0o755 if name.startswith("bin") else 0o644
                archive.addfile(info, io.BytesIO(data))
        return path

    def pack(self, *flags, bundle=None, code=0):
        out = self.folder / "image.tar"
        done = subprocess.run([PACK, bundle or self.bundle(), "-o", out, *flags], capture_output=True, text=True,
                              check=False)
        self.assertEqual(done.returncode, code, done.stderr)
        return out if code == 0 else done.stderr

    def files(self, image):
        with tarfile.open(image) as archive:
            return {member.name: archive.extractfile(member).read() for member in archive if member.isfile()}

    def test_it_is_an_image_by_the_rules_of_oci(self):
        files = self.files(self.pack())
        self.assertEqual(json.loads(files["oci-layout"])["imageLayoutVersion"], "1.0.0")
        for name, data in files.items():
            if name.startswith("blobs/"):
                self.assertEqual(name, f"blobs/sha256/{hashlib.sha256(data).hexdigest()}")

        def follow(part):
            data = files["blobs/sha256/" + part["digest"].removeprefix("sha256:")]
            self.assertEqual(part["size"], len(data))
            return data
        (entry,) = json.loads(files["index.json"])["manifests"]
        self.assertEqual(entry["annotations"]["io.containerd.image.name"], "docker.io/library/leat:1.2.3")
        manifest = json.loads(follow(entry))
        config = json.loads(follow(manifest["config"]))
        (layer,) = manifest["layers"]
        with tarfile.open(fileobj=io.BytesIO(follow(layer)), mode="r:gz") as archive:
            members = {member.name: member for member in archive}
        self.assertEqual(config["rootfs"]["diff_ids"],
                         ["sha256:" + hashlib.sha256(gzip.decompress(follow(layer))).hexdigest()])
        self.assertEqual((config["os"], config["config"]["User"]), ("linux", "65532:65532"))
        self.assertEqual(json.loads(files["manifest.json"])[0]["RepoTags"], ["leat:1.2.3"])
        for name, member in members.items():
            self.assertEqual((member.mtime, member.uid if "leat" not in name else 0), (0, 0), name)
            self.assertFalse(member.mode & 0o6000, f"{name} changes its user")
        self.assertLessEqual({f"opt/leat/bin/{name}" for name in PROGRAMS}, set(members))
        self.assertFalse([name for name in members if re.search(r"private|checks|wheel|bin/(sh|bash)$", name)])
        self.assertEqual(members["var/cache/leat"].uid, 65532)

    def test_its_programs_run_in_it_and_nothing_else_is_there(self):
        image = self.pack()
        root = self.folder / "root"
        for data in self.files(image).values():
            if data[:2] == b"\x1f\x8b":
                with tarfile.open(fileobj=io.BytesIO(data), mode="r:gz") as archive:
                    for member in archive:
                        member.uid = member.gid = os.getuid()
                        archive.extract(member, root)
        before = ["chroot"] if os.getuid() == 0 else ["unshare", "-r", "chroot"]
        done = subprocess.run([*before, root, "/opt/leat/bin/leat-worker", "here"], capture_output=True, text=True,
                              check=False)
        if done.returncode != 0 and os.getuid() != 0:
            self.skipTest(f"no user namespaces here: {done.stderr}")
        self.assertEqual(done.stdout, "here leat 0 -1\n", done.stderr)

    def test_the_same_bundle_gives_the_same_bytes(self):
        bundle = self.bundle()
        first = self.pack(bundle=bundle).read_bytes()
        self.assertEqual(first, self.pack(bundle=bundle).read_bytes())
        named = self.files(self.pack("--name", "registry.example/leat:0.2.0", bundle=bundle))
        self.assertIn(b"registry.example/leat:0.2.0", named["index.json"])

    def test_what_is_no_bundle_is_refused(self):
        self.assertIn("bin/ lacks leat-worker", self.pack(bundle=self.bundle(programs=PROGRAMS[:2]), code=1))
        self.assertIn("want one folder", self.pack(bundle=self.bundle(top="other"), code=1))
        self.assertIn("want one folder", self.pack(bundle=self.bundle(more=[("../../x", b"")]), code=1))
        self.assertIn("machine m68k", self.pack(bundle=self.bundle(top="leat-1-linux-m68k"), code=1))
        (self.folder / "none").write_text("x")
        self.assertIn("deploy/bundle", self.pack(bundle=self.folder / "none", code=1))
        self.pack("--name", "no tag", code=2)
        self.assertFalse((self.folder / "image.tar").exists())


def instructions(text):
    """Returns pairs (word, rest) of a Containerfile."""
    lines = [line for line in text.splitlines() if line.strip() and not line.startswith("#")]
    joined = re.sub(r"\\\n\s*", "", "\n".join(lines))
    return [tuple(line.split(None, 1)) for line in joined.splitlines()]


def findings(text):
    """Returns what is wrong with a Containerfile."""
    found, stages = [], []
    for word, rest in instructions(text):
        if word not in {"FROM", "RUN", "COPY", "WORKDIR", "ENV", "USER", "LABEL", "STOPSIGNAL", "CMD"}:
            found.append(f"{word}: not used here")
        if word == "FROM":
            stages.append([])
            tag = rest.split(" AS ")[0].rpartition("/")[2].partition(":")[2]
            if tag in ("", "latest") or not rest.startswith("docker.io/"):
                found.append(f"FROM {rest}: want a registry and a version")
        stages[-1].append((word, rest))
        if word == "RUN" and "apt-get install" in rest:
            if "--no-install-recommends" not in rest or "rm -rf /var/lib/apt/lists/*" not in rest:
                found.append(f"RUN {rest}: want no recommended packages, and no lists left")
        if word == "CMD" and not rest.startswith("["):
            found.append(f"CMD {rest}: want its exec form")
        if word == "COPY" and len(stages) > 1 and not rest.startswith("--from="):
            found.append(f"COPY {rest}: the image holds what was built, and no sources")
    last = dict(stages[-1])
    if last.get("USER") != "65532:65532":
        found.append("want USER 65532:65532 in the last stage")
    if last.get("STOPSIGNAL") != "SIGTERM":
        found.append("want STOPSIGNAL SIGTERM")
    return found


class Containerfile(unittest.TestCase):
    def test_it_keeps_the_rules(self):
        self.assertEqual(findings(FILE.read_text()), [])
        text = FILE.read_text()
        for old, new in (("debian:12-slim", "debian"), ("USER 65532:65532", "USER root"), ("STOPSIGNAL SIGTERM\n", ""),
                         ('["leat", "--help"]', "leat --help"), ("--no-install-recommends", ""),
                         ("COPY --from=build /leat/lib", "COPY lib"), ("LABEL", "ADD")):
            self.assertIn(old, text)
            self.assertTrue(findings(text.replace(old, new)), old)

    def test_it_names_what_is_there(self):
        text = FILE.read_text()
        for path in re.findall(r"\bdeploy/[\w/-]+", text):
            self.assertTrue((ROOT / path).exists(), path)
        for program in PROGRAMS:
            self.assertIn(f"/leat/bin/{program}", text)
        # Both images have the programs in the same place; the manifests' commands rely on it.
        self.assertIn("PATH=/opt/leat/bin:", text)
        self.assertIn('HOME = "opt/leat"', PACK.read_text())


if __name__ == "__main__":
    unittest.main()
