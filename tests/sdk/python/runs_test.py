# SPDX-License-Identifier: Apache-2.0
"""Runs that do not wait, profiles, training, and backends as files. The environment is that of mge_test."""
import os
import pathlib
import tempfile
import unittest

import numpy as np

import mge
from mge_test import MODEL, images, labels, python


class EnqueuedRuns(unittest.TestCase):
    def test_return_the_outputs_of_a_run_that_waits(self):
        with mge.Session(MODEL, device="virtual0") as session:
            wanted = session.run(image=images()[:4])["probabilities"]
            run = session.enqueue(image=images()[:4])
            np.testing.assert_array_equal(run.result()["probabilities"], wanted)
            self.assertTrue(run.wait())
            self.assertTrue(run.wait(timeout=0))
            self.assertEqual(run.outputs["probabilities"].shape, wanted.shape)

    def test_follow_the_runs_that_they_are_after(self):
        with mge.Session(MODEL, device="virtual0", outputs_on_device=True) as session:
            image = mge.Tensor(images()[:4], device="virtual0")
            first = session.enqueue([image])
            second = session.enqueue([image], after=[first], outputs=["probabilities"])
            self.assertIsInstance(second.result()["probabilities"], mge.Tensor)
            np.testing.assert_array_equal(second.result()["probabilities"], first.outputs["probabilities"])

    def test_raise_the_error_of_their_inputs_at_once(self):
        with mge.Session(MODEL) as session, self.assertRaises(mge.InvalidError):
            session.enqueue(image=np.zeros((1, 2, 3, 4), np.float32))


class Profiles(unittest.TestCase):
    def test_collect_the_runs_of_their_controls(self):
        profile = mge.Profile()
        control = mge.RunControl(profile=profile)
        with mge.Session(MODEL, device="cpu0") as session:
            for given in (control, None, control):
                session.run(image=images(), control=given)
            self.assertEqual(profile.report()["runs"], 2)
            self.assertTrue(profile.report("trace")["traceEvents"])
            self.assertNotEqual(session.plan(image=images(), profile=profile), session.plan(image=images()))
        profile.reset()
        self.assertEqual(profile.report()["runs"], 0)

    def test_tell_no_overdue_run_where_there_is_none(self):
        self.assertEqual(mge.RunControl(timeout=1).overdue(), (0, ""))


class Backends(unittest.TestCase):
    def test_are_checked_installed_and_removed_as_files(self):
        found = {row["name"]: row["path"] for row in mge.plugins.verify()["files"]}
        with tempfile.TemporaryDirectory() as folder:
            file = mge.plugins.install(found["null"], directories=[folder])
            self.assertEqual(pathlib.Path(file).parent, pathlib.Path(folder))
            (row,) = mge.plugins.verify(file)["files"]
            self.assertEqual(row["verdict"], "accepted")
            self.assertEqual(mge.plugins.remove("null", directories=[folder]), file)
        with self.assertRaises(mge.Error):
            mge.plugins.install("/nowhere/mge_none.so")

    def test_may_be_quarantined(self):
        script = ("import mge, sys\n"
                  "null = next(r['path'] for r in mge.plugins.verify()['files'] if r['name'] == 'null')\n"
                  "mge.plugins.quarantine(null, 'It is a test.')\n"
                  "print(mge.plugins.verify(null)['files'][0]['verdict'])\n"
                  "mge.plugins.end_quarantine('null')\n"
                  "print(mge.plugins.verify(null)['files'][0]['verdict'])\n")
        with tempfile.TemporaryDirectory() as folder:
            out, err = python(script, HOME=folder, XDG_STATE_HOME=folder, XDG_CACHE_HOME=folder, XDG_CONFIG_HOME=folder,
                              XDG_DATA_HOME=folder).communicate()
        self.assertEqual(out, "refused\naccepted\n", err)


