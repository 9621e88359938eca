# SPDX-License-Identifier: Apache-2.0
"""Sessions that train their model."""
from __future__ import annotations

import ctypes as c
import os
from typing import Any, BinaryIO, Callable, Iterable, Mapping, Sequence

from . import _fit
from ._handles import SessionHandle
from ._native import ParameterGroup, TrainingOptions, lib, take_text, text, texts
from .context import Context
from .errors import UsageError, raise_for
from .runtime import Runtime, Settings
from .schedules import Schedule
from .session import Session


def _groups(groups: Mapping[str, Mapping[str, float]]) -> tuple[Any, int]:
    """Returns an array of the library's groups and its length."""
    for pattern, values in groups.items():
        if wrong := set(values) - {"rate", "weight_decay"}:
            raise UsageError(f"group '{pattern}' has {sorted(wrong)}; a group has \"rate\" and \"weight_decay\"")
        if values.get("weight_decay", 0) < 0:
            raise UsageError(f"weight_decay of group '{pattern}' is {values['weight_decay']}; it must not be negative")
    rows = [ParameterGroup(pattern.encode(), values.get("rate", 1), values.get("weight_decay", -1))
            for pattern, values in groups.items()]
    return (ParameterGroup * len(rows))(*rows), len(rows)


class Trainer(Session):
    """A model that is trained: each step computes the loss of a batch and updates the parameters."""

    def __init__(self, model: str | os.PathLike[str] | bytes | BinaryIO, *, loss: str = "cross_entropy",
                 loss_output: str | None = None, labels_name: str = "labels", optimizer: str = "sgd", momentum: float = 0,
                 betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8, weight_decay: float = 0, clip_norm: float = 0,
                 frozen: Sequence[str] = (), data_parallel: bool = False, on_nan: str = "stop",
                 clip_value: float = 0, label_smoothing: float = 0, accumulate: int = 1,
                 class_weights: Sequence[float] = (), huber_delta: float = 1,
                 groups: Mapping[str, Mapping[str, float]] | None = None, average_decay: float = 0, keep_gradients: bool = False,
                 schedule: Schedule | None = None,
                 device: str | Context | None = None, threads: int | None = None, settings: Settings | None = None,
                 runtime: Runtime | None = None, data_folder: str | os.PathLike[str] | None = None,
                 files: Mapping[str, bytes] | None = None,
                 progress: Callable[[str, int, int], None] | None = None) -> None:
        """`loss`: "cross_entropy", "token_cross_entropy", "binary_cross_entropy", "kl_divergence", "mse", "mae", "huber", or
        "output", which the model computes. `class_weights`: of a cross-entropy, the weight of each class; of binary_cross_entropy, that
        of the label 1, for all or for each element of the last dimension. `huber_delta`: the error at which huber becomes linear.
        `groups`: parameters with another learning rate or weight decay, such as {"head.*": {"rate": 10}, "*.bias":
        {"weight_decay": 0}}; "rate" is a factor, and the first pattern that fits counts. `average_decay`: above 0, averages of the
        parameters, the states "NAME.average", keep this part of their value at each update, and are evaluated and saved in place of
        the parameters. `keep_gradients`: `gradients` has those of the last update. `schedule`: the learning rate of steps without
        one. `loss_output`: the name of the output that is compared with the labels; by default the first one. `labels_name`: the
        name of the input with the labels; another one if the model has an input "labels". `optimizer`: one that
        `mge train --help` lists, with the numbers that it reads. `frozen`: initializers that keep their values; * stands for any
        text, ? for any letter. `accumulate`: steps whose gradients are summed before the last of them updates the parameters by their
        mean. `clip_value`: the limit of each element of the gradients. `label_smoothing`: the part of each label that is spread over
        all classes. `data_parallel`:
        each of the devices, such as "gpu0,gpu1", trains on a part of every batch, with the result of one device with the whole
        batch. If a launcher such as mpirun started several processes, so do the devices of all of them (mge.distributed). `clip_norm`: the limit of the norm of all gradients together; 0: none. `on_nan`: a step whose loss is NaN or infinite
        raises an error and changes nothing ("stop"), changes nothing ("skip", also for gradients), or updates all the same
        ("continue"). The other arguments are those of Session."""
        training = TrainingOptions(loss=loss.encode(), labels_name=labels_name.encode(), optimizer=optimizer.encode(),
                                   momentum=momentum, beta1=betas[0], beta2=betas[1], epsilon=epsilon,
                                   weight_decay=weight_decay, clip_norm=clip_norm, data_parallel=int(data_parallel), on_nan=on_nan.encode(), clip_value=clip_value,
                                   label_smoothing=label_smoothing, accumulate=accumulate)
        if len(class_weights) > 0:
            training.class_weights = (c.c_double * len(class_weights))(*class_weights)
            training.class_weight_count = len(class_weights)
        if groups:
            training.groups, training.group_count = _groups(groups)
        training.average_decay, training.keep_gradients = average_decay, int(keep_gradients)
        training.huber_delta = 0 if huber_delta == 1 else huber_delta  # 0 is the default
        self.schedule = schedule
        self._loss, self._loss_output = loss, loss_output
        if loss_output is not None:
            training.loss_output = loss_output.encode()
        self._labels_name = labels_name
        self._evaluation: Session | None = None
        training.frozen, training.frozen_count = texts(frozen)
        self._load(model, device, threads, settings, None, False, (), runtime, training, data_folder, files, progress)
        self._arguments = dict(
            loss=loss, loss_output=loss_output, labels_name=labels_name, optimizer=optimizer, momentum=momentum, betas=betas,
            epsilon=epsilon, weight_decay=weight_decay, clip_norm=clip_norm, frozen=tuple(frozen), data_parallel=data_parallel,
            on_nan=on_nan, clip_value=clip_value, label_smoothing=label_smoothing, accumulate=accumulate,
            class_weights=tuple(class_weights), huber_delta=huber_delta, groups=groups, average_decay=average_decay,
            keep_gradients=keep_gradients, schedule=schedule, device=device, threads=threads, settings=settings,
            data_folder=data_folder, files=files)

    def step(self, inputs: Mapping[str, Any] | None = None, /, *, labels: Any = None, learning_rate: float | None = None,
             **named: Any) -> float:
        """Trains on one batch. Returns its loss before the update. `learning_rate`: by default, that of the schedule."""
        given = self._step_inputs({**(inputs or {}), **named}, labels, learning_rate)
        first = self.outputs[0].name
        return float(self.run(given, outputs=[first])[first])

    def part(self, examples: int) -> range:
        """Returns the examples of a batch of so many that this process computes in a training on several processes: a program
        need not read the others, but gives arrays for the whole batch. Without a launcher, those are all."""
        first, count = c.c_int64(), c.c_int64()
        raise_for(lib.mge_session_part(self._open(), c.c_int64(examples), c.byref(first), c.byref(count)))
        return range(first.value, first.value + count.value)

    def _step_inputs(self, inputs: Mapping[str, Any], labels: Any, learning_rate: float | None) -> dict[str, Any]:
        if learning_rate is None:
            if self.schedule is None:
                raise UsageError("the step has no learning_rate; give one, or a schedule to the Trainer, such as "
                                 "mge.schedules.cosine(0.001, steps=1000)")
            learning_rate = self.schedule.at(self.steps_done)
        given = {**inputs, "learning_rate": learning_rate}
        if labels is not None:
            given[self._labels_name] = self._labels(labels)
        return given

    def fit(self, data: Iterable[Any], epochs: int = 1, *, validation: Iterable[Any] | None = None, callbacks: Sequence[Any] = (),
            metrics: Any = (), learning_rate: float | None = None, progress: bool | None = None) -> list[dict[str, float]]:
        """Trains on all batches of `data`, `epochs` times. A batch is a dict of the inputs and the labels by name, or a tuple of them in
        the order of the inputs. `data`, and `validation`, whose batches are only measured, can be iterated again, as a DataLoader or
        a list. Returns a dict for each epoch, with the means of "loss", of the metrics, and of "validation_loss" and the others of
        the validation. `metrics`: "accuracy", or functions of an output and its labels that return a number; a list, or a mapping
        from names. `callbacks`: functions of the trainer and an epoch's dict, which end the training if they return True; a method
        on_step(trainer, numbers) of one is called after each step. `learning_rate`: by default, that of the schedule. `progress`:
        True prints each epoch; a bar is shown if tqdm is installed, by default on terminals only."""
        return _fit.fit(self, data, epochs, validation, callbacks, metrics, learning_rate, progress)

    @property
    def steps_done(self) -> int:
        """The number of steps so far, those before a checkpoint included."""
        return int(self.states["session.random"][1])

    @property
    def gradients(self) -> dict[str, Any]:
        """The gradients of the last update by the names of the parameters, as arrays, not clipped. Needs keep_gradients."""
        names = [name for name in self.parameters if f"{name}.gradient" in self.states]
        if not names:
            raise UsageError("the trainer keeps no gradients; create it with keep_gradients=True")
        return {name: self.states[f"{name}.gradient"] for name in names}

    def _labels(self, labels: Any) -> Any:
        """Returns class numbers of any integer type as int64. Floating ones raise an error."""
        kind = getattr(getattr(labels, "dtype", None), "kind", "")
        if self._declared[self._labels_name].dtype != "int64" or kind == "":
            return labels
        if kind not in "iu":
            raise UsageError(f"the labels have type {labels.dtype}; the loss needs numbers of classes: give integers, such as "
                             "labels.astype(np.int64)")
        return labels.astype("int64", copy=False)

    def _states_to_copy(self) -> dict[str, Any]:
        return dict(self.states)

    def evaluate(self, inputs: Mapping[str, Any] | None = None, /, *, labels: Any = None, **named: Any) -> float:
        """Returns the loss of one batch without training on it: BatchNormalization uses its running statistics, Dropout drops
        nothing, and no state changes."""
        given = {**(inputs or {}), **named}
        if labels is not None:
            given[self._labels_name] = self._labels(labels)
        evaluation = self.evaluation
        first = evaluation.outputs[0].name
        return float(evaluation.run(given, outputs=[first])[first])

    @property
    def evaluation(self) -> Session:
        """A session that computes the loss and the outputs of the model with the present parameters, and changes nothing. Its
        inputs are those of a step but for the learning rate."""
        self._open()
        if self._evaluation is None:
            handle = SessionHandle()
            raise_for(lib.mge_session_evaluation(self._open(), c.byref(handle)))
            handle.keeps = self._open().keeps
            self._evaluation = Session._of(handle, self._runtime, self._on_device)
        return self._evaluation

    def close(self) -> None:
        """Releases the model, its parameters and its evaluation."""
        if self._evaluation is not None:
            self._evaluation.close()
        super().close()

    def save_checkpoint(self, path: str | os.PathLike[str] | None, notes: str = "") -> None:
        """Writes all states to a file, completely or not at all: parameters, optimizer, loss scale, random state. `notes`: a text of
        the program's own, such as its position in the data. With train.shard_optimizer, all processes must call it at the same
        time: rank 0 with a path, the others with None."""
        name = None if path is None else os.fspath(path).encode()
        raise_for(lib.mge_session_save_checkpoint(self._open(), name, notes.encode()))

    def load_checkpoint(self, path: str | os.PathLike[str]) -> str:
        """Sets all states to those of a checkpoint of the same model and optimizer: the next steps are those that followed the
        save. Returns the notes that were saved."""
        notes = c.c_void_p()
        raise_for(lib.mge_session_load_checkpoint(self._open(), os.fspath(path).encode(), c.byref(notes)))
        return take_text(notes)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        handle = self._open()
        return tuple(text(lib.mge_session_parameter_name(handle, i)) for i in range(lib.mge_session_parameter_count(handle)))

    def save(self, path: str | os.PathLike[str], *, for_inference: bool = True) -> None:
        """Writes the model with its present parameters, completely or not at all. `for_inference`: BatchNormalization uses its running
        statistics, and each Dropout is an Identity, so that the outputs are those of `evaluation`; otherwise the nodes are those of
        the model, which can be trained on."""
        write = lib.mge_session_save_for_inference if for_inference else lib.mge_session_save
        raise_for(write(self._open(), os.fspath(path).encode()))
