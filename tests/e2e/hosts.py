# SPDX-License-Identifier: Apache-2.0
"""Several hosts of one job: each is a consumer that takes its part of the rows and keeps their bytes in files."""

import hashlib


class Hosts:
    """For tests of a cluster. `batch` and `fields` are those of the jobs; fields are in the order of the schema."""

    batch = 64
    fields = ("image", "label")

    def hosts(self, spec, count, *flags):
        """Runs a job on so many hosts to the end; returns each one's consumer and folder."""
        hosts = []
        for host in range(count):
            self._hosts = getattr(self, "_hosts", 0) + 1
            folder = self.folder / f"hosts-{self._hosts}"
            folder.mkdir()
            consumer = self.consumer(spec, "--rows", self.batch * host // count, self.batch * (host + 1) // count,
                                     "--dump", folder, "--position-out", folder / "position", *flags)
            hosts.append((consumer, folder))
        for consumer, _ in hosts:
            self.assertIsNone(consumer.finish().error)
        return hosts

    def joined(self, hosts):
        """Returns the steps of several hosts as one list, with the parts' tensors concatenated."""
        joined = []
        for epoch, step, _ in hosts[0][0].steps:
            digest = hashlib.sha256()
            for field in self.fields:
                digest.update(field.encode() + b"\0")
                digest.update(self.bytes_of(hosts, epoch, step, field))
            joined.append((epoch, step, digest.hexdigest()))
        return joined

    def bytes_of(self, hosts, epoch, step, field):
        """Returns the bytes of a field of a whole batch."""
        return b"".join((folder / f"{epoch}-{step}-{field}").read_bytes() for _, folder in hosts)
