# SPDX-License-Identifier: Apache-2.0
"""Registers, stack and spills of every kernel are those in docs/measurements/gpu-kernels.md, for sm_90.

    python3 tests/lint/kernels.py --write      writes the table again, for sm_80, 89, 90 and 100

Skipped (77) without nvcc, or with a release of it other than the table's, since compilers differ.
"""

import argparse
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/measurements/gpu-kernels.md"
SOURCE = "worker/gpu/kernels/kernels.cu"
ARCHES = (80, 89, 90, 100)
CHECKED = 90
BLOCK = 128  # threads per block, for every kernel
FIELDS = re.compile(r"Function properties for (?P<name>\w+)\s+(?P<stack>\d+) bytes stack frame, (?P<stores>\d+) bytes "
                    r"spill stores, (?P<loads>\d+) bytes spill loads\s+.*?Used (?P<registers>\d+) registers")
HEAD = """# The kernels' resources

What nvcc {release} makes of each kernel with the build's own flags (`-O3 --fmad=false`): registers of
a thread; bytes of its stack, and bytes of these that registers are spilled to (stored); threads
that a multiprocessor holds by their registers, in blocks of {block}. No GPU is needed, and none has run
them. `python3 tests/lint/kernels.py --write` makes this page; `lint.kernels` compares sm_{checked} where
this release of nvcc is.

| kernel | {columns} |
|---|{lines}|
"""


def release(nvcc):
    said = subprocess.run([nvcc, "--version"], capture_output=True, text=True, check=True).stdout
    found = re.search(r"V(\d+\.\d+\.\d+)", said)
    return found.group(1) if found else "of an unknown release"


def compiled(nvcc, arch):
    """Returns lines of ptxas's output."""
    with tempfile.TemporaryDirectory() as folder:
        words = [nvcc, "-cubin", f"-arch=sm_{arch}", "-std=c++20", "-O3", "--fmad=false", "-diag-suppress", "186",
                 "-Xptxas", "-v", "-I", ROOT, "-o", pathlib.Path(folder) / "kernels", ROOT / SOURCE]
        done = subprocess.run(words, capture_output=True, text=True, timeout=600)
    if done.returncode != 0:
        sys.exit(f"{SOURCE} does not compile for sm_{arch}:\n{done.stderr}")
    return done.stderr


def resources(said):
    """Returns {kernel: (registers, stack, spilled)} from ptxas's output."""
    return {found["name"]: (int(found["registers"]), int(found["stack"]), int(found["stores"]))
            for found in FIELDS.finditer(said)}


def threads(registers):
    """Returns the threads that a multiprocessor with 65,536 registers holds: a warp takes multiples of 256."""
    warps = 65536 // (-(-registers * 32 // 256) * 256)
    return min(2048, warps * 32 // BLOCK * BLOCK)


def page(nvcc_release, by_arch):
    arches = list(by_arch)
    text = HEAD.format(release=nvcc_release, block=BLOCK, checked=CHECKED,
                       columns=" | ".join(f"sm_{arch}: registers | stack | spilled | threads" for arch in arches),
                       lines="|".join(["--:"] * 4 * len(arches)))
    for name in sorted(by_arch[arches[0]]):
        cells = []
        for arch in arches:
            registers, stack, spilled = by_arch[arch][name]
            # sm_89 has room for 1,536 threads.
            most = min(threads(registers), 1536 if arch == 89 else 2048)
            cells += [str(registers), str(stack), str(spilled), str(most)]
        text += f"| `{name}` | {' | '.join(cells)} |\n"
    return text


def of_page(text):
    """Returns (nvcc's release, {kernel: (registers, stack, spilled)} for the arch that is checked)."""
    found = re.search(r"What nvcc (\S+) makes", text)
    head = next(line for line in text.splitlines() if line.startswith("| kernel |"))
    first = [cell.strip() for cell in head.strip("|").split("|")].index(f"sm_{CHECKED}: registers")
    rows = {}
    for line in text.splitlines():
        if line.startswith("| `"):
            cells = [cell.strip() for cell in line.strip("|").split("|")]
            rows[cells[0].strip("`")] = tuple(int(cell) for cell in cells[first:first + 3])
    return found.group(1) if found else "", rows


def differences(listed, measured):
    findings = []
    for name in sorted(listed.keys() | measured.keys()):
        if listed.get(name) != measured.get(name):
            findings.append(f"{name}: registers, stack, spilled are {measured.get(name, 'gone')}, "
                            f"{PAGE.name} has {listed.get(name, 'nothing')}")
    return findings


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nvcc", default=shutil.which("nvcc") or "/usr/local/cuda/bin/nvcc")
    parser.add_argument("--write", action="store_true", help="make the table anew")
    args = parser.parse_args()
    if not shutil.which(args.nvcc):
        print(f"there is no nvcc ({args.nvcc})")
        return 77
    here = release(args.nvcc)
    if args.write:
        PAGE.write_text(page(here, {arch: resources(compiled(args.nvcc, arch)) for arch in ARCHES}))
        return 0
    written, listed = of_page(PAGE.read_text())
    if written != here:
        print(f"{PAGE.name} is of nvcc {written}, here is {here}")
        return 77
    findings = differences(listed, resources(compiled(args.nvcc, CHECKED)))
    for finding in findings:
        print(finding)
    if findings:
        print("python3 tests/lint/kernels.py --write makes the table anew: look at what has become worse")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
