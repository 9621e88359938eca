# SPDX-License-Identifier: Apache-2.0
"""Learning rates over the time of a training.

    trainer = mge.Trainer("model.onnx", optimizer="adamw", schedule=mge.schedules.cosine(1e-3, steps=1000, warmup=0.05))
    trainer.step(image=images, labels=labels)  # needs no learning_rate

`steps` is the length of the training; Trainer.fit() knows it. `warmup` is the part of the training in which the rate rises from 0.
"""
from __future__ import annotations

import ctypes as c
import dataclasses
from typing import Sequence

from . import _native
from .errors import UsageError, raise_for


@dataclasses.dataclass(frozen=True)
class Schedule:
    """A learning rate that depends on the number of a step. The functions of this module create it."""

    name: str
    rate: float
    steps: int | None = None
    warmup: float = 0
    step_factor: float = 0.1
    step_count: int = 2
    points: tuple[tuple[float, float], ...] = ()

    def at(self, step: int) -> float:
        """Returns the rate of a step, counted from 0. Later steps than the last have the rate of the end."""
        if self.steps is None:
            raise UsageError(f"the schedule '{self.name}' does not know the length of the training; give steps, or use Trainer.fit()")
        flat = [number for point in self.points for number in point]
        given = _native.Schedule(name=self.name.encode(), rate=self.rate, warmup=self.warmup, step_factor=self.step_factor,
                                 step_count=self.step_count, points=(c.c_double * max(1, len(flat)))(*flat),
                                 point_count=len(self.points))
        rate = c.c_double()
        raise_for(_native.lib.mge_schedule_rate(c.byref(given), min(step / max(self.steps, 1), 1.0), c.byref(rate)))
        return rate.value

    def of(self, steps: int) -> "Schedule":
        """Returns the schedule with a length, unless it has one."""
        return dataclasses.replace(self, steps=steps) if self.steps is None else self


def constant(rate: float, steps: int | None = None, *, warmup: float = 0) -> Schedule:
    """Always the same rate."""
    return Schedule("constant", rate, steps if steps is not None or warmup else 1, warmup)


def cosine(rate: float, steps: int | None = None, *, warmup: float = 0) -> Schedule:
    """Falls to 0 along half a wave."""
    return Schedule("cosine", rate, steps, warmup)


def linear(rate: float, steps: int | None = None, *, warmup: float = 0) -> Schedule:
    """Falls to 0 along a line."""
    return Schedule("linear", rate, steps, warmup)


def step(rate: float, steps: int | None = None, *, factor: float = 0.1, count: int = 2, warmup: float = 0) -> Schedule:
    """Is multiplied by a factor `count` times at equal distances."""
    return Schedule("step", rate, steps, warmup, factor, count)


def one_cycle(rate: float, steps: int | None = None) -> Schedule:
    """Rises from 1/25 of the rate along half a wave for 0.3 of the training, then falls to 1/10000 of that."""
    return Schedule("one_cycle", rate, steps)


def table(rate: float, points: Sequence[tuple[float, float]], steps: int | None = None, *, warmup: float = 0) -> Schedule:
    """Is multiplied by a factor, which changes along lines between `points`: pairs of a part of the training, from 0 to 1, and a
    factor."""
    return Schedule("table", rate, steps, warmup, points=tuple((float(a), float(b)) for a, b in points))
