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
import dataclasses
import hashlib
import itertools
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
from typing import Any, Callable, Iterable, Iterator, NoReturn, Protocol, Sequence

import numpy as np

from .errors import FileError, InvalidError, UsageError
from .runtime import Runtime, default_runtime

_ALIGNMENT = 64  # of arrays in shared memory, in bytes
_LOCK_SECONDS = 5.0  # patience with a lock that only a moment of counting needs


class Dataset(Protocol):
    """What a loader needs of a data set. Each worker process has its own copy."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: int) -> Any: ...


@dataclasses.dataclass(frozen=True)
class WorkerInfo:
    """The worker process of a loader in which the code runs, so that an iterable data set can give each worker a part."""

    id: int
    count: int
    seed: int


_worker_info: WorkerInfo | None = None


def worker_info() -> WorkerInfo | None:
    """Returns the facts of this worker process, or None in the program's own."""
    return _worker_info


class SequentialSampler:
    """The indices of a data set in order."""

    def __init__(self, dataset: Dataset) -> None:
        self._size = len(dataset)

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[int]:
        return iter(range(self._size))


class RandomSampler:
    """Indices of a data set in random order, another one in each iteration. `count`: how many; by default, each one once.
    `replacement`: an index may come more than once."""

    def __init__(self, dataset: Dataset, *, replacement: bool = False, count: int | None = None, seed: int | None = None) -> None:
        self._size, self._count, self._replacement = len(dataset), len(dataset) if count is None else count, replacement
        if not replacement and self._count > self._size:
            raise UsageError(f"count is {count}, and the data set has {self._size} items; use replacement=True")
        self._random = np.random.default_rng(seed)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        if self._replacement:
            return iter(self._random.integers(self._size, size=self._count).tolist())
        return iter(self._random.permutation(self._size)[:self._count].tolist())


