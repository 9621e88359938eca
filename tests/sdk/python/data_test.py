# SPDX-License-Identifier: Apache-2.0
"""Data loaders and files of a repository (mge.data)."""
import contextlib
import gc
import hashlib
import http.server
import io
import multiprocessing
import os
import pathlib
import signal
import subprocess
import sys
import tempfile
import threading
import unittest
import unittest.mock
import warnings
import zipfile

import numpy as np

import mge
from mge.data import ArrayDataset, DataLoader, fetch, fetch_model, stack


class Squares:
    """Items of several kinds, with the process that makes them."""

    def __init__(self, count, size=1):
        self.count, self.size = count, size

    def __len__(self):
        return self.count

    def __getitem__(self, i):
        return {"square": np.full(self.size, i * i, np.float32), "number": i, "name": f"item {i}", "process": os.getpid(),
                "random": np.random.rand()}


class Faulty(Squares):
    def __getitem__(self, i):
        if i == 5:
            raise KeyError("no item 5")
        return super().__getitem__(i)


class Dying(Squares):
    def __getitem__(self, i):
        if i == 5:
            os.kill(os.getpid(), signal.SIGKILL)
        return super().__getitem__(i)


class Blocking:
    """Items that are made only if three of them are asked for at the same time."""

    barrier = threading.Barrier(3)

    def __len__(self):
        return 3

    def __getitem__(self, i):
        self.barrier.wait(20)
        return i


def runtime(**settings):
    return mge.Runtime({key.replace("_", ".", 1): value for key, value in settings.items()})


class Loaders(unittest.TestCase):
    def test_make_the_same_batches_with_and_without_workers(self):
        for workers in (0, 1, 3):
            batches = list(DataLoader(Squares(10), 4, workers=workers))
            self.assertEqual([b["number"].tolist() for b in batches], [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]])
            self.assertEqual(batches[1]["square"][:, 0].tolist(), [16, 25, 36, 49])
            self.assertEqual(batches[2]["name"], ["item 8", "item 9"])
            processes = {p for b in batches for p in b["process"].tolist()}
            self.assertEqual(os.getpid() in processes, workers == 0)
            self.assertEqual(len(processes), max(workers, 1))

    def test_shuffle_by_the_seed_and_the_epoch(self):
        def order(loader):
            return [n for b in loader for n in b["number"].tolist()]

        loader = DataLoader(Squares(50), 8, shuffle=True, seed=1, workers=2)
        first, second = order(loader), order(loader)
        self.assertEqual(sorted(first), list(range(50)))
        self.assertNotEqual(first, second)
        self.assertEqual(order(DataLoader(Squares(50), 8, shuffle=True, seed=1)), first)

    def test_drop_a_smaller_last_batch(self):
        loader = DataLoader(Squares(10), 4, drop_last=True, workers=2)
        self.assertEqual((len(loader), len(list(loader))), (2, 2))

    def test_give_each_worker_its_own_random_numbers(self):
        numbers = [x for b in DataLoader(Squares(8), 2, workers=4) for x in b["random"].tolist()]
        self.assertEqual(len(set(numbers)), 8)

    def test_work_with_every_start_method(self):
        for method in ("fork", "forkserver", "spawn"):
            self.assertEqual(len(list(DataLoader(ArrayDataset(np.arange(9)), 3, workers=2, start_method=method))), 3)

    def test_raise_what_a_worker_raises_after_the_batches_before(self):
        loader, got = iter(DataLoader(Faulty(12), 2, workers=3)), []
        with self.assertRaisesRegex(KeyError, "no item 5") as caught:
            for batch in loader:
                got.append(batch["number"].tolist())
        self.assertEqual(got, [[0, 1], [2, 3]])
        self.assertIn("in __getitem__", str(caught.exception.__cause__))

    def test_say_that_a_worker_was_killed(self):
        with self.assertRaisesRegex(RuntimeError, "worker process [01] .* killed by signal 9"):
            list(DataLoader(Dying(12), 2, workers=2))

    def test_end_their_workers_when_the_program_stops_iterating(self):
        iterator = iter(DataLoader(Squares(100), 2, workers=2))
        worker = int(next(iterator)["process"][0])
        iterator.close()
        with self.assertRaises(ProcessLookupError):
            os.kill(worker, 0)

    def test_give_memory_back_though_a_worker_was_ended_while_it_counted(self):
        context = multiprocessing.get_context("fork")
        room = mge.data._Room(context, 100, debug=False)
        self.assertTrue(room.take(10))

        def end_in_the_lock():
            room._used.get_lock().acquire()
            os.kill(os.getpid(), signal.SIGKILL)

        worker = context.Process(target=end_in_the_lock)
        worker.start()
        worker.join()
        with unittest.mock.patch("mge.data._LOCK_SECONDS", 0.01):
            room.give_back(10)

    def test_refuse_arguments_that_are_no_sizes(self):
        for arguments in ({"batch_size": 0}, {"workers": -1}, {"prefetch": 0}):
            with self.assertRaisesRegex(mge.UsageError, "must be at least"):
                DataLoader(Squares(1), **arguments)
        with self.assertRaisesRegex(mge.UsageError, "2, 3 rows"):
            ArrayDataset(np.zeros(2), np.zeros(3))

    def test_stack_tuples_and_refuse_items_of_different_forms(self):
        images, labels = stack([(np.zeros(3), 1), (np.ones(3), 2)])
        self.assertEqual((images.shape, labels.tolist()), ((2, 3), [1, 2]))
        with self.assertRaisesRegex(mge.InvalidError, "elements"):
            stack([(1, 2), (1,)])

    def test_train_a_model(self):
        digits = pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits"
        images = np.load(digits / "digits_images.npy").astype(np.float32).reshape(-1, 1, 8, 8)
        labels = np.load(digits / "digits_labels.npy").astype(np.int64)
        with mge.Trainer(digits / "digits.onnx", optimizer="sgd") as trainer:
            for x, y in DataLoader(ArrayDataset(images, labels), 16, workers=2, shuffle=True, drop_last=True):
                self.assertTrue(np.isfinite(trainer.step(image=x, labels=y, learning_rate=0.001)))


