# SPDX-License-Identifier: Apache-2.0
"""The loop, the options and the copies of trainers (mge.Trainer), and samplers and workers of data loaders."""
import copy
import io
import os
import pathlib
import pickle
import time
import unittest
import unittest.mock

import numpy as np

import mge
from mge.data import ArrayDataset, DataLoader, RandomSampler, SequentialSampler, WeightedSampler, worker_info

DIGITS = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits"


def images():
    return np.load(DIGITS / "digits_images.npy").astype(np.float32).reshape(-1, 1, 8, 8)


def labels():
    return np.load(DIGITS / "digits_labels.npy").astype(np.int64)


def trainer(**options):
    return mge.Trainer(DIGITS / "digits.onnx", device="cpu0", **options)


class Fitting(unittest.TestCase):
    def batches(self, count=2):
        return [{"image": images(), "labels": labels()}] * count

    def test_trains_and_measures_each_epoch(self):
        rows, steps = [], []

        class Counter:
            def on_step(self, trainer, numbers):
                steps.append(numbers["loss"])

        with trainer(schedule=mge.schedules.cosine(0.05)) as t:
            history = t.fit(self.batches(), 3, validation=self.batches(1), metrics=["accuracy"], progress=False,
                            callbacks=[Counter(), lambda who, row: rows.append(row)])
            self.assertEqual(t.steps_done, 6)
            self.assertEqual(t.schedule.steps, 6)
            self.assertAlmostEqual(history[-1]["validation_loss"], t.evaluate(image=images(), labels=labels()), places=6)
        self.assertEqual([row["epoch"] for row in history], [1, 2, 3])
        self.assertEqual(rows, history)
        self.assertEqual(len(steps), 6)
        self.assertAlmostEqual(history[0]["loss"], np.mean(steps[:2]), places=5)
        self.assertLessEqual(set(history[0]), {"epoch", "loss", "accuracy", "validation_loss", "validation_accuracy"})

    def test_ends_when_a_callback_says_so(self):
        with trainer() as t:
            self.assertEqual(len(t.fit(self.batches(), 5, learning_rate=0.01, callbacks=[lambda who, row: row["epoch"] == 2])), 2)

    def test_takes_tuples_of_a_loader(self):
        loader = DataLoader(ArrayDataset(images(), labels().astype(np.int32)), 32, shuffle=True, seed=1)
        with trainer(optimizer="adam") as t:
            history = t.fit(loader, 2, learning_rate=0.001, metrics={"right": lambda y, l: np.mean(y.argmax(1) == l)})
            self.assertIn("right", history[0])

    def test_prints_each_epoch_if_asked(self):
        with trainer() as t, unittest.mock.patch("sys.stderr", io.StringIO()) as out:
            t.fit(self.batches(1), 1, learning_rate=0.01, progress=True)
        self.assertIn("epoch 1  loss", out.getvalue())

    def test_refuses_what_it_cannot_iterate_again(self):
        with trainer() as t:
            with self.assertRaisesRegex(mge.UsageError, "data is an iterator"):
                t.fit(iter(self.batches()), 2, learning_rate=0.01)
            with self.assertRaisesRegex(mge.UsageError, "no learning_rate"):
                t.fit(self.batches(), 1)
            with self.assertRaisesRegex(mge.UsageError, "a batch has 1 values"):
                t.fit([(images(),)], 1, learning_rate=0.01)


class Options(unittest.TestCase):
    def test_groups_freeze_by_a_rate_of_zero(self):
        with trainer() as t:
            name = t.parameters[0]
        with trainer(groups={name: {"rate": 0}}) as t:
            before = dict(t.states)
            t.step(image=images(), labels=(labels() + 1) % 10, learning_rate=0.1)
            np.testing.assert_array_equal(t.states[name], before[name])
            other = t.parameters[1]
            self.assertGreater(np.abs(t.states[other] - before[other]).max(), 0)
        with self.assertRaisesRegex(mge.UsageError, "'w' has \\['lr'\\]"):
            trainer(groups={"w": {"lr": 1}})

    def test_gradients_are_readable_by_name(self):
        with trainer(keep_gradients=True) as t:
            before = {name: t.states[name] for name in t.parameters}
            t.step(image=images(), labels=(labels() + 1) % 10, learning_rate=0.5)
            for name, gradient in t.gradients.items():
                np.testing.assert_allclose(t.states[name], before[name] - 0.5 * gradient, rtol=1e-5, atol=1e-6)
        with trainer() as t, self.assertRaisesRegex(mge.UsageError, "keep_gradients=True"):
            t.gradients

    def test_schedules_have_the_rates_of_the_library(self):
        cosine = mge.schedules.cosine(2.0, steps=100, warmup=0.1)
        self.assertAlmostEqual(cosine.at(5), 1.0)
        self.assertAlmostEqual(cosine.at(55), 1.0)
        self.assertAlmostEqual(mge.schedules.table(1.0, [(0, 1), (1, 0)], steps=10).at(5), 0.5)
        self.assertEqual(mge.schedules.constant(0.3).at(7), 0.3)
        with self.assertRaisesRegex(mge.UsageError, "give steps"):
            mge.schedules.linear(1.0).at(0)

    def test_a_step_without_a_rate_uses_the_schedule(self):
        with trainer(schedule=mge.schedules.linear(0.1, steps=2), keep_gradients=True) as t:
            name = t.parameters[0]
            t.step(image=images(), labels=(labels() + 1) % 10)
            before = t.states[name]
            t.step(image=images(), labels=(labels() + 1) % 10)
            np.testing.assert_allclose(t.states[name], before - 0.05 * t.gradients[name], rtol=1e-5, atol=1e-6)
            self.assertGreater(t.memory().planned_peak_bytes, 0)

    def test_floats_of_another_width_are_converted(self):
        with trainer() as a, trainer() as b:
            self.assertEqual(a.step(image=images().astype(np.float64), labels=labels().astype(np.uint8), learning_rate=0.1),
                             b.step(image=images(), labels=labels(), learning_rate=0.1))


