# SPDX-License-Identifier: Apache-2.0
"""Writes the wheel from the files of a build tree. pip's build (__init__.py) and deploy/bundle use it."""

from __future__ import annotations

import base64
import hashlib
import pathlib
import re
import tempfile
import zipfile

from leat_backend import licenses, native, tag
from leat_backend.errors import BuildError

try:
    import tomllib
except ImportError:  # Python 3.10
    import tomli as tomllib  # type: ignore[no-redef]

ROOT = pathlib.Path(__file__).resolve().parents[3]
_EPOCH = (1980, 1, 1, 0, 0, 0)


def version() -> str:
    """Returns the version of the library, the programs and the package."""
    found = re.search(r"project\(leat VERSION ([0-9.]+)", (ROOT / "CMakeLists.txt").read_text())
    if not found:
        raise BuildError(f"{ROOT}/CMakeLists.txt: no version")
    return found[1]


def _pyproject() -> dict:
    return tomllib.loads((ROOT / "python_client/pyproject.toml").read_text())


def project() -> dict:
    return _pyproject()["project"]


def stem() -> str:
    """Returns the beginning of file names: leat_data-0.2.0."""
    return f"{project()['name'].replace('-', '_')}-{version()}"


def metadata(license_files: list[str], majors: list[int]) -> str:
    """Returns the text of METADATA; `majors` are the releases of pyarrow that the wheel reads Parquet with."""
    about = project()
    lines = ["Metadata-Version: 2.4", f"Name: {about['name']}", f"Version: {version()}",
             f"Summary: {about['description']}", f"Author: {', '.join(each['name'] for each in about['authors'])}",
             f"License-Expression: {about['license']}",
             *(f"License-File: {name}" for name in license_files),
             *(f"Classifier: {text}" for text in about["classifiers"]),
             f"Requires-Python: {about['requires-python']}"]
    lines += [f"Requires-Dist: {need}" for need in about["dependencies"]]
    for extra, wants in _pyproject()["tool"]["leat"]["optional-dependencies"].items():
        lines.append(f"Provides-Extra: {extra}")
        lines += [f'Requires-Dist: {want}; extra == "{extra}"' for want in wants]
    if majors:
        lines += ["Provides-Extra: parquet",
                  f'Requires-Dist: pyarrow>={majors[0]},<{majors[-1] + 1}; extra == "parquet"']
    readme = (ROOT / "python_client/README.md").read_text()
    return "\n".join([*lines, "Description-Content-Type: text/markdown", "", readme])


def _record(files: dict[str, tuple[bytes, bool]]) -> str:
    rows = []
    for name, (data, _) in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        rows.append(f"{name},sha256={digest},{len(data)}\n")
    return "".join(rows)


def _sources() -> dict[str, tuple[bytes, bool]]:
    folder = ROOT / "python_client/src"
    return {str(p.relative_to(folder)): (p.read_bytes(), False) for p in sorted((folder / "leat").rglob("*"))
            if p.is_file() and "__pycache__" not in p.parts and "_native" not in p.parts}


def arrow_majors(names: list[str]) -> list[int]:
    """Returns the releases of Arrow: libleat_parquet-2600.so -> 26."""
    found = sorted({int(match[1]) // 100 for match in map(native.PARQUET.match, names) if match})
    if found and found != list(range(found[0], found[-1] + 1)):
        raise BuildError(f"Parquet is built for pyarrow {found}: want releases without a gap (LEAT_PYARROW)")
    return found


def write(tree: pathlib.Path, folder: pathlib.Path, compression: int = zipfile.ZIP_DEFLATED) -> pathlib.Path:
    """Writes the wheel of a build tree into `folder`, whole or not at all."""
    info = f"{stem()}.dist-info"
    with tempfile.TemporaryDirectory(prefix="leat-wheel-") as stage:
        files = _sources()
        gathered = native.Gathered(pathlib.Path(stage, "native"), native.built(tree))
        for file in sorted(p for p in gathered.folder.rglob("*") if p.is_file()):
            place = file.relative_to(gathered.folder)
            files[f"leat/_native/{place}"] = (file.read_bytes(), len(place.parts) == 1)
        platform_tag = tag.platform_tag(gathered.elf_files())
        majors = arrow_majors([file.name for file in gathered.folder.iterdir()])
        texts = pathlib.Path(stage, "licenses")
        licenses.write(ROOT, texts, gathered.libraries)
        names = [str(p.relative_to(texts)) for p in sorted(texts.rglob("*")) if p.is_file()]
        scripts = "".join(f"{name} = {target}\n" for name, target in project()["scripts"].items())
        for name, text in {
                "METADATA": metadata(names, majors),
                "WHEEL": f"Wheel-Version: 1.0\nGenerator: leat_backend ({version()})\nRoot-Is-Purelib: false\n"
                         f"Tag: py3-none-{platform_tag}\n",
                "entry_points.txt": f"[console_scripts]\n{scripts}",
        }.items():
            files[f"{info}/{name}"] = (text.encode(), False)
        for name in names:
            files[f"{info}/licenses/{name}"] = ((texts / name).read_bytes(), False)
    files[f"{info}/RECORD"] = (f"{_record(files)}{info}/RECORD,,\n".encode(), False)

    wheel = folder / f"{stem()}-py3-none-{platform_tag}.whl"
    partial = wheel.with_name(wheel.name + ".partial")
    try:
        with zipfile.ZipFile(partial, "w", compression, compresslevel=6) as archive:
            for name, (data, executable) in files.items():
                entry = zipfile.ZipInfo(name, _EPOCH)
                entry.compress_type = compression
                entry.external_attr = (0o100755 if executable else 0o100644) << 16
                archive.writestr(entry, data)
        partial.replace(wheel)
    finally:
        partial.unlink(missing_ok=True)
    return wheel
