# SPDX-License-Identifier: Apache-2.0
"""Data loaders, whose worker processes make batches while the program computes, and files of a repository.

    loader = mge.data.DataLoader(dataset, batch_size=32, shuffle=True, workers=4)
    for images, labels in loader:
        trainer.step(image=images, labels=labels)

A data set has a length, and its items are arrays, numbers or strings, or tuples, lists or dicts of these. Batches lie in memory
that the processes share, up to the setting data.shared_memory_bytes for each loader; a batch that finds no room there passes through a
pipe, which copies it.
"""
from __future__ import annotations

import contextlib
import hashlib
import mmap
import multiprocessing
import os
import pathlib
import pickle
import random
import shutil
import signal
import sys
import tempfile
import traceback
import urllib.request
import warnings
import weakref
import zipfile
from concurrent.futures import ThreadPoolExecutor
from multiprocessing import connection, reduction
from typing import Any, Callable, Iterator, NoReturn, Protocol, Sequence

import numpy as np

from .errors import FileError, InvalidError, UsageError
from .runtime import Runtime, default_runtime

_ALIGNMENT = 64  # of arrays in shared memory, in bytes
_LOCK_SECONDS = 5.0  # patience with a lock that only a moment of counting needs


class Dataset(Protocol):
    """What a loader needs of a data set. Each worker process has its own copy."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


class ArrayDataset:
    """Rows of arrays of equal length. An item is the tuple of the arrays' rows, or the row of a single array."""

    def __init__(self, *arrays: Any) -> None:
        self.arrays = tuple(np.asarray(a) for a in arrays)
        if len({len(a) for a in self.arrays}) != 1:
            raise UsageError(f"the arrays have {', '.join(str(len(a)) for a in self.arrays) or 'no'} rows; give arrays of one "
                             "length")

    def __len__(self) -> int:
        return len(self.arrays[0])

    def __getitem__(self, index: int) -> Any:
        rows = tuple(a[index] for a in self.arrays)
        return rows if len(rows) > 1 else rows[0]


def stack(items: Sequence[Any]) -> Any:
    """Makes a batch of items: arrays and numbers get a first dimension, strings become a list, and tuples, lists and dicts are
    kept, with batches in place of their elements."""
    first = items[0]
    if isinstance(first, dict):
        return {key: stack([item[key] for item in items]) for key in first}
    if isinstance(first, (tuple, list)):
        if len({len(item) for item in items}) > 1:
            raise InvalidError(f"items of one batch have {sorted({len(item) for item in items})} elements")
        columns = [stack(column) for column in zip(*items)]
        return type(first)(*columns) if hasattr(first, "_fields") else type(first)(columns)
    return list(items) if isinstance(first, str) else np.stack([np.asarray(item) for item in items])