class Training(unittest.TestCase):
    def test_lowers_the_loss_and_saves_the_model(self):
        with mge.Trainer(MODEL, optimizer="adam", device="cpu0") as trainer, tempfile.TemporaryDirectory() as folder:
            wrong = (labels() + 1) % 10
            losses = [trainer.step(image=images(), labels=wrong, learning_rate=0.01) for _ in range(30)]
            self.assertLess(losses[-1], losses[0] / 2)
            name = trainer.parameters[0]
            self.assertGreater(np.abs(trainer.states[name + ".mean"]).max(), 0)
            trainer.save(f"{folder}/trained.onnx")
            result = mge.run(f"{folder}/trained.onnx", image=images())["probabilities"]
            self.assertGreater(np.mean(result.argmax(1) == wrong), 0.5)

    def test_continues_from_states_that_are_assigned(self):
        for device in ("cpu0", "virtual0", "virtual0,virtual1"):
            with self.subTest(device=device):
                self.continue_on(device)

    def continue_on(self, device):
        first, second = (mge.Trainer(MODEL, momentum=0.9, device=device, data_parallel="," in device) for _ in range(2))

        def step(trainer):
            return trainer.step(image=images(), labels=labels(), learning_rate=0.1)

        step(first)
        self.assertLessEqual({*first.parameters, *(p + ".momentum" for p in first.parameters)}, set(first.states))
        self.assertEqual(len(first.states), len(list(first.states)))
        second.states.update(first.states)
        self.assertEqual(step(first), step(second))
        name = first.parameters[-1]
        shape = first.states[name].shape
        first.states[name] = np.zeros(shape).tolist()  # of the state's type
        np.testing.assert_array_equal(first.states[name], np.zeros(shape, np.float32))
        second.states[name] = mge.Tensor(np.zeros(shape, np.float32), device="virtual0")
        self.assertEqual(step(first), step(second))

    def test_continues_from_a_checkpoint(self):
        with tempfile.TemporaryDirectory() as folder:
            first, second = (mge.Trainer(MODEL, optimizer="adam", device="cpu0") for _ in range(2))

            def steps(trainer):
                return [trainer.step(image=images(), labels=labels(), learning_rate=0.01) for _ in range(3)]

            steps(first)
            first.save_checkpoint(f"{folder}/a.ckpt", notes="batch 3")
            self.assertEqual(second.load_checkpoint(f"{folder}/a.ckpt"), "batch 3")
            self.assertEqual(steps(first), steps(second))
            for name, value in first.states.items():
                np.testing.assert_array_equal(value, second.states[name])
            self.assertEqual(os.listdir(folder), ["a.ckpt"])

    def test_evaluates_without_a_change(self):
        for device in ("cpu0", "virtual0", "virtual0,virtual1"):
            with self.subTest(device=device):
                trainer = mge.Trainer(MODEL, optimizer="adam", device=device, data_parallel="," in device)
                trainer.step(image=images(), labels=labels(), learning_rate=0.01)
                before = dict(trainer.states)
                loss = trainer.evaluate(image=images(), labels=labels().astype(np.int32))
                self.assertEqual(loss, trainer.evaluate({"image": images()}, labels=labels()))
                for name, value in trainer.states.items():
                    np.testing.assert_array_equal(value, before[name])
                outputs = trainer.evaluation.run(image=images(), labels=labels())
                with tempfile.TemporaryDirectory() as folder:
                    trainer.save(f"{folder}/trained.onnx")
                    saved = mge.run(f"{folder}/trained.onnx", image=images())["probabilities"]
                np.testing.assert_allclose(outputs["probabilities"], saved, rtol=1e-5, atol=1e-6)
                self.assertAlmostEqual(loss, trainer.step(image=images(), labels=labels(), learning_rate=0.01), 5)

    def test_says_what_is_wrong_with_a_batch(self):
        trainer = mge.Trainer(MODEL, device="cpu0")
        with self.assertRaisesRegex(mge.UsageError, "labels have type float32; the loss needs numbers of classes"):
            trainer.step(image=images(), labels=labels().astype(np.float32), learning_rate=0.1)
        with self.assertRaisesRegex(mge.InvalidError, "the batch is empty"):
            trainer.step(image=images()[:0], labels=labels()[:0], learning_rate=0.1)
        bad = images().copy()
        bad.flat[7] = np.nan
        with self.assertRaisesRegex(mge.InvalidError, "input 'image' has NaN at element 7"):
            trainer.step(image=bad, labels=labels(), learning_rate=0.1)
        skips = mge.Trainer(MODEL, device="cpu0", on_nan="skip")
        self.assertTrue(np.isnan(skips.step(image=bad, labels=labels(), learning_rate=0.1)))
        self.assertTrue(np.isfinite(skips.states[skips.parameters[0]]).all())

    def test_refuses_states_that_do_not_fit(self):
        trainer = mge.Trainer(MODEL, device="cpu0")
        name = trainer.parameters[0]
        with self.assertRaisesRegex(mge.InvalidError, "cannot take these elements"):
            trainer.states[name] = np.zeros(3, np.float32)
        with self.assertRaisesRegex(mge.InvalidError, "no state 'none'"):
            trainer.states["none"]
        with self.assertRaisesRegex(mge.UsageError, "not removed"):
            del trainer.states[name]
        self.assertEqual(dict(mge.Session(MODEL).states), {})

    def test_takes_labels_under_another_name(self):
        trainer = mge.Trainer(MODEL, labels_name="digit", device="cpu0")
        self.assertEqual([v.name for v in trainer.inputs], ["image", "digit", "learning_rate"])
        loss = trainer.step(image=images(), labels=labels(), learning_rate=0)
        self.assertEqual(trainer.step({"image": images(), "digit": labels()}, learning_rate=0), loss)
        with self.assertRaisesRegex(mge.InvalidError, "labels_name"):
            mge.Trainer(MODEL, labels_name="image")

    def test_on_two_devices_gives_the_losses_of_one(self):
        losses = []
        for device, data_parallel in (("virtual0", False), ("virtual0,virtual1", True)):
            with mge.Trainer(MODEL, device=device, data_parallel=data_parallel) as trainer:
                losses.append([trainer.step(image=images()[:9], labels=labels()[:9], learning_rate=0.1) for _ in range(3)])
        np.testing.assert_allclose(losses[0], losses[1], rtol=1e-4)
        self.assertNotEqual(losses[0][0], losses[0][2])


if __name__ == "__main__":
    unittest.main()
