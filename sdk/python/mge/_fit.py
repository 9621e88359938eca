# SPDX-License-Identifier: Apache-2.0
"""The loop of Trainer.fit()."""
from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Callable, Iterable, Iterator, Mapping, Sequence

import numpy as np

from .errors import UsageError

if TYPE_CHECKING:
    from .training import Trainer

Metric = Callable[[Any, Any], float]


class Batch:
    """The inputs of a step by name, and the labels among them."""

    def __init__(self, trainer: "Trainer", given: Any) -> None:
        names = [v.name for v in trainer.inputs if v.name != "learning_rate"]
        if isinstance(given, Mapping):
            self.inputs = dict(given)
        else:
            values = list(given) if isinstance(given, (tuple, list)) else [given]
            if len(values) != len(names):
                raise UsageError(f"a batch has {len(values)} values, and the inputs are {names}; give them in this order, or a dict")
            self.inputs = dict(zip(names, values))
        self.labels = self.inputs.pop(trainer._labels_name, None)
        first = next(iter(self.inputs.values()), None)
        self.examples = len(first) if hasattr(first, "__len__") else 1


class Means:
    """Means of numbers over batches, weighted by their examples."""

    def __init__(self) -> None:
        self._sums: dict[str, float] = {}
        self._examples = 0

    def add(self, examples: int, numbers: Mapping[str, float]) -> None:
        self._examples += examples
        for name, number in numbers.items():
            self._sums[name] = self._sums.get(name, 0.0) + float(number) * examples

    def row(self, prefix: str = "") -> dict[str, float]:
        return {prefix + name: total / max(self._examples, 1) for name, total in self._sums.items()}


def accuracy(trainer: "Trainer") -> Metric:
    """Returns the metric "accuracy": the part of the labels whose class has the largest score."""
    if trainer._loss not in ("cross_entropy", "token_cross_entropy"):
        raise UsageError(f'the metric "accuracy" needs the loss cross_entropy or token_cross_entropy, and this is {trainer._loss}; '
                         "give a function of the outputs and the labels")
    last = trainer._loss == "token_cross_entropy"

    def measure(scores: Any, labels: Any) -> float:
        axis = -1 if last or np.ndim(scores) == 2 else 1
        return float(np.mean(np.argmax(scores, axis) == np.asarray(labels)))

    return measure


def metrics_of(trainer: "Trainer", metrics: Any) -> dict[str, Metric]:
    """Returns the metrics by name: of a mapping, or of a list of functions and of the word "accuracy"."""
    if isinstance(metrics, Mapping):
        named = list(metrics.items())
    else:
        named = [(m if isinstance(m, str) else getattr(m, "__name__", "metric"), m) for m in metrics]
    out: dict[str, Metric] = {}
    for name, metric in named:
        if isinstance(metric, str) and metric != "accuracy":
            raise UsageError(f'there is no metric "{metric}"; give "accuracy", or a function of the outputs and the labels')
        out[name] = accuracy(trainer) if isinstance(metric, str) else metric
    return out


def bar(batches: Iterable[Any], total: int | None, title: str, show: bool | None) -> Iterable[Any]:
    """Returns the batches with a progress bar if tqdm is installed: by default, if the error output is a terminal."""
    if show is False or (show is None and not sys.stderr.isatty()):
        return batches
    try:
        from tqdm import tqdm
    except ImportError:
        return batches
    return tqdm(batches, total=total, desc=title, leave=False)  # type: ignore[no-any-return]


def measure(trainer: "Trainer", batches: Iterable[Any], metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Returns the means of the loss and of the metrics, in evaluation form."""
    evaluation, means = trainer.evaluation, Means()
    for given in batches:
        batch = Batch(trainer, given)
        values = {**batch.inputs}
        if batch.labels is not None:
            values[trainer._labels_name] = trainer._labels(batch.labels)
        means.add(batch.examples, numbers_of(trainer, evaluation, values, batch, metrics))
    return means.row("validation_")


def numbers_of(trainer: "Trainer", session: Any, values: Mapping[str, Any], batch: Batch,
               metrics: Mapping[str, Metric]) -> dict[str, float]:
    """Runs a session whose first output is the loss. Returns the loss and the metrics of a batch."""
    loss = session.outputs[0].name
    compared = trainer._loss_output or session.outputs[1].name
    results = session.run(values, outputs=[loss, compared] if metrics else [loss])
    numbers = {"loss": float(results[loss])}
    for name, metric in metrics.items():
        numbers[name] = float(metric(results[compared], batch.labels))
    return numbers


def fit(trainer: "Trainer", data: Iterable[Any], epochs: int, validation: Iterable[Any] | None,
        callbacks: Sequence[Any], metrics: Any, learning_rate: float | None, progress: bool | None) -> list[dict[str, float]]:
    if epochs < 1:
        raise UsageError(f"epochs is {epochs}; it must be at least 1")
    for name, given in (("data", data), ("validation", validation)):
        if isinstance(given, Iterator) and (epochs > 1 or name == "validation"):
            raise UsageError(f"{name} is an iterator, which ends after one epoch; give a DataLoader, a list of batches, or another "
                             "object that can be iterated again")
    known = metrics_of(trainer, metrics)
    total = len(data) if hasattr(data, "__len__") else None
    if learning_rate is None and trainer.schedule is not None and trainer.schedule.steps is None:
        if total is None:
            raise UsageError("the data has no length, so that the schedule does not know that of the training; give the schedule steps")
        trainer.schedule = trainer.schedule.of(trainer.steps_done + epochs * total)
    history: list[dict[str, float]] = []
    for epoch in range(1, epochs + 1):
        means = Means()
        for given in bar(data, total, f"epoch {epoch}/{epochs}", progress):
            batch = Batch(trainer, given)
            values = trainer._step_inputs(batch.inputs, batch.labels, learning_rate)
            numbers = numbers_of(trainer, trainer, values, batch, known)
            means.add(batch.examples, numbers)
            for callback in callbacks:
                if hasattr(callback, "on_step"):
                    callback.on_step(trainer, numbers)
        row: dict[str, float] = {"epoch": epoch, **means.row()}
        if validation is not None:
            row.update(measure(trainer, validation, known))
        history.append(row)
        if progress:
            print("  ".join(f"{name} {number:.6g}" for name, number in row.items()), file=sys.stderr, flush=True)
        # Every callback sees the epoch, also if one of them ends the training.
        if any([callback(trainer, row) for callback in callbacks if callable(callback)]):
            break
    return history
