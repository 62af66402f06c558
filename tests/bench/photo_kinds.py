# SPDX-License-Identifier: Apache-2.0
"""Sections of the table about kinds of photos: the gain from decoded forms of images.

Section kinds: photos are drawn (leat_make_photos) and compressed as each kind of JPEG, and decoded at full resolution
and at the scale that a crop needs, by numbers of threads. The yardstick decodes the same files on as many threads.

Section formats: the photos that are measured, as files of other formats, from the first epoch on.
"""

import concurrent.futures
import copy
import itertools
import pathlib
import subprocess

from large_data import Epochs
from peers import LIMIT, photos, runner
from service import ROOT, Service, puller, result_of

LARGE = "12 MP 4:2:0"  # is also decoded with reduce="auto"
# Name -> how a photo is compressed, its longest side, how many there are.
KINDS = {
    "0.2 MP 4:2:0": ("420", 640, 256),
    "0.2 MP 4:4:4": ("444", 640, 256),
    "0.2 MP progressive": ("progressive", 640, 256),
    "1 MP 4:2:0": ("420", 1400, 128),
    LARGE: ("420", 4608, 64),
}
THREADS = (1, 2, 4)  # for the first kind
FORMS = ("none", "seek", "coefficients", "all")
FORMATS = {"PNG": "png", "WebP": "webp"}
FORMAT_PHOTOS, FORMAT_NAMES, FORMAT_EPOCHS = 300, 4, 6  # photos, and how many names each of them has


def recode(args, coding, files, root, folder, suffix=None):
    """Writes the photos, which are below `root`, as another kind of file to the same places below `folder`; leaves out
    the few whose chroma sampling turbojpeg.h has no name for."""
    program = runner.compiled(ROOT / "build/bench", "photo_recode")

    def one(path):
        to = folder / pathlib.Path(path).relative_to(root)
        to = to.with_suffix(suffix or to.suffix)
        to.parent.mkdir(parents=True, exist_ok=True)
        return subprocess.run([program, coding, path, to], stderr=subprocess.DEVNULL).returncode

    with concurrent.futures.ThreadPoolExecutor(args.threads) as pool:
        failed = sum(code != 0 for code in pool.map(one, files))
    if failed > len(files) // 16:
        raise RuntimeError(f"{failed} of {len(files)} photos could not be made {coding}")


def make(args, kind, folder):
    """Makes the photos of a kind in a folder."""
    coding, side, count = KINDS[kind]
    drawn = folder.with_suffix(".drawn")
    subprocess.run([args.photo_maker, drawn, str(count), "--max-side", str(side)], check=True)
    recode(args, coding, photos.files(drawn), drawn, folder)


def measure_formats(args, out):
    """Measures the epochs of photos in other formats that the workers have not seen, with the decoded forms kept by
    default and with none: images per second of each epoch, and the ratio of rows delivered so far with the default to
    those without. One service runs at a time, since such short epochs would feel what another one reads ahead."""
    folders = {}
    for name, suffix in FORMATS.items():
        folder = folders[name] = args.folder / suffix
        recode(args, suffix, photos.files(args.images)[:FORMAT_PHOTOS], args.images, folder, f".{suffix}")
        for path in [path for path in folder.rglob("*") if path.is_file()]:
            for number in range(1, FORMAT_NAMES):
                path.with_stem(f"{path.stem}-{number}").hardlink_to(path)
    rounds = out["formats"] = []
    for number in range(args.rounds):
        one = {}
        for name, folder in folders.items():
            took = {}
            for forms in sorted(("all", "none"), reverse=number % 2 == 1):
                place = args.folder / f"{folder.name}-{forms}-{number}"
                place.mkdir()
                with Service(args, place, flags=("--forms", forms, "--cache", "3GiB")) as service, \
                        Epochs(args, service.coordinator.address, str(folder)) as epochs:
                    rates = [epochs.next() for _ in range(FORMAT_EPOCHS)]
                took[forms] = list(itertools.accumulate(1 / rate for rate in rates))
                one |= {f"{name}, {forms}, epoch {epoch}, img/s": rate for epoch, rate in enumerate(rates, 1)}
            one |= {f"{name}, so far after epoch {epoch}": none / own
                    for epoch, (own, none) in enumerate(zip(took["all"], took["none"]), 1)}
        rounds.append(one)


def measure(args, out):
    """Measures rounds of: each kind on all cores, and the first one by threads. Rates are those of later epochs."""
    folders = {}
    for kind in KINDS:
        folders[kind] = args.folder / f"kind-{len(folders)}"
        make(args, kind, folders[kind])
    cases = [(kind, kind, args.threads, "none") for kind in KINDS]
    cases.append((f"{LARGE}, reduced", LARGE, args.threads, "auto"))
    first = next(iter(KINDS))
    cases += [(f"{first}, threads {threads}", first, threads, "none") for threads in THREADS]
    rounds = out["kinds"] = []
    for number in range(args.rounds):
        one = {}
        for name, kind, threads, reduce in cases:
            own = copy.copy(args)
            own.threads = threads
            limit = runner.Peers(folders[kind], args.seconds, threads, None, ROOT / "build/bench").rate(LIMIT)
            one[name] = {LIMIT: limit}
            for forms in FORMS:
                folder = args.folder / f"kinds{number}" / name.replace(" ", "-") / forms
                folder.mkdir(parents=True)
                with Service(own, folder, workers=1, flags=("--forms", forms, "--cache", "3GiB")) as service:
                    one[name][forms] = result_of(puller(
                        own, "kept", "--address", service.coordinator.address, "--reduce", reduce,
                        images=folders[kind]))["img_per_s"]
        rounds.append(one)


def show(out):
    rounds = out.get("kinds", [])
    if not rounds:
        return
    print("\nKinds of photos from the fifth epoch on, one worker to NumPy, by its --forms: ratio to bare full decode "
          "of the same files on as many threads")
    print(f"{'':26}{'limit, img/s':>12}" + "".join(f"{forms:>14}" for forms in FORMS) + "   rounds")
    for name in rounds[0]:
        ratios = {forms: [one[name][forms] / one[name][LIMIT] for one in rounds] for forms in FORMS}
        print(f"{name:26}{runner.median([one[name][LIMIT] for one in rounds]):12.0f}"
              + "".join(f"{runner.median(values):14.2f}" for values in ratios.values()) + "   "
              + "; ".join(", ".join(f"{value:.2f}" for value in values) for values in ratios.values()))
