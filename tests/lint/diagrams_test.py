# SPDX-License-Identifier: Apache-2.0
"""The converter of diagrams draws what it knows, names what it does not know, and knows every diagram of the pages."""

import html
import pathlib
import re
import sys
import unittest
import xml.etree.ElementTree

DOCS = pathlib.Path(__file__).resolve().parents[2] / "docs"
sys.path.insert(0, str(DOCS / "site"))
import mermaid  # noqa: E402

FLOW = """flowchart LR
    subgraph host["A host"]
        a["one<br/><b>two</b> three"]
    end
    s[("a <store>")]
    a & b["box"] -->|"a label that is long"| s
    a <--> b
    s -.-> a
"""
SEQUENCE = """sequenceDiagram
    autonumber
    participant T as Trainer
    participant E as Engine
    T->>E: Next → waits
    E->>E: plans & draws
    E-->>T: Batch
"""


class DiagramsTest(unittest.TestCase):
    def test_a_flowchart_becomes_dot(self):
        lines = mermaid.dot_of(FLOW).splitlines()
        self.assertIn("rankdir=LR", lines[1])
        self.assertEqual(lines[4:], [
            'subgraph cluster_host { label=<A host> style="rounded,dashed"',
            "a [label=<one<br/><b>two</b>&#160;three>]",
            "}",
            "s [shape=cylinder style=solid label=<a &lt;store&gt;>]",
            "b [label=<box>]",
            "a -> s [label=<a label that is<br/>long>]",
            "b -> s [label=<a label that is<br/>long>]",
            "a -> b [dir=both]",
            "s -> a [style=dashed]",
            "}"])

    def test_a_sequence_becomes_svg_with_a_line_for_each_message(self):
        svg = xml.etree.ElementTree.fromstring(mermaid.sequence_of(SEQUENCE))
        self.assertEqual([text.text for text in svg.iter("text")],
                         ["Trainer", "Engine", "1. Next → waits", "2. plans & draws", "3. Batch"])
        dashed = [path for path in svg.iter("path") if path.get("stroke-dasharray")]
        self.assertEqual(len(dashed), 1)

    def test_a_line_that_it_does_not_know_is_named(self):
        for text, line in ((FLOW + "a ==> b", "'a ==> b'"), (FLOW + "a{{x}} --> b", "'a{{x}}'"),
                           ("flowchart RL", "'flowchart RL'"), ("flowchart TB\nsubgraph x[\"y\"]", "a subgraph"),
                           (SEQUENCE + "T->>X: a", "'T->>X: a'"), ("pie", "'pie'")):
            with self.assertRaises(mermaid.DiagramError) as caught:
                mermaid.sequence_of(text) if text.startswith("seq") else mermaid.dot_of(text)
            self.assertIn(line, str(caught.exception))

    def test_every_diagram_of_the_pages_can_be_drawn(self):
        found = 0
        for page in sorted(DOCS.rglob("*.md")):
            for text in re.findall(r"^```mermaid\n(.*?)^```", page.read_text(), re.S | re.M):
                found += 1
                with self.subTest(page=str(page.relative_to(DOCS)), begins=text[:40]):
                    if text.startswith("sequence"):
                        messages = re.findall(r">>\w+: (.+)", text)
                        svg = mermaid.sequence_of(text)
                        self.assertEqual([each for each in messages if html.escape(each) not in svg], [])
                    else:
                        labels = re.findall(r'\["([^"<]+)["<]', text)
                        dot = mermaid.dot_of(text)
                        self.assertEqual([each for each in labels if html.escape(each) not in dot], [])
        self.assertGreater(found, 10)


if __name__ == "__main__":
    unittest.main()
