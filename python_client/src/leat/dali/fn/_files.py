# SPDX-License-Identifier: Apache-2.0
"""The three ways in which readers.file and readers.numpy get their files."""

from __future__ import annotations

import fnmatch
import os
from collections.abc import Sequence
from typing import Any

from leat.errors import InvalidArgument, NotFound

FILTERS = tuple(f"*.{each}" for each in "jpg jpeg png bmp tif tiff pnm ppm pgm pbm jp2 webp flac ogg wav".split())
_MOST_LISTED = 200_000


def _text(where: str, value: Any) -> str:
    if hasattr(value, "__fspath__"):
        value = value.__fspath__()
    if not isinstance(value, str):
        raise TypeError(f"{where} = {value!r:.80} ({type(value).__name__}); expected a path")
    return value


def _only_one(where: str, **given: Any) -> None:
    names = [name for name, value in given.items() if value is not None]
    if len(names) > 1:
        raise InvalidArgument(f"{where}: {' and '.join(names)} are given; expected one of {', '.join(given)}, not both")


def ordered(where: str, values: Any) -> list[Any]:
    """Returns a list; a set is refused, since each process would have another order, and so another dataset."""
    if isinstance(values, (set, frozenset)):
        raise InvalidArgument(f"{where} is a {type(values).__name__}, which has no order; expected a list")
    return list(values)


def _patterns(value: Any) -> list[str]:
    return [value] if isinstance(value, str) else list(value)


def listed(
    root: str, file_filters: Sequence[str], dir_filters: Sequence[str] | None, case_sensitive: bool
) -> tuple[list[str], list[int]]:
    """Returns files below `root` and their labels, as DALI lists them: sub-folders in byte order are the classes, even
    if none of their files passes the filter."""

    def passes(name: str, patterns: Sequence[str]) -> bool:
        if case_sensitive:
            return any(fnmatch.fnmatchcase(name, each) for each in patterns)
        return any(fnmatch.fnmatchcase(name.lower(), each.lower()) for each in patterns)

    try:
        folders = sorted((each.name for each in os.scandir(root) if each.is_dir()), key=os.fsencode)
    except OSError as error:
        raise NotFound(
            f"fn.readers.file: file_root = {root!r}: {error.strerror}; filters need a local folder"
        ) from None
    if dir_filters is not None:
        folders = [each for each in folders if passes(each, dir_filters)]
    files, labels = [], []
    for label, folder in enumerate(folders):
        names = [each.name for each in os.scandir(os.path.join(root, folder)) if not each.is_dir()]
        for name in sorted((each for each in names if passes(each, file_filters)), key=os.fsencode):
            files.append(f"{folder}/{name}")
            labels.append(label)
    if not files:
        raise NotFound(f"fn.readers.file: No files found below {root!r} that match {list(file_filters)}")
    if len(files) > _MOST_LISTED:
        raise InvalidArgument(
            f"fn.readers.file: the filters leave {len(files)} files, which would be sent with the pipeline; expected "
            f"at most {_MOST_LISTED}: write a file_list"
        )
    return files, labels


def reading(
    *,
    file_root: Any,
    file_list: Any,
    files: Sequence[Any] | None,
    labels: Sequence[int] | None,
    file_filters: Any,
    dir_filters: Any,
    case_sensitive_filter: bool,
) -> tuple[str, dict[str, Any]]:
    """Returns the operator of `leat.fn` for readers.file, and its arguments."""
    where = "fn.readers.file"
    _only_one(where, file_list=file_list, files=files)
    if file_root is None and file_list is None and files is None:
        raise InvalidArgument(f"{where}: file_root argument is required where neither file_list nor files is given")
    root = None if file_root is None else _text(f"{where}: file_root", file_root)
    if labels is not None and files is None:
        raise InvalidArgument(f"{where}: labels are of files, which is not given")
    filtered = file_filters is not None and tuple(_patterns(file_filters)) != FILTERS
    filtered = filtered or dir_filters is not None or bool(case_sensitive_filter)
    if filtered and (file_list is not None or files is not None):
        raise InvalidArgument(f"{where}: filters are of file_root, which is listed only without file_list and files")
    if files is not None:
        names = [_text(f"{where}: files", each) for each in ordered(f"{where}: files", files)]
        if not names:
            raise InvalidArgument(f"{where}: `files` specified an empty list.")
        if labels is not None and len(labels) != len(names):
            raise InvalidArgument(f"{where}: Provided {len(labels)} labels for {len(names)} files.")
        return "readers.files", {"files": names, "labels": None if labels is None else list(labels), "root": root}
    if file_list is not None:
        return "readers.file_list", {"path": _text(f"{where}: file_list", file_list), "root": root}
    assert root is not None
    if not filtered:
        return "readers.image_folder", {"path": root, "hidden": True}
    names, numbers = listed(
        root,
        FILTERS if file_filters is None else _patterns(file_filters),
        None if dir_filters is None else _patterns(dir_filters),
        bool(case_sensitive_filter),
    )
    return "readers.files", {"files": names, "labels": numbers, "root": root}


def arrays(*, file_root: Any, file_list: Any, files: Sequence[Any] | None, file_filter: str) -> dict[str, Any]:
    """Returns the arguments of `leat.fn.readers.numpy`."""
    where = "fn.readers.numpy"
    _only_one(where, file_list=file_list, files=files)
    root = "" if file_root is None else _text(f"{where}: file_root", file_root)
    if files is None and file_list is None:
        if not root:
            raise InvalidArgument(f"{where}: file_root argument is required where neither file_list nor files is given")
        return {"path": root, "pattern": file_filter, "order": "folders"}
    if files is None:
        path = _text(f"{where}: file_list", file_list)
        root = root or os.path.dirname(path)
        try:
            with open(path, encoding="utf-8-sig") as lines:
                files = [line.strip() for line in lines if line.strip()]
        except OSError as error:
            raise NotFound(f"{where}: file_list = {path!r}: {error.strerror}; expected a local file of paths") from None
        except UnicodeDecodeError as error:
            raise InvalidArgument(f"{where}: file_list = {path!r}: {error}; expected UTF-8, a path a line") from None
    names = [_text(f"{where}: files", each) for each in ordered(f"{where}: files", files)]
    if not names:
        raise InvalidArgument(f"{where}: `files` specified an empty list.")
    return {"files": [os.path.join(root, each) if root else each for each in names]}