class DataLoader:
    """Iterates over batches of a data set. Each iteration is an epoch, with a new order if `shuffle` is true."""

    def __init__(self, dataset: Dataset, batch_size: int = 1, *, shuffle: bool = False, drop_last: bool = False,
                 workers: int = 0, prefetch: int = 2, seed: int | None = None,
                 collate: Callable[[Sequence[Any]], Any] = stack, start_method: str | None = None,
                 runtime: Runtime | None = None) -> None:
        """`drop_last` leaves out a last batch that is smaller. `workers`: processes that make batches; 0 makes them in the
        program's own. `prefetch`: batches that each of them makes in advance. The same `seed` gives the same order in the same
        epoch. `start_method` is that of multiprocessing; None is Python's default. `runtime` has the settings data.*."""
        for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("prefetch", prefetch, 1)):
            if value < least:
                raise UsageError(f"{name} is {value}; it must be at least {least}")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.workers, self.prefetch, self.collate = workers, prefetch, collate
        self.epoch = 0  # the number of the next one
        self._seed = random.getrandbits(63) if seed is None else seed
        self._start_method, self._runtime = start_method, runtime

    def __len__(self) -> int:
        whole, rest = divmod(len(self.dataset), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        order = np.arange(len(self.dataset))
        seed, self.epoch = self._seed + self.epoch, self.epoch + 1
        if self.shuffle:
            np.random.default_rng(seed).shuffle(order)
        batches = [order[i * self.batch_size:(i + 1) * self.batch_size].tolist() for i in range(len(self))]
        if self.workers == 0:
            return (self.collate([self.dataset[i] for i in batch]) for batch in batches)
        return _in_workers(self, batches, seed)


# ---- batches through shared memory


class _Room:
    """The bytes of shared memory that the batches of a loader use, counted by all processes."""

    def __init__(self, context: Any, limit: int, debug: bool) -> None:
        self.limit, self.debug, self._used = limit, debug, context.Value("q", 0)

    def take(self, size: int) -> bool:
        with self._used.get_lock():
            fits = bool(self._used.value + size <= self.limit)
            self._used.value += size if fits else 0
            self._tell(f"{size} bytes {'taken' if fits else 'do not fit'}")
        return fits

    def give_back(self, size: int) -> None:
        # A worker that was ended may hold the lock for ever. Its loader then ends, and nobody needs the count.
        if not self._used.get_lock().acquire(timeout=_LOCK_SECONDS):
            return
        try:
            self._used.value -= size
            self._tell(f"{size} bytes given back")
        finally:
            self._used.get_lock().release()

    def _tell(self, what: str) -> None:
        if self.debug:
            print(f"mge.data: process {os.getpid()}: {what}, {self._used.value} of {self.limit} in use", file=sys.stderr,
                  flush=True)


def _send_batch(pipe: Any, number: int, batch: Any, room: _Room) -> None:
    """Sends a batch: its arrays in a file in memory whose descriptor the pipe passes, or within the message if there is no
    room."""
    buffers: list[pickle.PickleBuffer] = []
    message = pickle.dumps(batch, protocol=5, buffer_callback=buffers.append)
    places, size = [], 0
    for raw in (b.raw() for b in buffers):
        places.append((size, raw.nbytes))
        size += -(-raw.nbytes // _ALIGNMENT) * _ALIGNMENT
    if size == 0 or not room.take(size):
        pipe.send((number, "message", pickle.dumps(batch, protocol=5), size))
        return
    file = os.memfd_create("mge.data", os.MFD_CLOEXEC)
    try:
        os.ftruncate(file, size)
        with mmap.mmap(file, size) as memory:
            for (begin, count), buffer in zip(places, buffers):
                memory[begin:begin + count] = buffer.raw()
        pipe.send((number, "shared", message, places))
        reduction.send_handle(pipe, file, os.getppid())
    finally:
        os.close(file)


def _shared_batch(pipe: Any, message: bytes, places: Sequence[tuple[int, int]], room: _Room) -> Any:
    """Returns a batch whose arrays lie in the file that the pipe passes. The memory lives as long as one of them."""
    file = reduction.recv_handle(pipe)
    size = os.fstat(file).st_size
    memory = mmap.mmap(file, size)
    os.close(file)
    weakref.finalize(memory, room.give_back, size).atexit = False
    view = memoryview(memory)
    return pickle.loads(message, buffers=[view[begin:begin + count] for begin, count in places])


# ---- worker processes


def _work(dataset: Dataset, collate: Callable[[Sequence[Any]], Any], pipe: Any, room: _Room, seed: int, threads: int) -> None:
    """Makes the batches that are asked for, until the pipe is closed."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the program, which ends its workers
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(threads)
    with ThreadPoolExecutor(max(threads, 1)) as pool, contextlib.suppress(EOFError, ConnectionError):
        load = pool.map if threads else map
        while True:
            number, indices = pipe.recv()
            try:
                _send_batch(pipe, number, collate(list(load(dataset.__getitem__, indices))), room)
            except Exception as error:  # the program gets it in place of the batch
                _send_error(pipe, number, error)


def _send_error(pipe: Any, number: int, error: Exception) -> None:
    text = traceback.format_exc()
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:  # its class does not support it
        error = RuntimeError(f"{type(error).__name__}: {error}")
    pipe.send((number, "error", error, text))


class _WorkerTraceback(Exception):
    """The cause of an exception that a worker process has raised: its traceback there."""

    def __str__(self) -> str:
        return f"in a worker process of a data loader:\n{self.args[0]}"


class _Failure:
    """In place of a batch: the exception that making it has raised."""

    def __init__(self, error: Exception, trace: str) -> None:
        self.error, self.trace = error, trace


class _Workers:
    """The processes of one iteration, each with a pipe."""

    def __init__(self, loader: DataLoader, seed: int) -> None:
        runtime = loader._runtime or default_runtime()
        context: Any = multiprocessing.get_context(loader._start_method)
        self.room = _Room(context, int(runtime.get("data.shared_memory_bytes")), runtime.get("data.shared_memory_debug") == "1")
        threads = int(runtime.get("data.decode_threads"))
        self.pipes: list[Any] = []
        self.processes: list[Any] = []
        self._warned = False
        for i in range(loader.workers):
            mine, theirs = multiprocessing.Pipe()
            process = context.Process(target=_start, daemon=True, args=(
                self.pipes + [mine] if context.get_start_method() == "fork" else [], loader.dataset, loader.collate, theirs,
                self.room, seed + i, threads))
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def ask(self, worker: int, number: int, indices: Sequence[int]) -> None:
        try:
            self.pipes[worker].send((number, indices))
        except OSError:
            self._raise_end(worker)

    def receive(self) -> tuple[int, int, Any]:
        """Waits for a batch. Returns its worker, its number, and the batch or a _Failure."""
        pipe: Any = connection.wait(self.pipes)[0]
        worker = self.pipes.index(pipe)
        try:
            number, kind, content, more = pipe.recv()
            if kind == "shared":
                return worker, number, _shared_batch(pipe, content, more, self.room)
        except (EOFError, ConnectionError):
            self._raise_end(worker)
        if kind == "error":
            return worker, number, _Failure(content, more)
        if more and self.room.limit:
            self._warn(more)
        return worker, number, pickle.loads(content)

    def _warn(self, size: int) -> None:
        if not self._warned:
            warnings.warn(f"a batch of {size} bytes finds no room in the {self.room.limit} bytes of shared memory of the data "
                          "loader and is copied through a pipe; raise MGE_PLASMA_MEMORY (data.shared_memory_bytes), use fewer "
                          "workers, or keep fewer batches", RuntimeWarning, stacklevel=4)
        self._warned = True

    def _raise_end(self, worker: int) -> NoReturn:
        self.processes[worker].join()
        code = self.processes[worker].exitcode
        raise RuntimeError(f"worker process {worker} of the data loader has "
                           f"{f'been killed by signal {-code}' if code < 0 else f'ended with exit code {code}'}")

    def close(self) -> None:
        for pipe in self.pipes:
            pipe.close()
        for process in self.processes:
            process.terminate()
            process.join()
            process.close()


def _start(inherited: Sequence[Any], *rest: Any) -> None:
    """Begins a worker. A forked one closes the ends of pipes that are the program's: else it would not see that they close."""
    for pipe in inherited:
        pipe.close()
    _work(*rest)


def _in_workers(loader: DataLoader, batches: Sequence[Sequence[int]], seed: int) -> Iterator[Any]:
    """Yields the batches in their order. Each worker has `prefetch` batches to make or to deliver."""
    workers = _Workers(loader, seed)
    try:
        made: dict[int, tuple[int, Any]] = {}
        asked = min(len(batches), loader.workers * loader.prefetch)
        for number in range(asked):
            workers.ask(number % loader.workers, number, batches[number])
        for number in range(len(batches)):
            while number not in made:
                worker, other, batch = workers.receive()
                made[other] = worker, batch
            worker, batch = made.pop(number)
            if isinstance(batch, _Failure):
                raise batch.error from _WorkerTraceback(batch.trace)
            if asked < len(batches):
                workers.ask(worker, asked, batches[asked])
                asked += 1
            yield batch
            del batch  # its memory is free when the program drops it
    finally:
        workers.close()


# ---- files of a repository


def fetch(path: str, *, sha1: str | None = None, sha256: str | None = None, runtime: Runtime | None = None) -> pathlib.Path:
    """Returns the file data.home/PATH. Downloads it from data.repository if it is missing or differs from `sha1` or `sha256`, of
    which at least one is given. If PATH ends with .zip, returns the only file of the archive, whose hash it is, and keeps no
    archive."""
    expected = {name: value.lower() for name, value in (("sha256", sha256), ("sha1", sha1)) if value}
    if not expected:
        raise InvalidError(f"fetch({path!r}) has neither sha256 nor sha1; pass the hash of the file, so that it can be checked")
    runtime = runtime or default_runtime()
    target = pathlib.Path(runtime.get("data.home")).expanduser() / path
    packed = target.suffix == ".zip"
    if packed:
        known = sorted(p for p in target.parent.glob(target.stem + ".*") if p.suffix != ".zip")
        target = known[0] if known else target
    if target.exists():
        if _difference(target, expected) is None:
            return target
        warnings.warn(f"{target} differs from the file of the repository and is downloaded again", RuntimeWarning, stacklevel=2)
    repository = runtime.get("data.repository")
    if not repository:
        raise InvalidError(f"{path} is not in {target.parent}, and data.repository is empty, so that it is not downloaded; set "
                           "data.repository (MXNET_GLUON_REPO) to an address such as https://example.org/ or file:///folder/")
    url = repository.rstrip("/") + "/" + path
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=target.parent, prefix=".fetch-") as folder:
            got = pathlib.Path(folder) / pathlib.PurePosixPath(path).name
            with urllib.request.urlopen(url) as source, open(got, "wb") as out:
                shutil.copyfileobj(source, out)
            if packed:
                got = _unpack(got, url)
                target = target.with_name(pathlib.PurePosixPath(path).stem + got.suffix)
            if difference := _difference(got, expected):
                raise InvalidError(f"{url} has the {difference}; try again, or correct the hash")
            os.replace(got, target)
    except OSError as error:  # of the network too
        raise FileError(f"{url} cannot be downloaded to {target}: {error}; check the settings data.repository "
                        "(MXNET_GLUON_REPO) and data.home (MXNET_HOME)") from error
    return target


def fetch_model(name: str, *, sha1: str, sha256: str | None = None, runtime: Runtime | None = None) -> pathlib.Path:
    """Returns the path of a model, for a session: fetch() of gluon/models/NAME-HASH.zip, where HASH are the first 8 digits of the
    SHA-1 of the model's file."""
    return fetch(f"gluon/models/{name}-{sha1[:8]}.zip", sha1=sha1, sha256=sha256, runtime=runtime)


def _difference(path: pathlib.Path, expected: dict[str, str]) -> str | None:
    """Returns "sha256 X, not Y" for the first hash that differs, or None."""
    for name, value in expected.items():
        digest = hashlib.new(name)
        with open(path, "rb") as file:
            while block := file.read(1 << 20):
                digest.update(block)
        if digest.hexdigest() != value:
            return f"{name} {digest.hexdigest()}, not {value}"
    return None


def _unpack(archive: pathlib.Path, url: str) -> pathlib.Path:
    try:
        with zipfile.ZipFile(archive) as z:
            names = [n for n in z.namelist() if not n.endswith("/")]
            if len(names) != 1:
                raise InvalidError(f"{url} holds {len(names)} files; one is expected")
            return pathlib.Path(z.extract(names[0], archive.parent / "content"))
    except zipfile.BadZipFile as error:
        raise InvalidError(f"{url} is no zip archive: {error}") from error