class WeightedSampler:
    """`count` random indices, each as often as its weight says; they may come more than once."""

    def __init__(self, weights: Sequence[float], count: int, *, seed: int | None = None) -> None:
        self._parts = np.asarray(weights, np.float64)
        if self._parts.ndim != 1 or not (self._parts >= 0).all() or not 0 < self._parts.sum() < float("inf"):
            raise UsageError("the weights must be a list of numbers that are not negative, with a sum above 0")
        self._parts = self._parts / self._parts.sum()
        self._count, self._random = count, np.random.default_rng(seed)

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[int]:
        return iter(self._random.choice(len(self._parts), self._count, p=self._parts).tolist())


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
                 sampler: Iterable[int] | None = None, batch_sampler: Iterable[Sequence[int]] | None = None,
                 timeout: float = 0, worker_init_fn: Callable[[int], None] | None = None, persistent_workers: bool = False,
                 runtime: Runtime | None = None) -> None:
        """`drop_last` leaves out a last batch that is smaller. `workers`: processes that make batches; 0 makes them in the
        program's own. `prefetch`: batches that each of them makes in advance. The same `seed` gives the same order in the same
        epoch. `start_method` is that of multiprocessing; None is Python's default. `sampler`: the indices of an epoch, in place of
        `shuffle`; `batch_sampler`: those of each batch. `timeout`: seconds to wait for a batch of the workers; 0: no limit.
        `worker_init_fn(id)` is called at the start of each worker. `persistent_workers`: the workers stay from epoch to epoch, until
        close() or the end of the loader. `runtime` has the settings data.*. The data set may also be iterable without indices; the
        items of each worker's copy then follow one another, and worker_info() tells a copy which part is its own."""
        self._iterable = not hasattr(dataset, "__getitem__") and hasattr(dataset, "__iter__")
        if self._iterable and (shuffle or sampler is not None or batch_sampler is not None):
            raise UsageError("the data set is iterable and has no indices; leave out shuffle, sampler and batch_sampler")
        if batch_sampler is not None and (shuffle or sampler is not None or drop_last or batch_size != 1):
            raise UsageError("batch_sampler chooses the batches; leave out batch_size, shuffle, sampler and drop_last")
        if sampler is not None and shuffle:
            raise UsageError("sampler chooses the order; leave out shuffle")
        if workers == 0 and (timeout or worker_init_fn is not None or persistent_workers):
            raise UsageError("timeout, worker_init_fn and persistent_workers need workers")
        if timeout < 0:
            raise UsageError(f"timeout is {timeout}; it must not be negative")
        for name, value, least in (("batch_size", batch_size, 1), ("workers", workers, 0), ("prefetch", prefetch, 1)):
            if value < least:
                raise UsageError(f"{name} is {value}; it must be at least {least}")
        self.dataset, self.batch_size, self.shuffle, self.drop_last = dataset, batch_size, shuffle, drop_last
        self.workers, self.prefetch, self.collate = workers, prefetch, collate
        self.epoch = 0  # the number of the next one
        self._seed = random.getrandbits(63) if seed is None else seed
        self._start_method, self._runtime = start_method, runtime
        self.sampler, self.batch_sampler, self.timeout = sampler, batch_sampler, timeout
        self.worker_init_fn, self.persistent_workers = worker_init_fn, persistent_workers
        self._kept: _Workers | None = None  # idle workers

    def __len__(self) -> int:
        if self.batch_sampler is not None:
            return len(self.batch_sampler)  # type: ignore[arg-type]
        source: Any = self.dataset if self.sampler is None else self.sampler
        whole, rest = divmod(len(source), self.batch_size)
        return whole + (rest > 0 and not self.drop_last)

    def __iter__(self) -> Iterator[Any]:
        seed, self.epoch = self._seed + self.epoch, self.epoch + 1
        if self._iterable:
            if self.workers == 0:
                return (self.collate(items) for items in _groups_of(self.dataset, self.batch_size, self.drop_last))
            return _in_workers(self, itertools.repeat(self.epoch), seed)
        batches = self._batches(seed)
        if self.workers == 0:
            return (self.collate([self.dataset[i] for i in batch]) for batch in batches)
        return _in_workers(self, batches, seed)

    def _batches(self, seed: int) -> Iterator[Sequence[int]]:
        """Yields the indices of each batch."""
        if self.batch_sampler is not None:
            yield from self.batch_sampler
            return
        order: Any = self.sampler
        if order is None:
            order = np.arange(len(self.dataset))
            if self.shuffle:
                np.random.default_rng(seed).shuffle(order)
            order = order.tolist()
        yield from _groups_of(order, self.batch_size, self.drop_last)

    def close(self) -> None:
        """Ends persistent workers. A later iteration starts new ones."""
        kept, self._kept = self._kept, None
        if kept is not None:
            kept.close()


def _groups_of(items: Iterable[Any], size: int, drop_last: bool) -> Iterator[list[Any]]:
    """Yields lists of `size` items."""
    rest = iter(items)
    while group := list(itertools.islice(rest, size)):
        if len(group) == size or not drop_last:
            yield group


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


@dataclasses.dataclass
class _Job:
    """What a worker does."""

    dataset: Any
    collate: Callable[[Sequence[Any]], Any]
    init: Callable[[int], None] | None
    info: WorkerInfo
    groups: tuple[int, bool]  # of an iterable data set: the size of a batch, and whether a smaller one is left out


def _work(job: _Job, pipe: Any, room: _Room, threads: int) -> None:
    """Makes the batches that are asked for, until the pipe is closed."""
    global _worker_info
    _worker_info, seed = job.info, job.info.seed
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C ends the program, which ends its workers
    random.seed(seed)
    np.random.seed(seed % (1 << 32))
    if "cv2" in sys.modules:
        sys.modules["cv2"].setNumThreads(threads)
    with ThreadPoolExecutor(max(threads, 1)) as pool, contextlib.suppress(EOFError, ConnectionError):
        load = pool.map if threads else map
        epoch, groups = -1, iter(())  # of an iterable data set
        if job.init is not None:
            try:
                job.init(job.info.id)
            except Exception as error:  # the program gets it in place of the first batch
                _send_error(pipe, pipe.recv()[0], error)
                return
        while True:
            number, indices = pipe.recv()
            try:
                if isinstance(indices, int):
                    if epoch != indices:
                        epoch, groups = indices, _groups_of(job.dataset, *job.groups)
                    items = next(groups, None)
                    if items is None:
                        pipe.send((number, "end", None, None))
                        continue
                else:
                    items = list(load(job.dataset.__getitem__, indices))
                _send_batch(pipe, number, job.collate(items), room)
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


