# SPDX-License-Identifier: Apache-2.0
"""Packs what a build tree holds into one relocatable tar. Called by deploy/bundle, which says what is in it.

Layout, under leat-VERSION-linux-MACHINE/:
  bin/       the programs that users run          lib/    libleat.so and every shared library but glibc
  checks/    the programs that tests/gpu/run runs tests/  its scripts, where the sources have them
  wheel/     the Python package                   photos/ a sample of --data, if given
  share/licenses/                                 MANIFEST: SHA-256 of every file

Programs find lib/ by $ORIGIN, so the folder may be anywhere. Libraries have names of our own (leat-libgrpc.so.29), as
in the wheel, so that a process may hold another copy of them. The same tree gives the same bytes.
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

import bundle_licenses
import bundle_wheel

ROOT = pathlib.Path(__file__).resolve().parents[1]
PROGRAMS = ("leat", "leat-coordinator", "leat-worker")
# Programs for tests/gpu/run, and whether a tree may lack them: the GPU's exists where nvcc does.
CHECKS = {"e2e_consumer": False, "leat_oracle": False, "leat_make_photos": False, "leat_example_batches": False,
          "leat_gpu_check": True, "gpu_fused_device_test": True}
PARQUET = "libleat_parquet.so"  # a tree may lack it
SCRIPTS = ("tests/gpu/run", "tests/gpu/*.py", "tests/e2e/cluster.py", "tests/support/test_data.py")
# A process has one glibc, and it is the machine's.
GLIBC = re.compile(r"^(ld-linux.*|linux-vdso|lib(c|m|dl|rt|pthread|resolv|util))\.so")
# Bundled under their own names, for the programs; a Python process has its own (bundle.cmake).
RUNTIME = ("libstdc++.so.6", "libgcc_s.so.1")
NEWEST_GLIBC = (2, 36)
MAX_BYTES = 64 << 20
PHOTO = {".jpg", ".jpeg", ".jpe"}


class BundleError(Exception):
    """The bundle cannot be made; the text says why."""


def run(*argv: str | os.PathLike[str]) -> str:
    done = subprocess.run([str(word) for word in argv], capture_output=True, text=True)
    if done.returncode != 0:
        raise BundleError(f"{' '.join(map(str, argv))}: exit code {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def closure(file: pathlib.Path) -> dict[str, pathlib.Path]:
    """Every shared library that `file` loads, but glibc: name -> path on this machine."""
    found = {}
    for line in run("ldd", file).splitlines():
        name, arrow, rest = line.strip().partition(" => ")
        if arrow and not GLIBC.match(name):
            if rest.startswith("not found"):
                raise BundleError(f"{file}: needs {name}, which is not on this machine")
            found[name] = pathlib.Path(rest.split(" (")[0])
    return found


def built(build: pathlib.Path, name: str) -> pathlib.Path | None:
    """The program `name` of a build tree."""
    for folder, folders, files in os.walk(build):
        folders[:] = sorted(f for f in folders if f not in ("CMakeFiles", "_deps"))
        if name in files and os.access(os.path.join(folder, name), os.X_OK):
            return pathlib.Path(folder, name)
    return None


def patch(file: pathlib.Path, rpath: str, renames: dict[str, str]) -> None:
    """Makes an ELF file look for libraries in `rpath`, under other names."""
    # One change a call: patchelf 0.14, Debian 12's, mixes up the texts of several.
    needed = run("patchelf", "--print-needed", file).split()
    for name in needed:
        if name in renames:
            run("patchelf", "--replace-needed", name, renames[name], file)
    run("patchelf", "--set-rpath", rpath, file)


class Packer:
    def __init__(self, build: pathlib.Path, stage: pathlib.Path, version: str) -> None:
        self.build, self.native = build, stage / "native"
        self.top = f"leat-{version}-linux-{platform.machine()}"
        self.root = stage / self.top
        self.version = version
        self.libraries: dict[str, pathlib.Path] = {}  # what lib/ has -> where it came from

    def pack_programs(self) -> None:
        """bin/ and lib/ as the wheel has them, with the C++ runtime beside them."""
        run("cmake", "--install", self.build, "--component", "wheel", "--strip", "--prefix", self.native)
        for folder in ("bin", "lib", "checks"):
            (self.root / folder).mkdir(parents=True)
        for program in PROGRAMS:
            self.libraries.update(self.closure_as_built(program))
            shutil.copy2(self.native / program, self.root / "bin")
            patch(self.root / "bin" / program, "$ORIGIN/../lib", {})
        for library in (self.native / "lib").iterdir():
            shutil.copy2(library, self.root / "lib")
        shutil.copy2(self.native / "libleat.so", self.root / "lib")
        patch(self.root / "lib/libleat.so", "$ORIGIN", {})

    def closure_as_built(self, program: str) -> dict[str, pathlib.Path]:
        file = built(self.build, program)
        if file is None:
            raise BundleError(f"{self.build}: {program} is not built there")
        return {name: path for name, path in closure(file).items() if not name.startswith("libleat.so")}

    def pack_checks(self) -> list[str]:
        """Programs that are not in the wheel. Returns those that this tree does not have."""
        missing = []
        for name, optional in CHECKS.items():
            program = built(self.build, name)
            if program is None:
                if not optional:
                    raise BundleError(f"{self.build}: {name} is not built there")
                missing.append(name)
                continue
            copy = self.root / "checks" / name
            shutil.copy2(program, copy)
            run("strip", copy)
            renames = {}
            for library, path in closure(program).items():
                if library.startswith("libleat.so"):
                    renames[library] = "libleat.so"
                elif library not in RUNTIME:
                    renames[library] = f"leat-{library}"
                    self.add_library(library, path)
            patch(copy, "$ORIGIN/../lib", renames)
        return missing

    def add_library(self, name: str, path: pathlib.Path) -> None:
        target = self.root / "lib" / f"leat-{name}"
        if target.exists():
            return
        shutil.copy(path.resolve(), target)
        self.libraries[name] = path
        inner = {library: f"leat-{library}" for library in closure(path) if library not in RUNTIME}
        for library, where in closure(path).items():
            if library not in RUNTIME:
                self.add_library(library, where)
        run("patchelf", "--set-soname", target.name, target)
        patch(target, "$ORIGIN", inner)

    def pack_runtime(self) -> None:
        for name in RUNTIME:
            path = self.libraries.get(name)
            if path is None:
                raise BundleError(f"no program needs {name}: is this a static build?")
            shutil.copy(path.resolve(), self.root / "lib" / name)
            patch(self.root / "lib" / name, "$ORIGIN", {})  # libstdc++ needs libgcc_s: the one beside it

    def pack_parquet(self) -> bool:
        """What reads Parquet, with Arrow's libraries and their licences. Whether the tree has it."""
        plugin = built(self.build, PARQUET)
        if plugin is None:
            return False
        copy = self.root / "lib" / PARQUET
        for name, path in {PARQUET: plugin, **closure(plugin)}.items():
            if name != PARQUET and not re.match(r"lib(arrow|parquet)\.so\.\d+$", name):
                continue
            shutil.copy(path.resolve(), self.root / "lib" / name)
            run("strip", self.root / "lib" / name)
            if name != PARQUET:
                bundle_licenses.write_package(path.resolve().parent, self.root / "share/licenses")
        patch(copy, "$ORIGIN", {})
        return True

    def pack_scripts(self) -> None:
        for pattern in SCRIPTS:
            for file in sorted(ROOT.glob(pattern)):
                target = self.root / file.relative_to(ROOT)
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(file, target)
        shutil.copy2(ROOT / "deploy/bundle_readme.txt", self.root / "README.txt")

    def pack_wheel(self) -> None:
        (self.root / "wheel").mkdir()
        bundle_wheel.write(ROOT, self.native, self.root / "wheel", self.version)

    def pack_nvjpeg(self, wheel: pathlib.Path) -> None:
        """libnvjpeg and its licence. lib/ is where the programs' dlopen looks first."""
        licenses = self.root / "share/licenses/nvidia-nvjpeg"
        licenses.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheel) as archive:
            names = archive.namelist()
            libraries = [n for n in names if re.search(r"/libnvjpeg\.so\.\d+$", n)]
            texts = [n for n in names if re.search(r"dist-info/.*licen[cs]e[^/]*$", n, re.I)]
            if not libraries or not texts:
                raise BundleError(f"{wheel}: want a libnvjpeg.so.N and its licence in it")
            for name in libraries:
                (self.root / "lib" / pathlib.PurePath(name).name).write_bytes(archive.read(name))
            (licenses / "License.txt").write_bytes(archive.read(texts[0]))

    def pack_photos(self, data: pathlib.Path, max_bytes: int) -> None:
        """Every k-th photo, with its class's folder, while they fit."""
        photos = sorted(p for p in data.rglob("*") if p.suffix.lower() in PHOTO and p.is_file())
        if not photos:
            raise BundleError(f"--data {data}: no JPEG files (*.jpg, *.jpeg, *.jpe) in it")
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
        """Nothing is needed that is neither here nor of glibc, and of glibc nothing newer than promised."""
        have = {p.name for p in (self.root / "lib").iterdir()}
        for file in self.elf_files():
            for name in run("patchelf", "--print-needed", file).split():
                if not GLIBC.match(name) and name not in have:
                    raise BundleError(f"{file.relative_to(self.root)} needs {name}, which is not in the bundle")
            versions = re.findall(r"\bGLIBC_(\d+)\.(\d+)", run("objdump", "-T", file))
            newest = max(((int(a), int(b)) for a, b in versions), default=(0, 0))
            if newest > NEWEST_GLIBC:
                raise BundleError(f"{file.relative_to(self.root)} needs glibc {newest[0]}.{newest[1]}: want at most "
                                  f"{NEWEST_GLIBC[0]}.{NEWEST_GLIBC[1]}; build on Debian 12")

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
            # The wheel holds the libraries once more: a dictionary of the whole size finds them again.
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
        raise BundleError(f"{out}: would be {size:,} bytes: want under {MAX_BYTES:,}; pack a .tar.xz, give "
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
    parser.add_argument("--data-mib", type=int, default=24)
    parser.add_argument("--without-parquet", action="store_true")
    parser.add_argument("--nvjpeg", type=pathlib.Path)
    args = parser.parse_args()
    if args.list_checks:
        print(*CHECKS)
        return
    if not re.search(r"\.tar(\.gz|\.xz)?$", args.out.name):
        raise BundleError(f"-o {args.out}: want a name that ends in .tar, .tar.gz or .tar.xz")
    if args.data_mib < 1:
        raise BundleError(f"--data-mib {args.data_mib}: want 1 or more")
    version = bundle_wheel.version_of(ROOT)
    with tempfile.TemporaryDirectory(prefix="leat-bundle-") as stage:
        packer = Packer(args.build.resolve(), pathlib.Path(stage), version)
        packer.pack_programs()
        missing = packer.pack_checks()
        if not args.without_parquet and not packer.pack_parquet():
            missing.append(PARQUET)
        packer.pack_runtime()
        packer.pack_scripts()
        packer.pack_wheel()
        if args.nvjpeg:
            packer.pack_nvjpeg(args.nvjpeg)
        if args.data:
            packer.pack_photos(args.data, args.data_mib << 20)
        bundle_licenses.write(ROOT, packer.root / "share/licenses", packer.libraries)
        packer.check()
        packer.write_manifest()
        args.out.parent.mkdir(parents=True, exist_ok=True)
        write_tar(packer.root, args.out, commit_time())
    for name in missing:
        want = "pyarrow" if name == PARQUET else "nvcc"
        print(f"bundle: without {name}: {args.build} has none (is {want} there?)")
    print(f"{args.out}: {args.out.stat().st_size / (1 << 20):.1f} MiB, {packer.top}/")


if __name__ == "__main__":
    try:
        main()
    except (BundleError, bundle_licenses.LicenseError) as error:
        sys.exit(f"bundle: {error}")
