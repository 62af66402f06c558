# SPDX-License-Identifier: Apache-2.0
"""A section of the table about kinds of photos, and numbers of threads: the gain from decoded forms of JPEG files, at
full resolution and at the scale that a crop needs.

Photos are drawn (leat_make_photos) and compressed as each kind. The yardstick decodes the same files on as many
threads.
"""

import concurrent.futures
import copy
import pathlib
import subprocess

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


def make(args, kind, folder):
    """Makes the photos of a kind in a folder; leaves out the few whose chroma sampling turbojpeg.h has no name for."""
    coding, side, count = KINDS[kind]
    drawn = folder.with_suffix(".drawn")
    subprocess.run([args.photo_maker, drawn, str(count), "--max-side", str(side)], check=True)
    program = runner.compiled(ROOT / "build/bench", "jpeg_recode")

    def recode(path):
        to = folder / pathlib.Path(path).relative_to(drawn)
        to.parent.mkdir(parents=True, exist_ok=True)
        return subprocess.run([program, coding, path, to], stderr=subprocess.DEVNULL).returncode

    with concurrent.futures.ThreadPoolExecutor(args.threads) as pool:
        failed = sum(code != 0 for code in pool.map(recode, photos.files(drawn)))
    if failed > count // 16:
        raise RuntimeError(f"{failed} of {count} photos could not be made {kind}")


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