class _End:
    """In place of a batch: the worker's copy of an iterable data set has no more items."""


class _Workers:
    """The processes of a loader, each with a pipe."""

    def __init__(self, loader: DataLoader, seed: int) -> None:
        runtime = loader._runtime or default_runtime()
        context: Any = multiprocessing.get_context(loader._start_method)
        self.room = _Room(context, int(runtime.get("data.shared_memory_bytes")), runtime.get("data.shared_memory_debug") == "1")
        threads = int(runtime.get("data.decode_threads"))
        self.pipes: list[Any] = []
        self.processes: list[Any] = []
        self._warned = False
        self._timeout = loader.timeout or None
        self._end = weakref.finalize(self, _end_processes, self.pipes, self.processes)
        for i in range(loader.workers):
            mine, theirs = multiprocessing.Pipe()
            process = context.Process(target=_start, daemon=True, args=(
                self.pipes + [mine] if context.get_start_method() == "fork" else [],
                _Job(loader.dataset, loader.collate, loader.worker_init_fn, WorkerInfo(i, loader.workers, seed + i),
                     (loader.batch_size, loader.drop_last)), theirs, self.room, threads))
            process.start()
            theirs.close()
            self.pipes.append(mine)
            self.processes.append(process)

    def ask(self, worker: int, number: int, indices: Sequence[int] | int) -> None:
        try:
            self.pipes[worker].send((number, indices))
        except OSError:
            self._raise_end(worker)

    def receive(self) -> tuple[int, int, Any]:
        """Waits for a batch. Returns its worker, its number, and the batch or a _Failure."""
        ready = connection.wait(self.pipes, self._timeout)
        if not ready:
            raise RuntimeError(f"no worker process of the data loader has made a batch within {self._timeout} seconds (timeout)")
        pipe: Any = ready[0]
        worker = self.pipes.index(pipe)
        try:
            number, kind, content, more = pipe.recv()
            if kind == "shared":
                return worker, number, _shared_batch(pipe, content, more, self.room)
        except (EOFError, ConnectionError):
            self._raise_end(worker)
        if kind == "end":
            return worker, number, _End()
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
        self._end()


def _end_processes(pipes: list[Any], processes: list[Any]) -> None:
    for pipe in pipes:
        pipe.close()
    for process in processes:
        if process._parent_pid != os.getpid():  # a forked child does not end those of its parent
            continue
        process.terminate()
        process.join()
        process.close()


def _start(inherited: Sequence[Any], *rest: Any) -> None:
    """Begins a worker. A forked one closes the ends of pipes that are the program's: else it would not see that they close."""
    for pipe in inherited:
        pipe.close()
    _work(*rest)


def _in_workers(loader: DataLoader, batches: Iterable[Sequence[int] | int], seed: int) -> Iterator[Any]:
    """Yields the batches in their order. Each worker has `prefetch` batches to make or to deliver. Those of an iterable data set are the
    number of the epoch, without end: the workers tell when theirs end."""
    workers, loader._kept = loader._kept or _Workers(loader, seed), None
    is_done = False
    try:
        rest = iter(batches)
        made: dict[int, tuple[int, Any]] = {}
        ended: set[int] = set()
        asked = 0

        def ask(worker: int) -> None:
            nonlocal asked
            for indices in itertools.islice(rest, 0 if worker in ended else 1):
                workers.ask(worker, asked, indices)
                asked += 1

        for i in range(loader.workers * loader.prefetch):
            ask(i % loader.workers)
        number = 0
        while number < asked:
            while number not in made:
                worker, other, batch = workers.receive()
                made[other] = worker, batch
            worker, batch = made.pop(number)
            number += 1
            if isinstance(batch, _Failure):
                raise batch.error from _WorkerTraceback(batch.trace)
            if isinstance(batch, _End):
                ended.add(worker)
                continue
            ask(worker)
            yield batch
            del batch  # its memory is free when the program drops it
        is_done = True
    finally:
        if is_done and loader.persistent_workers:
            loader._kept = workers
        else:
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
