# SPDX-License-Identifier: Apache-2.0
"""The page as users see it, in states that take an hour to develop: nothing is cut off, and good states are quiet.

LEAT_SCREENSHOTS=FOLDER keeps a picture of each scene, in both colours and at both widths. docs/images has some of
them, which are made again by

    LEAT_SCREENSHOTS=/tmp/pictures ctest --test-dir build/dev -R e2e.pictures
    cd docs/images && for each in page-*-*; do cp /tmp/pictures/$each .; done
"""

import os
import pathlib
import subprocess
import time
import unittest

import cluster
from browser import Browser
from cluster import PATIENCE_S, program
from scene import WIDTHS, Scene, small_png

TOP = 1330  # pixels of a picture for the docs

# Text that cannot be read: it is wider than its element, which neither scrolls nor has the rest in its title.
CUT = """[...document.querySelectorAll("#page *, header *")].filter((each) => {
  const style = getComputedStyle(each);
  return each.clientWidth > 0 && each.scrollWidth > each.clientWidth + 1 && style.overflowX !== "visible"
    && !["auto", "scroll"].includes(style.overflowX) && !each.closest("[title]") && !each.closest(".unseen, .chart");
}).map((each) => `${each.tagName} ${each.className}: ${each.textContent.slice(0, 60)}`)"""
# The middle of each text must be its own element, or one in it: nothing covers it.
COVERED = """[...document.querySelectorAll("#page :is(h2, dt, dd, th, td, b, code, .name, .limit, .title, .level)")]
  .filter((each) => each.textContent && !each.closest(".events, .unseen")).filter((each) => {
    each.scrollIntoView({ block: "center" });
    const box = each.getClientRects()[0];
    if (!box || box.width === 0) return false;
    const top = document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2);
    return top && !each.contains(top) && !top.contains(each);
  }).map((each) => each.textContent.slice(0, 60))"""