class Copies(unittest.TestCase):
    def test_sessions_are_copied_by_path_and_by_bytes(self):
        for model in (DIGITS / "digits.onnx", (DIGITS / "digits.onnx").read_bytes()):
            with mge.Session(model, device="cpu0") as session:
                want = session.run(image=images())["probabilities"]
                for other in (copy.deepcopy(session), pickle.loads(pickle.dumps(session))):
                    np.testing.assert_array_equal(other.run(image=images())["probabilities"], want)
                    other.close()
        with self.assertRaises(mge.ClosedError):
            pickle.dumps(session)

    def test_a_copy_of_a_trainer_continues_with_its_states(self):
        with trainer(optimizer="adam") as first:
            first.step(image=images(), labels=labels(), learning_rate=0.01)
            with copy.deepcopy(first) as second:
                losses = [[t.step(image=images(), labels=labels(), learning_rate=0.01) for _ in range(3)] for t in (first, second)]
        self.assertEqual(*losses)

    def test_arrays_with_strides_come_through_dlpack(self):
        array = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
        for view in (array.transpose(2, 0, 1), array[:, ::2, 1:], array[::-1]):
            np.testing.assert_array_equal(mge.Tensor.from_dlpack(view).numpy(), view)


class Stream:
    """Items without indices, of which each worker has every n-th."""

    def __init__(self, count):
        self.count = count

    def __iter__(self):
        info = worker_info()
        yield from range(info.id if info else 0, self.count, info.count if info else 1)


class Slow(ArrayDataset):
    def __getitem__(self, index):
        time.sleep(60)


def mark(worker):
    os.environ["MARK"] = str(worker)


def fail(worker):
    raise ValueError(f"worker {worker} cannot begin")


class Marks:
    def __len__(self):
        return 8

    def __getitem__(self, index):
        return os.getpid(), int(os.environ["MARK"])


class Loaders(unittest.TestCase):
    def test_samplers_choose_the_items(self):
        data = ArrayDataset(np.arange(10))
        self.assertEqual([b.tolist() for b in DataLoader(data, 4, sampler=SequentialSampler(data))],
                         [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
        self.assertEqual([b.tolist() for b in DataLoader(data, batch_sampler=[[3, 1], [9]])], [[3, 1], [9]])
        self.assertEqual(sorted(np.concatenate(list(DataLoader(data, 3, sampler=RandomSampler(data))))), list(range(10)))
        weighted = DataLoader(data, 100, sampler=WeightedSampler([0] * 9 + [1], 50))
        self.assertEqual(set(next(iter(weighted)).tolist()), {9})
        with self.assertRaisesRegex(mge.UsageError, "leave out shuffle"):
            DataLoader(data, 4, sampler=[1], shuffle=True)

    def test_iterable_data_is_shared_by_the_workers(self):
        self.assertEqual([b.tolist() for b in DataLoader(Stream(5), 2)], [[0, 1], [2, 3], [4]])
        loader = DataLoader(Stream(11), 2, workers=3)
        for _ in range(2):
            self.assertEqual(sorted(np.concatenate(list(loader)).tolist()), list(range(11)))
        self.assertEqual(len(list(DataLoader(Stream(11), 2, workers=3, drop_last=True))), 5)

    def test_persistent_workers_stay_and_are_prepared_once(self):
        loader = DataLoader(Marks(), 2, workers=2, worker_init_fn=mark, persistent_workers=True)
        seen = [{(int(p), int(m)) for pids, marks in loader for p, m in zip(pids, marks)} for _ in range(2)]
        loader.close()
        self.assertEqual(seen[0], seen[1])
        self.assertEqual({mark for _, mark in seen[0]}, {0, 1})
        self.assertEqual({(int(p), int(m)) for pids, marks in loader for p, m in zip(pids, marks)} & seen[0], set())
        loader.close()

    def test_a_worker_that_cannot_begin_is_an_error(self):
        with self.assertRaisesRegex(ValueError, "cannot begin"):
            list(DataLoader(Marks(), 2, workers=2, worker_init_fn=fail))

    def test_a_timeout_ends_the_wait(self):
        with self.assertRaisesRegex(RuntimeError, "within 0.2 seconds"):
            list(DataLoader(Slow(np.arange(4)), 2, workers=1, timeout=0.2))


if __name__ == "__main__":
    unittest.main()
