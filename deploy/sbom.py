# SPDX-License-Identifier: Apache-2.0
"""sbom.py --build DIR -o FILE ARTEFACT…: a software bill of materials, CycloneDX 1.5, for a build tree.

Its components are the artefacts with their SHA-256, each Debian package whose shared library the programs load, and
the packages whose headers are compiled into them. Versions and licences are those that dpkg and the packages'
copyright files state. The same tree, packages and artefacts give the same bytes.
"""

from __future__ import annotations

import argparse
import datetime
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys
import uuid
from urllib.parse import quote

ROOT = pathlib.Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "python_client/backend"))

from leat_backend import elf, licenses, native, wheel  # noqa: E402
from leat_backend.errors import BuildError  # noqa: E402

DOC = pathlib.Path("/usr/share/doc")


def loaded_packages(build: pathlib.Path) -> set[str]:
    """Returns the Debian packages of all shared libraries that the tree's programs load."""
    paths = {path.resolve() for name, file in native.built(build).items() if not native.PARQUET.match(name)
             for library, path in elf.where(file).items() if not library.startswith("libleat")}
    return set(licenses.packages_of(sorted(paths)).values())


def licences_of(package: str) -> list[str]:
    """Returns the short names in a machine-readable copyright file; none if it is not machine-readable."""
    file = DOC / package / "copyright"
    text = file.read_text(errors="replace") if file.exists() else ""
    if not re.match(r"\s*Format(-Specification)?:", text):
        return []
    return sorted({name.strip() for name in re.findall(r"^License:[ \t]*(\S[^\n]*)$", text, re.M)})


def component(package: str, use: str) -> dict:
    """Returns the component of a Debian package. `use`: "loaded" or "compiled in"."""
    form = "${Version}\t${Architecture}\t${source:Package}\t${source:Version}\t${Homepage}\n"
    done = subprocess.run(["dpkg-query", "-W", "-f", form, package], capture_output=True, text=True)
    if done.returncode != 0:
        raise BuildError(f"{package}: dpkg does not know it: {done.stderr.strip()}")
    version, machine, source, source_version, page = done.stdout.splitlines()[0].split("\t")
    purl = f"pkg:deb/debian/{quote(package)}@{quote(version)}?arch={machine}"
    found = {"type": "library", "bom-ref": purl, "name": package, "version": version, "purl": purl,
             "licenses": [{"license": {"name": name}} for name in licences_of(package)],
             "properties": [{"name": "leat:use", "value": use},
                            {"name": "leat:debian:source", "value": f"{source} {source_version}"}]}
    if page:
        found["externalReferences"] = [{"type": "website", "url": page}]
    return found


def artefact(file: pathlib.Path) -> dict:
    digest = hashlib.sha256(file.read_bytes()).hexdigest()
    return {"type": "file", "bom-ref": f"file:{file.name}", "name": file.name,
            "hashes": [{"alg": "SHA-256", "content": digest}]}


def bill(build: pathlib.Path, artefacts: list[pathlib.Path], seconds: int) -> dict:
    loaded = loaded_packages(build)
    headers = {name for name in licenses.HEADERS if (DOC / name).is_dir()} - loaded
    libraries = [*(component(name, "loaded") for name in sorted(loaded)),
                 *(component(name, "compiled in") for name in sorted(headers))]
    files = [artefact(file) for file in sorted(artefacts, key=lambda file: file.name)]
    own = {"type": "application", "bom-ref": f"leat@{wheel.version()}", "name": "leat", "version": wheel.version(),
           "licenses": [{"license": {"id": "Apache-2.0"}}]}
    found = {"bomFormat": "CycloneDX", "specVersion": "1.5", "version": 1,
             "metadata": {"timestamp": datetime.datetime.fromtimestamp(seconds, datetime.timezone.utc)
                          .strftime("%Y-%m-%dT%H:%M:%SZ"), "component": own},
             "components": [*files, *libraries],
             "dependencies": [{"ref": own["bom-ref"], "dependsOn": [one["bom-ref"] for one in libraries]}]}
    # The serial number is derived from the content.
    found["serialNumber"] = f"urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, json.dumps(found, sort_keys=True))}"
    return found


def main() -> None:
    parser = argparse.ArgumentParser(prog="deploy/sbom.py", description=__doc__.splitlines()[0])
    parser.add_argument("--build", type=pathlib.Path, required=True)
    parser.add_argument("-o", "--output", type=pathlib.Path, required=True)
    parser.add_argument("artefacts", type=pathlib.Path, nargs="*")
    args = parser.parse_args()
    seconds = int(os.environ.get("SOURCE_DATE_EPOCH", "315532800"))
    text = json.dumps(bill(args.build.resolve(), args.artefacts, seconds), indent=1, sort_keys=True, ensure_ascii=False)
    args.output.write_text(text + "\n")


if __name__ == "__main__":
    try:
        main()
    except BuildError as error:
        sys.exit(f"sbom.py: {error}")
