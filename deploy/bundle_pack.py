# SPDX-License-Identifier: Apache-2.0
"""Packs the programs of a build tree into one relocatable tar. deploy/bundle calls it, and describes the contents.

Layout, under leat-VERSION-linux-MACHINE/:
  bin/       the programs that users run          lib/    libleat.so and every shared library except glibc
  checks/    the programs that tests/gpu/run runs tests/  its scripts, where the sources have them
  wheel/     the Python package                   photos/ a sample of --data, if given
  share/licenses/                                 MANIFEST: SHA-256 of every file

Programs find lib/ by $ORIGIN, so the folder may be anywhere. Libraries have names of our own (leat-libgrpc.so.29), as
in the wheel, so that a process may also load another copy of them. The same tree gives the same bytes.
"""

from __future__ import annotations

import argparse
import gzip
import hashlib
import io
import lzma
import os
import pathlib
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import zipfile

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python_client/backend"))

from leat_backend import elf, licenses, native, tag, wheel  # noqa: E402
from leat_backend.errors import BuildError  # noqa: E402

# Programs for tests/gpu/run, and whether a tree may lack them: that for GPUs needs nvcc.
CHECKS = {"e2e_consumer": False, "leat_oracle": False, "leat_make_photos": False, "leat_example_batches": False,
          "leat_gpu_check": True, "gpu_fused_device_test": True}
SCRIPTS = ("tests/gpu/run", "tests/gpu/*.py", "tests/e2e/cluster.py", "tests/support/test_data.py")
MAX_BYTES = 45 << 20  # so that the bundle and a checkout's tracked files fit into 64 MiB
# The default size of the photos: what that leaves beside NVIDIA's library, with the Parquet reader and without it.
DATA_MIB = {True: 6, False: 20}
PHOTO = {".jpg", ".jpeg", ".jpe"}


def built(build: pathlib.Path, name: str) -> pathlib.Path | None:
    """Returns the program `name` of a build tree. Skips folders that CMake did not make: tests unpack bundles there."""
    for folder, folders, files in os.walk(build):
        folders[:] = sorted(f for f in folders if os.path.exists(os.path.join(folder, f, "cmake_install.cmake")))
        if name in files and os.access(os.path.join(folder, name), os.X_OK):
            return pathlib.Path(folder, name)
    return None


class Packer:
    def __init__(self, build: pathlib.Path, stage: pathlib.Path) -> None:
        self.build = build
        self.top = f"leat-{wheel.version()}-linux-{platform.machine()}"
        self.root = stage / self.top

    def pack_programs(self) -> list[str]:
        """Packs bin/, checks/ and lib/, with the C++ runtime. Returns the checks that this tree does not have."""
        files, missing = {}, []
        for name, file in native.built(self.build).items():
            if not native.PARQUET.match(name):
                files[f"{'lib' if name == 'libleat.so' else 'bin'}/{name}"] = file
        for name, optional in CHECKS.items():
            program = built(self.build, name)
            if program is not None:
                files[f"checks/{name}"] = program
            elif optional:
                missing.append(name)
            else:
                raise BuildError(f"{self.build}: {name} is not built there")
        gathered = native.Gathered(self.root, files, runtime=True)
        licenses.write(ROOT, self.root / "share/licenses", gathered.libraries)
        return missing

    def pack_parquet(self) -> bool:
        """Packs the Parquet reader, with the newest release of Arrow and its licences. Returns True if the tree has
        it."""
        plugins = {name: file for name, file in native.built(self.build).items() if native.PARQUET.match(name)}
        if not plugins:
            return False
        name = max(plugins)
        copies = {name: plugins[name]}
        for library, path in elf.where(plugins[name]).items():
            if re.match(r"lib(arrow|parquet)\.so\.\d+$", library):
                copies[library] = path
                licenses.write_package(path.resolve().parent, self.root / "share/licenses")
        for copy, file in copies.items():
            shutil.copy(file.resolve(), self.root / "lib" / copy)
            elf.run("strip", self.root / "lib" / copy)
        elf.run("patchelf", "--set-rpath", "$ORIGIN", self.root / "lib" / name)
        return True

    def pack_scripts(self) -> None:
        for pattern in SCRIPTS:
            for file in sorted(ROOT.glob(pattern)):
                target = self.root / file.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)

    def pack_wheel(self) -> None:
        (self.root / "wheel").mkdir()
        # Stored uncompressed: the bundle around it is compressed, and finds the libraries that it already has.
        wheel.write(self.build, self.root / "wheel", zipfile.ZIP_STORED)

    def pack_nvjpeg(self, wheel: pathlib.Path) -> None:
        """Packs libnvjpeg and its licence into lib/, where the programs' dlopen looks first."""
        licenses = self.root / "share/licenses/nvidia-nvjpeg"
        licenses.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            libraries = [n for n in names if re.search(r"/libnvjpeg\.so\.\d+$", n)]
            texts = [n for n in names if re.search(r"dist-info/.*licen[cs]e[^/]*$", n, re.I)]
            if not libraries or not texts:
                raise BuildError(f"{wheel}: want a libnvjpeg.so.N and its licence in it")
            for name in libraries:
                (self.root / "lib" / pathlib.PurePath(name).name).write_bytes(archive.read(name))
            (licenses / "License.txt").write_bytes(archive.read(texts[0]))

    def pack_photos(self, data: pathlib.Path, max_bytes: int) -> None:
        """Packs every k-th photo, in a folder for its class, while they fit."""
        photos = sorted(p for p in data.rglob("*") if p.suffix.lower() in PHOTO and p.is_file())
        if not photos:
            raise BuildError(f"--data {data}: no JPEG files (*.jpg, *.jpeg, *.jpe) in it")
        total = sum(p.stat().st_size for p in photos)
        taken, due = 0, 0.0
        for photo in photos:
            size = photo.stat().st_size
            due += size * min(1.0, max_bytes / total)
            if taken + size <= due:
                target = self.root / "photos" / photo.relative_to(data)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy(photo, target)
                taken += size

    def check(self) -> None:
        """Checks that everything needed is here or is glibc's, and that README.txt names the right glibc."""
        have = {p.name for p in (self.root / "lib").iterdir()}
        for file in self.elf_files():
            for name in elf.needs(file).libraries:
                if not elf.GLIBC.match(name) and name not in have:
                    raise BuildError(f"{file.relative_to(self.root)} needs {name}, which is not in the bundle")
        (major, minor), _ = tag.glibc(self.elf_files(), with_runtime=False)
        text = (ROOT / "deploy/bundle_readme.txt").read_text()
        (self.root / "README.txt").write_text(text.replace("@GLIBC@", f"{major}.{minor}"))

    def elf_files(self) -> list[pathlib.Path]:
        return [p for folder in ("bin", "checks", "lib") for p in sorted((self.root / folder).iterdir())]

    def write_manifest(self) -> None:
        lines = [f"{hashlib.sha256(p.read_bytes()).hexdigest()}  {p.relative_to(self.root)}"
                 for p in sorted(self.root.rglob("*")) if p.is_file()]
        (self.root / "MANIFEST").write_text("\n".join(lines) + "\n")