class SharedMemory(unittest.TestCase):
    def test_holds_batches_until_the_program_drops_them(self):
        source = ("import mge, numpy as np\n"
                  "r = mge.Runtime({'data.shared_memory_bytes': '2MB', 'data.shared_memory_debug': True})\n"
                  "d = mge.data.ArrayDataset(np.zeros((12, 100_000), np.uint8))\n"
                  "for b in mge.data.DataLoader(d, 3, workers=2, prefetch=1, runtime=r): b[0, 0] = 1\n"
                  "del b\n")
        o = subprocess.run([sys.executable, "-c", source], capture_output=True, text=True, env=os.environ)
        self.assertEqual(o.returncode, 0, o.stderr)
        self.assertEqual(o.stderr.count("300032 bytes taken"), 4)
        self.assertEqual(o.stderr.count("300032 bytes given back"), 4)
        self.assertIn("0 of 2000000 in use", o.stderr.splitlines()[-1])

    def test_says_nothing_without_the_setting(self):
        with runtime() as r, contextlib.redirect_stderr(io.StringIO()) as stderr:
            list(DataLoader(ArrayDataset(np.zeros((4, 10))), 2, workers=1, runtime=r))
        self.assertEqual(stderr.getvalue(), "")

    def test_that_is_too_small_makes_batches_pass_through_the_pipe_with_a_warning(self):
        rows = np.arange(8 * 100_000, dtype=np.int32).reshape(8, -1)
        for size in ("500KB", "0"):
            with runtime(data_shared_memory_bytes=size) as r, warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                batches = list(DataLoader(ArrayDataset(rows), 2, workers=2, runtime=r))
            self.assertTrue(np.array_equal(np.concatenate(batches), rows))
            texts = [str(w.message) for w in caught if w.category is RuntimeWarning]
            self.assertEqual(len(texts), size != "0", texts)
            self.assertTrue(all("800000 bytes finds no room in the 500000 bytes" in t and "MGE_PLASMA_MEMORY" in t for t in texts))

    def test_is_used_again_when_batches_are_dropped(self):
        with runtime(data_shared_memory_bytes="1MB") as r, warnings.catch_warnings():
            warnings.simplefilter("error")
            for batch in DataLoader(Squares(100, 10_000), 4, workers=2, prefetch=2, runtime=r):
                self.assertTrue(batch["square"].flags.writeable)
                del batch
                gc.collect()

    def test_loads_the_items_of_a_batch_in_threads(self):
        with runtime(data_decode_threads=3) as r:
            self.assertEqual(next(iter(DataLoader(Blocking(), 3, workers=1, runtime=r))).tolist(), [0, 1, 2])


