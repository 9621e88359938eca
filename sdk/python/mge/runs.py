# SPDX-License-Identifier: Apache-2.0
"""Runs: their controls and profiles, and those that may still be in progress."""
from __future__ import annotations

import ctypes as c
import json
import time
from typing import Any, Mapping, Sequence

from ._handles import FenceHandle, Handle, Owner, ProfileHandle, RunControlHandle, TensorHandle, pointers
from ._native import lib, take_text
from ._pages import framed_or_none
from .errors import UsageError, raise_for
from .tensor import Tensor
from .values import to_value, written

POLL_SECONDS = 0.05  # the longest wait that Ctrl-C does not end


class Profile(Owner):
    """The times of the steps of runs. The runs are those of each RunControl that has it. A notebook shows a picture of them."""

    def __init__(self) -> None:
        handle = ProfileHandle()
        raise_for(lib.mge_profile_create(c.byref(handle)))
        self._handle = handle

    def reset(self) -> None:
        """Deletes all times."""
        lib.mge_profile_reset(self._open())

    def report(self, schema: str = "mge.profile/1") -> Any:
        """Returns the times: "mge.profile/1", of each step and of each type of operator, "mge.timeline/1", the steps of one run, or
        "trace", every step of every run, which json.dump writes for the viewers of Chrome and Perfetto. "html" is a page for a browser,
        as text."""
        out = c.c_void_p()
        raise_for(lib.mge_profile_report(self._open(), schema.encode(), c.byref(out)))
        return take_text(out) if schema == "html" else json.loads(take_text(out))

    def _repr_html_(self) -> str | None:
        return framed_or_none(lambda: self.report("html"))


class RunControl(Owner):
    """Controls runs: a time limit per run in seconds, a seed, cancellation from any thread, a profile. Asynchronous runs of a higher
    `priority` go first."""

    def __init__(self, *, timeout: float | None = None, seed: int | None = None, priority: int = 0,
                 profile: Profile | None = None) -> None:
        handle = RunControlHandle()
        raise_for(lib.mge_run_control_create(c.byref(handle)))
        if timeout is not None:
            lib.mge_run_control_set_timeout(handle, timeout)
        if seed is not None:
            lib.mge_run_control_set_seed(handle, seed)
        if priority:
            lib.mge_run_control_set_priority(handle, priority)
        if profile is not None:
            lib.mge_run_control_set_profile(handle, profile._open())
        self._handle = handle

    def cancel(self) -> None:
        """Ends the runs in progress and every later one."""
        lib.mge_run_control_cancel(self._open())

    def reset(self) -> None:
        """Allows runs again."""
        lib.mge_run_control_reset(self._open())

    def overdue(self) -> tuple[float, str]:
        """Returns by how many seconds a run in progress exceeds its time limit, 0 if none does, and its current step. For a
        watchdog."""
        seconds, step = c.c_double(), c.c_void_p()
        raise_for(lib.mge_run_control_overdue(self._open(), c.byref(seconds), c.byref(step)))
        return seconds.value, take_text(step)


class Memory:
    """The memory that a caller gives for outputs, by name: each object with a tensor over it."""

    def __init__(self, given: Mapping[str, tuple[Any, Handle]]) -> None:
        self._given = given

    def results(self, names: Sequence[str]) -> Any:
        """Returns the array of outputs for a run. It is null where the run creates one."""
        return pointers([self._given[name][1] if name in self._given else None for name in names])

    def handles_of(self, names: Sequence[str], results: Any) -> dict[str, Handle]:
        """Returns the handles of the outputs, and owns those that the run has created."""
        return {name: self._given[name][1] if name in self._given else TensorHandle(results[i]) for i, name in enumerate(names)}

    def values(self, handles: Mapping[str, Handle], on_device: bool) -> dict[str, Any]:
        """Returns the outputs of a run that has ended."""
        return {name: written(self._given[name][0], handle) if name in self._given else to_value(handle, on_device)
                for name, handle in handles.items()}


class EnqueuedRun(Owner):
    """A run that may still be in progress, made by Session.enqueue."""

    def __init__(self, fence: FenceHandle, values: dict[str, Handle], memory: Memory, keeps: Any, on_device: bool) -> None:
        self._handle, self._values, self._memory, self._keeps, self._on_device = fence, values, memory, keeps, on_device

    def wait(self, timeout: float | None = None) -> bool:
        """Waits for the end of the run, at most `timeout` seconds. Returns whether it has ended. Raises its error. Ctrl-C ends the
        wait, and the run goes on."""
        end = float("inf") if timeout is None else time.monotonic() + timeout
        reached = c.c_int32()
        while True:
            left = max(0.0, end - time.monotonic())
            raise_for(lib.mge_run_fence_wait(self._open(), min(left, POLL_SECONDS), c.byref(reached)))
            if reached.value or left == 0:
                return bool(reached.value)

    def result(self) -> dict[str, Any]:
        """Waits, and returns the outputs by name, as Session.run does."""
        self.wait()
        return self._memory.values(self._values, self._on_device)

    @property
    def outputs(self) -> dict[str, Tensor]:
        """The outputs as tensors on their devices, for later runs. Until the run has ended, only runs that come `after` it may use
        them."""
        return {name: Tensor._of(value) for name, value in self._values.items()}


def control_of(control: RunControl | None, timeout: float | None, seed: int | None) -> RunControl | None:
    if timeout is None and seed is None:
        return control
    if control is not None:
        raise UsageError("timeout and seed belong to the control if there is one")
    return RunControl(timeout=timeout, seed=seed)