class PicturesTest(cluster.ClusterTest):
    def setUp(self):
        super().setUp()
        os.environ["TZ"] = "UTC"
        self.browser = self._keep(Browser(self.folder))
        self.taken = []
        self.addCleanup(self.write)

    def show(self, name, keep=True):
        """Opens the page of a scene, checks the rules for every page, and leaves it open at the first width."""
        scene = self._keep(Scene(name))
        for width in reversed(WIDTHS):
            self.browser.look(width=width)
            self.browser.open(scene.page)
            self.until("the page shows a state", lambda: self.browser.ask("document.body.dataset.shown"))
            if not self.browser.ask("document.querySelector('#job').hidden"):
                self.until("the charts are there", lambda: self.browser.texts(".dygraph-axis-label-x"))
            self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), width, name)
            self.assertEqual(self.browser.ask(CUT), [], (name, width))
            self.assertEqual(self.browser.ask(COVERED), [], (name, width))
            for chart in ("rate", "wait"):
                for axis in "xy":
                    labels = self.browser.texts(f"#{chart} .dygraph-axis-label-{axis}")
                    self.assertEqual(len(labels), len(set(labels)), (name, width, labels))
            if keep and (folder := os.environ.get("LEAT_SCREENSHOTS")):
                self.keep(pathlib.Path(folder), name, width)
        self.assertEqual(self.browser.complaints(), [])
        return scene

    def keep(self, folder, name, width):
        height = int(self.browser.ask("document.documentElement.scrollHeight"))
        for style in ("dark", "light"):
            self.browser.look(dark=style == "dark", width=width, height=height)
            self.browser.ask("scrollTo(0, 0)")
            # The charts are drawn again in other colours.
            self.browser.driver.execute_async_script(
                "requestAnimationFrame(() => requestAnimationFrame(arguments[0]));")
            self.taken.append((folder / f"page-{name}-{style}-{width}", self.browser.driver.get_screenshot_as_base64()))
        self.browser.look(width=width)

    def write(self):
        """Writes the pictures: the whole page, and the part of it that fits on a page of text."""
        for path, picture in self.taken:
            path.with_suffix(".png").write_bytes(small_png(self.browser, picture))
            path.with_name(f"{path.name}-top.png").write_bytes(small_png(self.browser, picture, TOP))

    def colour(self, selector, what="color"):
        return self.browser.ask(f"getComputedStyle(document.querySelector({selector!r})).{what}")

    def test_a_coordinator_that_has_just_begun_says_the_next_step(self):
        scene = self.show("none")
        self.assertEqual(self.browser.texts("#jobs .none"),
                         [f'A training makes them: leat.connect("{scene.grpc}").job(...)'])
        self.assertEqual(self.browser.texts("#workers .none"),
                         [f"There is none. Start one: leat-worker --coordinator {scene.grpc}"])
        # Parts without contents take no room.
        for part in ("#stages", "#queues", "#storage", "#job", "#sheet"):
            self.assertEqual(self.browser.ask(f"document.querySelector('{part}').offsetHeight"), 0, part)

    def test_a_training_in_its_first_minute(self):
        self.show("start")
        self.assertEqual(self.browser.texts("#jobs .limit"), ["limited by decode and augment (40 s)"])
        # The axis begins with the first row, and shows seconds.
        labels = self.browser.texts("#rate .dygraph-axis-label-x")
        self.assertEqual(labels[0], "09:59:20")
        self.assertGreater(len(labels), 3)
        # The bars from before the page was opened are known, too.
        points = self.browser.ask(
            "[...document.querySelectorAll('#queues polyline')].map((each) => each.points.length)")
        self.assertGreaterEqual(min(points), 18)
        self.assertEqual(self.browser.ask("document.querySelector('#stages').className"), "waits")
        # Screen readers get a description of the charts.
        said = [self.browser.ask(f"document.querySelector('#{chart}').getAttribute('aria-label')")
                for chart in ("rate", "wait")]
        self.assertRegex(said[0], r"^rows/s: \S+ k at last, from \S+ k to \S+ k$")
        self.assertRegex(said[1], r"^p50: .* ms at last, .*; p95: .* ms to .* ms$")

    def test_a_training_in_its_first_hour_is_quiet(self):
        scene = self.show("hour")
        self.assertEqual(self.browser.texts("#jobs .limit"), ["limited by the trainer (60 s)"])
        self.assertEqual(self.browser.texts("#rate .dygraph-axis-label-x")[-1], "10:00")
        self.assertEqual(self.browser.ask("document.querySelector('#stages').className"), "")
        loud = "#page :is(.warn, .bad, .dry, .slow, .slower):not(.mark, .events *)"
        self.assertEqual(self.browser.texts(loud), [])
        self.assertTrue(self.browser.ask("document.querySelector('#workers .legend').hidden"))
        # After an hour, the open page holds no more than before.
        self.until("it is live", lambda: "live" in self.browser.texts("#connection")[0])
        before = self.browser.ask("document.querySelectorAll('*').length")
        scene.goes_on(3600)
        self.until("it shows the next hour", lambda: "11:00" in self.browser.texts("#rate .dygraph-axis-label-x")[-1])
        self.assertLess(self.browser.ask("document.querySelectorAll('*').length"), before + 400)
        self.assertEqual(self.browser.ask("document.querySelectorAll('#queues polyline')[0].points.length"), 150)

    def test_a_worker_that_is_shown_stays_as_it_is_now(self):
        scene = self.show("start", keep=False)
        self.browser.driver.execute_script("document.querySelector('#workers .tiles .tile').click();")
        self.until("it is shown", lambda: self.browser.texts("#worker h3") == ["node-01"])
        self.assertEqual(self.browser.texts("#worker-said"), ["node-01 is shown below the tiles"])
        self.until("its age is told", lambda: "Here since48 s" in self.browser.texts("#worker dl div"))
        scene.goes_on(30)
        self.until("its age goes on", lambda: "Here since78 s" in self.browser.texts("#worker dl div"))
        self.browser.driver.execute_script("document.querySelector('#worker button').click();")
        self.assertEqual(self.browser.texts("#worker *"), [])

    def test_workers_that_are_lost_have_no_rate(self):
        self.show("lost")
        tiles = dict(zip(self.browser.texts("#workers .tile b"), self.browser.texts("#workers .tile span")))
        self.assertEqual([name for name, text in tiles.items() if text == "lost"], ["node-02", "node-03"])
        self.assertEqual(self.browser.texts("#workers .legend span"), ["2 lost", "1 drains", "3 work"])

    def test_what_has_failed_says_why(self):
        self.show("failed")
        whys = self.browser.texts("#storage .why")
        self.assertEqual(len(whys), 2)
        self.assertIn("/mnt/coco: No such file or directory", "".join(whys))
        self.assertEqual(self.browser.texts("#jobs .limit")[1], "given up")

    def test_forty_workers_and_twelve_jobs(self):
        self.show("many")
        self.assertEqual(len(self.browser.texts("#jobs .banner")), 12)
        self.assertEqual(self.browser.texts("#workers .legend span"),
                         ["1 could make less than half of its class",
                          "1 could make less than four fifths of its class", "38 work"])

    def test_names_that_are_long_are_told_apart(self):
        self.show("names")
        for part in ("#workers .tile b", "#strip .hosts li"):
            names = self.browser.texts(part)
            self.assertEqual(len(names), len(set(names)), names)
        self.browser.driver.execute_script("document.querySelectorAll('#jobs .choose')[1].click();")
        self.until("the other job's consumers are there", lambda: len(self.browser.texts("#strip .hosts li")) == 5)
        names = self.browser.texts("#strip .hosts li")
        self.assertEqual(len(set(names)), 5, names)
        self.assertEqual(self.browser.ask("[...document.querySelectorAll('#strip .hosts li')].filter((each) => "
                                          "each.scrollWidth > each.clientWidth + 1).length"), 0)

    def test_a_report_fits_on_a_screen_on_a_telephone_and_on_paper(self):
        # A table wider than the screen is scrolled by itself, and not with the page.
        scene = self._keep(Scene("names", int(time.time())))
        report = self.folder / "report.html"
        done = subprocess.run([program("CLI"), "--coordinator", scene.grpc, "report", "-o", str(report)],
                              capture_output=True, text=True, timeout=PATIENCE_S)
        self.assertEqual(done.returncode, 0, done.stderr)
        driver = self.browser.driver
        for media, width in (("screen", 1400), ("screen", 400), ("print", 1047)):  # A4, without its margins
            self.browser.look(width=width)
            driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media})
            self.browser.open(report.as_uri())
            self.assertLessEqual(self.browser.ask("document.documentElement.scrollWidth"), width, media)
            # Times are not broken across lines.
            broken = self.browser.ask("""[...document.querySelectorAll("td")]
              .filter((each) => /^\\d{4}-\\d\\d-\\d\\dT[\\d:.]+Z$/.test(each.textContent)).filter((each) => {
                const text = document.createRange();
                text.selectNodeContents(each);
                return text.getClientRects().length > 1;
              }).length""")
            self.assertEqual(broken, 0, (media, width))
            if media == "screen" and (folder := os.environ.get("LEAT_SCREENSHOTS")):
                self.taken.append((pathlib.Path(folder) / f"report-{width}", driver.get_screenshot_as_base64()))
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})


if __name__ == "__main__":
    unittest.main()