class Repository(unittest.TestCase):
    """A server on this machine that counts requests."""

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder, self.requests = pathlib.Path(folder.name), []
        (self.folder / "served" / "gluon" / "models").mkdir(parents=True)
        requests = self.requests

        class Handler(http.server.SimpleHTTPRequestHandler):
            def log_request(self, *_):
                requests.append(self.path)

            def log_error(self, *_):
                pass

        serve = lambda *a: Handler(*a, directory=str(self.folder / "served"))  # noqa: E731
        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), serve)
        thread = threading.Thread(target=self.server.serve_forever)
        thread.start()
        self.addCleanup(thread.join)
        self.addCleanup(self.server.server_close)
        self.addCleanup(self.server.shutdown)
        self.model = (pathlib.Path(__file__).resolve().parents[3] / "packaging" / "digits" / "digits.onnx").read_bytes()
        self.sha1 = hashlib.sha1(self.model).hexdigest()
        with zipfile.ZipFile(self.folder / "served" / "gluon" / "models" / f"digits-{self.sha1[:8]}.zip", "w") as archive:
            archive.writestr("digits.onnx", self.model)
        (self.folder / "served" / "plain.bin").write_bytes(b"content")
        self.runtime = runtime(data_home=self.folder / "home",
                               data_repository=f"http://127.0.0.1:{self.server.server_address[1]}")
        self.addCleanup(self.runtime.close)

    def test_gives_a_model_that_runs_and_is_downloaded_once(self):
        for _ in range(2):
            path = fetch_model("digits", sha1=self.sha1, runtime=self.runtime)
            self.assertEqual(path, self.folder / "home" / "gluon" / "models" / f"digits-{self.sha1[:8]}.onnx")
        self.assertEqual(self.requests, [f"/gluon/models/digits-{self.sha1[:8]}.zip"])
        self.assertEqual(os.listdir(path.parent), [path.name])
        with mge.Session(path) as session:
            self.assertEqual(session.inputs[0].name, "image")

    def test_downloads_a_damaged_file_again(self):
        path = fetch_model("digits", sha1=self.sha1, runtime=self.runtime)
        path.write_bytes(b"damaged")
        with self.assertWarnsRegex(RuntimeWarning, "is downloaded again"):
            fetch_model("digits", sha1=self.sha1, runtime=self.runtime)
        self.assertEqual((path.read_bytes(), len(self.requests)), (self.model, 2))

    def test_refuses_another_content_and_keeps_nothing(self):
        with self.assertRaisesRegex(mge.InvalidError, "has the sha1 040f06fd774092478d450774f5ba30c5da78acc8, not 1234"):
            fetch("plain.bin", sha1="1234", runtime=self.runtime)
        self.assertEqual(os.listdir(self.folder / "home"), [])

    def test_checks_every_hash_that_is_given(self):
        sha1, sha256 = (getattr(hashlib, name)(b"content").hexdigest() for name in ("sha1", "sha256"))
        with self.assertRaisesRegex(mge.InvalidError, f"has the sha256 {sha256}, not 1234"):
            fetch("plain.bin", sha1=sha1, sha256="1234", runtime=self.runtime)
        path = fetch("plain.bin", sha256=sha256.upper(), runtime=self.runtime)
        self.assertEqual(fetch("plain.bin", sha1=sha1, sha256=sha256, runtime=self.runtime), path)
        self.assertEqual(self.requests, ["/plain.bin", "/plain.bin"])
        with self.assertRaisesRegex(mge.InvalidError, "neither sha256 nor sha1"):
            fetch("plain.bin", runtime=self.runtime)

    def test_downloads_nothing_without_an_address(self):
        path = fetch_model("digits", sha1=self.sha1, runtime=self.runtime)
        with runtime(data_home=self.folder / "home") as r:
            self.assertEqual(r.get("data.repository"), "")
            self.assertEqual(fetch_model("digits", sha1=self.sha1, runtime=r), path)
            with self.assertRaisesRegex(mge.InvalidError, "data.repository is empty.*MXNET_GLUON_REPO"):
                fetch("plain.bin", sha1="1234", runtime=r)

    def test_names_the_address_that_does_not_answer(self):
        with self.assertRaisesRegex(mge.FileError, "/missing.bin cannot be downloaded .* 404.*MXNET_GLUON_REPO"):
            fetch("missing.bin", sha1="1234", runtime=self.runtime)

    def test_may_be_a_folder(self):
        with runtime(data_home=self.folder / "other", data_repository=f"file://{self.folder}/served/") as r:
            path = fetch("plain.bin", sha1="040f06fd774092478d450774f5ba30c5da78acc8", runtime=r)
        self.assertEqual(path.read_bytes(), b"content")


if __name__ == "__main__":
    unittest.main()
