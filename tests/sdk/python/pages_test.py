# SPDX-License-Identifier: Apache-2.0
"""Pictures of plans, memory and profiles in notebooks. The environment is that of mge_test."""
import copy
import html
import pickle
import re
import unittest

import numpy as np

import mge
from mge_test import MODEL, images
from onnx_model import FLOAT, model_of, node, tensor

HOSTILE = "</script></title></iframe><img src=x onerror=\"alert('1')\">"


def page_in(shown):
    """Returns the page in a frame of a notebook."""
    begin, end = '<iframe sandbox srcdoc="', '" style="width:100%;height:640px;border:0"></iframe>'
    assert shown.startswith(begin) and shown.endswith(end), shown[:200]
    inner = shown[len(begin):-len(end)]
    assert '"' not in inner and "<" not in inner
    return html.unescape(inner)


class Pages(unittest.TestCase):
    def test_of_a_plan_are_those_of_its_text(self):
        with mge.Session(MODEL) as session:
            plan = session.plan(image=images()[:4])
            self.assertIsInstance(plan, str)
            self.assertTrue(plan.html().startswith("<!DOCTYPE html>"))
            self.assertEqual(page_in(plan._repr_html_()), plan.html())
            self.assertIn("Bars show estimated times", plan.html())
            profile = mge.Profile()
            session.run(image=images()[:4], control=mge.RunControl(profile=profile))
            self.assertIn("Bars show measured times", session.plan(image=images()[:4], profile=profile).html())
            self.assertIs(type(pickle.loads(pickle.dumps(plan))), str)
            self.assertEqual(copy.deepcopy(plan), plan)
        self.assertIsNone(plan._repr_html_())  # the text remains
        with self.assertRaises(mge.ClosedError):
            plan.html()

    def test_of_the_memory_show_the_buffers(self):
        with mge.Session(MODEL) as session:
            session.run(image=images()[:4])
            use = session.memory()
            resident = re.compile("<span>in memory of the process</span><b>[^<]*")  # changes at any time
            self.assertEqual(resident.sub("", page_in(use._repr_html_())), resident.sub("", session.report("memory.html")))
            self.assertIn("Largest buffers", session.report("memory.html"))
            again = pickle.loads(pickle.dumps(use))
            self.assertEqual(again, use)
            self.assertIsNone(again._repr_html_())
        self.assertIsNone(use._repr_html_())

    def test_of_a_profile_have_a_timeline(self):
        profile = mge.Profile()
        self.assertIn("No run has been recorded", page_in(profile._repr_html_()))
        with mge.Session(MODEL, device="virtual0") as session:
            session.run(image=images()[:4], control=mge.RunControl(profile=profile))
        page = page_in(profile._repr_html_())
        self.assertEqual(page, profile.report("html"))
        for part in ("Timeline of one run", "virtual0, queue", "Slowest steps"):
            self.assertIn(part, page)
        timeline = profile.report("mge.timeline/1")
        self.assertEqual(timeline["schema"], "mge.timeline/1")
        for span in timeline["spans"]:
            self.assertLess(span["row"], len(timeline["rows"]))
            self.assertLessEqual(0, span["begin_us"])
            self.assertLessEqual(span["begin_us"], span["end_us"])
            self.assertLessEqual(span["end_us"], timeline["wall_us"] + 1)

    def test_escape_the_names_of_a_model(self):
        nodes = [node("MatMul", ["x", "x"], [HOSTILE]), node("MatMul", [HOSTILE, HOSTILE], ["z"]), node("MatMul", ["z", "z"], ["y"])]
        hostile = model_of(nodes, {"x": tensor(FLOAT, 8, 8)}, {"y": tensor(FLOAT, 8, 8)})
        x = np.ones((8, 8), np.float32)
        profile = mge.Profile()
        with mge.Session(hostile) as session:
            session.run(x, control=mge.RunControl(profile=profile))
            for shown in (session.plan(x), session.memory(), profile):
                page = page_in(shown._repr_html_())
                self.assertNotIn("<img", page)
                self.assertNotIn("</script", page)
                self.assertNotIn("</iframe", page)
            self.assertIn(html.escape(HOSTILE, quote=False)[:20], session.report("memory.html"))


if __name__ == "__main__":
    unittest.main()