def write_tar(root: pathlib.Path, out: pathlib.Path, mtime: int) -> None:
    def plain(info: tarfile.TarInfo) -> tarfile.TarInfo:
        info.uid = info.gid = 0
        info.uname = info.gname = "root"
        info.mtime = mtime
        info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
        return info

    partial = out.with_name(out.name + ".partial")
    with open(partial, "wb") as file:
        if out.suffix == ".xz":
            # The wheel holds the libraries a second time: a dictionary of the whole size finds them.
            filters = [{"id": lzma.FILTER_LZMA2, "preset": 6, "dict_size": 128 << 20}]
            packed: io.IOBase = lzma.open(file, "wb", filters=filters)
        elif out.suffix == ".gz":
            packed = gzip.GzipFile(fileobj=file, mode="wb", compresslevel=3, mtime=mtime, filename="")
        else:
            packed = file
        with tarfile.open(fileobj=packed, mode="w|", format=tarfile.GNU_FORMAT) as tar:
            for path in [root, *sorted(root.rglob("*"))]:
                tar.add(path, str(path.relative_to(root.parent)), recursive=False, filter=plain)
        if packed is not file:
            packed.close()
    size = partial.stat().st_size
    if packed is not file and size >= MAX_BYTES:
        partial.unlink()
        raise BuildError(f"{out}: would be {size:,} bytes: want under {MAX_BYTES:,}; pack a .tar.xz, give "
                          "a smaller --data-mib, or --without-parquet")
    partial.replace(out)


def commit_time() -> int:
    if "SOURCE_DATE_EPOCH" in os.environ:
        return int(os.environ["SOURCE_DATE_EPOCH"])
    done = subprocess.run(["git", "-C", str(ROOT), "log", "-1", "--format=%ct"], capture_output=True, text=True)
    return int(done.stdout) if done.returncode == 0 and done.stdout.strip() else 315532800


def main() -> None:
    parser = argparse.ArgumentParser(prog="deploy/bundle")
    parser.add_argument("--list-checks", action="store_true")
    parser.add_argument("--build", type=pathlib.Path)
    parser.add_argument("--out", type=pathlib.Path)
    parser.add_argument("--data", type=pathlib.Path)
    parser.add_argument("--data-mib", type=int)
    parser.add_argument("--without-parquet", action="store_true")
    parser.add_argument("--nvjpeg", type=pathlib.Path)
    args = parser.parse_args()
    if args.list_checks:
        print(*CHECKS)
        return
    if not re.search(r"\.tar(\.gz|\.xz)?$", args.out.name):
        raise BuildError(f"-o {args.out}: want a name that ends in .tar, .tar.gz or .tar.xz")
    if args.data_mib is None:
        args.data_mib = DATA_MIB[not args.without_parquet]
    if args.data_mib < 1:
        raise BuildError(f"--data-mib {args.data_mib}: want 1 or more")
    with tempfile.TemporaryDirectory(prefix="leat-bundle-") as stage:
        packer = Packer(args.build.resolve(), pathlib.Path(stage))
        missing = packer.pack_programs()
        if not args.without_parquet and not packer.pack_parquet():
            missing.append("Parquet")
        packer.pack_scripts()
        packer.pack_wheel()
        if args.nvjpeg:
            packer.pack_nvjpeg(args.nvjpeg)
        if args.data:
            packer.pack_photos(args.data, args.data_mib << 20)
        packer.check()
        packer.write_manifest()
        args.out.parent.mkdir(parents=True, exist_ok=True)
        write_tar(packer.root, args.out, commit_time())
    for name in missing:
        want = "pyarrow" if name == "Parquet" else "nvcc"
        print(f"bundle: without {name}: {args.build} has none (is {want} there?)")
    print(f"{args.out}: {args.out.stat().st_size / (1 << 20):.1f} MiB, {packer.top}/")


if __name__ == "__main__":
    try:
        main()
    except BuildError as error:
        sys.exit(f"bundle: {error}")
