# SPDX-License-Identifier: Apache-2.0
"""A trainer's own server and files, which the worker may read, refer to forbidden addresses: it gets none of them."""

import io
import json
import os
import pathlib
import sys
import tarfile
import unittest

HERE = pathlib.Path(__file__).resolve().parent
sys.path.extend((str(HERE), str(HERE.parent / "chaos")))
import web  # noqa: E402
from hostile import SECRET, HostileTrainer, cluster  # noqa: E402

# These names resolve to the first address at first, and then to the second (rebound_names.cc).
REBOUND = ("7f000001.a9fea9fe.rebound.test", "7f000001.7f000001.rebound.test")


class LedOut(HostileTrainer):
    def allowed(self):
        """Returns the photos, a folder of the trainer's own, and its server, also by names."""
        self.own, served = self.folder / "own", self.folder / "served"
        self.own.mkdir()
        served.mkdir()
        self.server, self.inside = self._keep(web.Web(served)), self._keep(web.Web(self.secret))
        return [*super().allowed(), self.own, f"{self.server.url}/",
                *(f"http://{name}:{self.port(server)}/" for name in REBOUND for server in (self.server, self.inside))]

    def environment(self):
        return {"LD_PRELOAD": os.environ["LEAT_REBOUND_NAMES_LIB"], "no_proxy": "*"}

    @staticmethod
    def port(server):
        return server.url.rsplit(":", 1)[1]

    def test_it_is_not_led_out_by_its_own_server(self):
        self.works()
        inside = f"http://127.0.0.1:{self.port(self.inside)}/list"
        targets = {
            "metadata": "http://169.254.169.254/latest/meta-data", "decimal": "http://2852039166/",
            "octal": "http://0251.0376.0251.0376/", "mapped": "http://[::ffff:a9fe:a9fe]/",
            "v6": "http://[fd00:ec2::254]/latest", "linklocal": "http://[fe80::1]/", "inside": inside,
            "name": f"http://localhost:{self.port(self.inside)}/list", "any": inside.replace("127.0.0.1", "0.0.0.0"),
            "coordinator": f"http://{self.coordinator.address}/",
            "rebound": "http://7f000001.7f000002.rebound.test/list"}
        for what, target in targets.items():
            self.server.moved[f"/{what}"] = target
            self.assertIn("--allow", self.gets_nothing(
                f"moved-{what}", self.reading("readers.file_list", path=f"{self.server.url}/{what}")), what)
        for what, target in (("file", f"file://{self.secret}/list"), ("gopher", "gopher://127.0.0.1:1/x"),
                             ("scheme", "dict://127.0.0.1:1/x"), ("circle", "/circle"), ("nowhere", "")):
            self.server.moved[f"/{what}"] = target
            self.gets_nothing(f"moved-{what}", self.reading("readers.file_list", path=f"{self.server.url}/{what}"))
        # A name that may be read, and that resolves to the trainer's own server at first.
        for name, told in zip(REBOUND, ("169.254.169.254", "127.0.0.1")):
            asked = self.server.asked
            self.server.moved["/on"] = f"http://{name}:{self.port(self.inside)}/list"
            error = self.gets_nothing(f"name-{told}", self.reading(
                "readers.file_list", path=f"http://{name}:{self.port(self.server)}/on"))
            self.assertIn("--allow", error)
            self.assertIn(told, error)
            self.assertGreater(self.server.asked, asked, "its first address was used")
        self.assertEqual(self.inside.asked, 0)
        self.works()

    def test_it_is_not_led_out_by_its_own_files(self):
        self.works()
        names = {"absolute": f"{self.secret}/list", "dots": "../secret/list", "deep": "a/../../secret/list",
                 "uri": f"file://{self.secret}/list", "web": f"{self.inside.url}/list", "link": "link/list"}
        (self.own / "link").symlink_to(self.secret)
        for what, name in names.items():
            (self.own / f"{what}.txt").write_text(f"{name} 0\n")
            (self.own / f"{what}.json").write_text(json.dumps({
                "images": [{"id": 1, "width": 8, "height": 8, "file_name": name}],
                "categories": [{"id": 1, "name": "a"}],
                "annotations": [{"id": 1, "image_id": 1, "category_id": 1, "bbox": [0, 0, 4, 4]}]}))
            (self.own / f"mds-{what}").mkdir()
            (self.own / f"mds-{what}/link").symlink_to(self.secret)
            (self.own / f"mds-{what}/index.json").write_text(json.dumps({"version": 2, "shards": [{
                "column_encodings": ["jpeg", "int"], "column_names": ["image", "label"], "column_sizes": [None, 8],
                "compression": None, "format": "mds", "hashes": [], "samples": 1, "size_limit": None, "version": 2,
                "raw_data": {"basename": name, "bytes": 100, "hashes": {}}, "zip_data": None}]}))
            self.gets_nothing(f"list-{what}", self.reading("readers.file_list", path=self.own / f"{what}.txt"))
            told = self.gets_nothing(f"coco-{what}", self.reading(
                "readers.coco", annotations=self.own / f"{what}.json", outputs=["image", "image_id"]))
            self.assertRegex(told, "--allow|below root|No such file", what)
            self.gets_nothing(f"mds-{what}", self.reading(
                "readers.mds", path=self.own / f"mds-{what}", columns=["image", "label"]))
            self.gets_nothing(f"files-{what}", self.reading(
                "readers.files", files=[name], labels=[1], root=self.own))
        self.assertIn("--allow", self.gets_nothing("folder-link", self.reading(
            "readers.image_folder", path=self.own / "link")))
        for what in ("idx", "bin"):
            for suffix in ("idx", "bin"):
                path = self.own / f"tokens-{what}.{suffix}"
                path.symlink_to(self.secret / "list") if suffix == what else path.write_bytes(b"MMIDIDX\0\0" * 9)
            self.assertIn("--allow", self.gets_nothing(f"tokens-{what}", {
                "nodes": [cluster.node("readers.tokens", files=self.argument([self.own / f"tokens-{what}.bin"])),
                          cluster.node("pack", (0, 0), length={"int_value": 8})],
                "outputs": [{"name": "tokens", "ref": {"node": 1}}]}))
        self.archives()
        self.assertEqual(self.inside.asked, 0)
        self.works()

    def archives(self):
        """Makes tar archives whose members are links or have names of files outside, and indexes of archives."""
        photo = next(cluster.photos().rglob("*.jpg")).read_bytes()
        for what, kind, name, target in (
                ("symlink", tarfile.SYMTYPE, "a.jpg", f"{self.secret}/list"),
                ("hardlink", tarfile.LNKTYPE, "a.jpg", f"{self.secret}/list"),
                ("device", tarfile.CHRTYPE, "a.jpg", ""),
                ("absolute", tarfile.REGTYPE, f"{self.secret}/new.jpg", ""),
                ("dots", tarfile.REGTYPE, "../secret/new.jpg", "")):
            with tarfile.open(self.own / f"{what}.tar", "w") as archive:
                for member, of, data in ((name, kind, photo if kind == tarfile.REGTYPE else b""),
                                         (name.replace("jpg", "cls"), tarfile.REGTYPE, b"1")):
                    info = tarfile.TarInfo(member)
                    info.type, info.linkname, info.size = of, target if of == kind else "", len(data)
                    archive.addfile(info, io.BytesIO(data))

        def reading(archive, **args):
            return self.reading("readers.webdataset", paths=[self.own / archive], ext=["jpg", "cls"],
                                types=["encoded", "int32"], **args)
        for what in ("symlink", "hardlink", "device"):
            self.gets_nothing(f"tar-{what}", reading(f"{what}.tar"))
        # A name in an archive is only a name: no file is written.
        for what in ("absolute", "dots"):
            consumer = self.pull(reading(f"{what}.tar"), name=f"tar-{what}", batch=1)
            self.assertIsNone(consumer.error)
            self.assertEqual(sorted(path.name for path in self.secret.iterdir()), ["class", "list"])
        self.assertIn("--allow", self.gets_nothing("tar-index", reading("dots.tar", index=[self.secret / "list"])))
        for what, lines in (("beyond", "v1.2 1\njpg 99999999 100 a cls 1024 1 a\n"), ("text", f"v1.2 1\n{SECRET}\n"),
                            ("negative", "v1.2 1\njpg -512 100 a cls 1024 1 a\n")):
            (self.own / f"{what}.idx").write_text(lines)
            self.gets_nothing(f"index-{what}", reading("dots.tar", index=[self.own / f"{what}.idx"]))


if __name__ == "__main__":
    unittest.main()
