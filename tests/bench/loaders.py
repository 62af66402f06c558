# SPDX-License-Identifier: Apache-2.0
"""The section `peers` of the table: every loader's first epoch from a cold start, and its tenth."""

import pathlib
import shutil

import chart
from peers import LIMIT, photos, runner
from peers.runner import median
from service import ROOT, Service, puller, result_of

NAMES, QUICK_PHOTOS = 10, 500  # names per photo; photos in a quick run
LEAT = {"leat": (), "leat_none": ("--forms", "none")}
TITLES = {
    "leat": "Leat", "leat_none": "Leat, `--forms none`", "tfdata": "tf.data",
    "tfdata_cache": "tf.data, `.cache()` of decoded images", "tfdata_service": "tf.data service, one worker",
    "torch_pil": "PyTorch DataLoader, Pillow-SIMD", "torch_v2": "PyTorch DataLoader, torchvision v2",
    "torchcodec": "PyTorch DataLoader, TorchCodec", "grain_pil": "Grain, Pillow-SIMD",
    "dali_cpu_fused": "DALI on the CPU, fused decoder", "dali_cpu": "DALI on the CPU",
    "ray_data": "Ray Data, Pillow-SIMD",
    "spdl": "SPDL", "litdata": "LitData", "mosaic": "MosaicML Streaming", "ffcv": "FFCV, JPEG mode",
}
PAGE, CHART = ROOT / "docs/measurements/cpu.md", ROOT / "docs/images/rates.svg"
BEGIN, END = "<!-- tests/bench/run --only peers writes this table -->\n", "<!-- end of the table -->\n"


def copied(images, folder, names, most=None):
    """Copies photos of `images` to `folder`, each under `names` names; returns how many there are. Copying puts them in
    the page cache."""
    folder.mkdir()
    files = photos.files(images)[:most]
    for number, file in enumerate(files):
        for name in range(names):
            shutil.copyfile(file, folder / f"{name}-{number:06}.jpg")
    return len(files) * names


def measure(args, out):
    """Measures rounds of: the yardstick, Leat, the peers. Each has a process and a service of its own; their order
    changes in each round."""
    folder = args.folder / "loaders"
    count = copied(args.images, folder, 1 if args.quick else NAMES, QUICK_PHOTOS if args.quick else None)
    found = out["peers"] = {"photos": count, "rounds": [], "prepare_s": {}}
    with runner.Peers(folder, args.seconds, args.threads, args.packages.python, ROOT / "build/bench",
                      args.packages.absent) as peers:
        for number in range(args.rounds):
            one = {LIMIT: peers.rate(LIMIT)} if args.yardstick else {}
            names = [*LEAT, *args.peers]
            for name in names[number % len(names):] + names[:number % len(names)]:
                one[name] = _of_leat(args, folder, f"{name}{number}", LEAT[name]) if name in LEAT else \
                    peers.epochs(name, count)
                print(f"  round {number + 1} of {args.rounds}, {name}: {_words(one[name])}", flush=True)
            found["rounds"].append(one)
        found["prepare_s"] = peers.prepare_s


def _words(value):
    return f"absent: {value}" if isinstance(value, str) else "first epoch {:.0f} img/s, tenth {:.0f}".format(*value)


def _of_leat(args, images, name, flags):
    place = args.folder / f"loaders-{name}"
    place.mkdir()
    with Service(args, place, flags=flags) as service:
        try:
            measured = result_of(puller(args, "cold", "--address", service.coordinator.address, images=images))
        except RuntimeError as error:
            return str(error)
    return [measured["first"], measured["tenth"]]


def rows(found):
    """Returns [(name, [ratio of the first epoch, of the tenth], [img/s, img/s], rounds or the reason why there are
    none)], the fastest first epoch first; ratios are to the yardstick of the same round."""
    done, absent = [], []
    for name in dict.fromkeys(name for one in found["rounds"] for name in one if name != LIMIT):
        rounds = [(one[name], one.get(LIMIT)) for one in found["rounds"] if name in one]
        rates = [(rate, limit) for rate, limit in rounds if isinstance(rate, list)]
        if not rates:
            absent.append((name, None, None, rounds[0][0]))
            continue
        ratios = [median([rate[epoch] / limit for rate, limit in rates if isinstance(limit, float)])
                  for epoch in (0, 1)]
        words = ", ".join(f"{rate[0]:.0f} / {rate[1]:.0f}" if isinstance(rate, list) else f"none: {rate}"
                          for rate, _ in rounds)
        done.append((name, ratios, [median([rate[epoch] for rate, _ in rates]) for epoch in (0, 1)], words))
    return sorted(done, key=lambda row: -row[2][0]) + absent


def table(found):
    """Returns the table in Markdown, and below it the absent loaders and the time to prepare data."""
    lines = ["| | first epoch, img/s | ratio | tenth epoch, img/s | ratio | rounds, first / tenth |",
             "|---|--:|--:|--:|--:|---|"]
    limits = [one[LIMIT] for one in found["rounds"] if isinstance(one.get(LIMIT), float)]
    if limits:
        shown = ", ".join(f"{value:.0f}" for value in limits)
        lines.append(f"| bare libjpeg-turbo, full decode | {median(limits):.0f} | 1.00 | {median(limits):.0f} | 1.00 "
                     f"| {shown} |")
    notes = []
    for name, ratios, rates, words in rows(found):
        if rates is None:
            notes.append(f"* {TITLES[name]} is absent: {words}")
            continue
        first, tenth = ("-" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
        lines.append(f"| {TITLES[name]} | {rates[0]:.0f} | {first} | {rates[1]:.0f} | {tenth} | {words} |")
    notes += [f"* {TITLES[name]} took {took:.0f} s to convert the photos into its own format, which is not counted."
              for name, took in found["prepare_s"].items()]
    return "\n".join(lines + ([""] + notes if notes else [])) + "\n"


def show(out):
    if "peers" not in out:
        return
    print(f"\nThe first epoch from a cold start, and the tenth, of {out['peers']['photos']} photos; "
          "random-resized-crop 224 + flip, uint8 batches of 64\n" + table(out["peers"]))


def write(found, page=PAGE, target=CHART):
    """Puts the table into the page, and draws README's chart."""
    page = pathlib.Path(page)
    before, begin, rest = page.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not begin or not end:
        raise ValueError(f"{page}: want the lines {BEGIN.strip()!r} and {END.strip()!r} around the table")
    page.write_text(before + begin + table(found) + end + after)
    chart.draw([(TITLES[name].replace("`", ""), rates, ratios) for name, ratios, rates, _ in rows(found) if rates],
               target)
