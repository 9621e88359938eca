# SPDX-License-Identifier: Apache-2.0
"""Sessions that train their model."""
from __future__ import annotations

import os
from typing import Any, BinaryIO, Callable, Mapping, Sequence

from ._native import TrainingOptions, lib, text, texts
from .context import Context
from .errors import raise_for
from .runtime import Runtime, Settings
from .session import Session


class Trainer(Session):
    """A model that is trained: each step computes the loss of a batch and updates the parameters."""

    def __init__(self, model: str | os.PathLike[str] | bytes | BinaryIO, *, loss: str = "cross_entropy",
                 loss_output: str | None = None, labels_name: str = "labels", optimizer: str = "sgd", momentum: float = 0,
                 betas: tuple[float, float] = (0.9, 0.999), epsilon: float = 1e-8, weight_decay: float = 0, clip_norm: float = 0,
                 frozen: Sequence[str] = (), data_parallel: bool = False,
                 device: str | Context | None = None, threads: int | None = None, settings: Settings | None = None,
                 runtime: Runtime | None = None, data_folder: str | os.PathLike[str] | None = None,
                 files: Mapping[str, bytes] | None = None,
                 progress: Callable[[str, int, int], None] | None = None) -> None:
        """`loss`: "cross_entropy", "token_cross_entropy", "binary_cross_entropy", "mse", "mae", or "output", which the model
        computes. `loss_output`: the name of the output that is compared with the labels; by default the first one. `labels_name`: the
        name of the input with the labels; another one if the model has an input "labels". `optimizer`: one that
        `mge train --help` lists, with the numbers that it reads. `frozen`: initializers that keep their values. `data_parallel`:
        each of the devices, such as "gpu0,gpu1", trains on a part of every batch, with the result of one device with the whole
        batch. `clip_norm`: the limit of the norm of all gradients together; 0: none. The other arguments are those of Session."""
        training = TrainingOptions(loss=loss.encode(), labels_name=labels_name.encode(), optimizer=optimizer.encode(),
                                   momentum=momentum, beta1=betas[0], beta2=betas[1], epsilon=epsilon,
                                   weight_decay=weight_decay, clip_norm=clip_norm, data_parallel=int(data_parallel))
        if loss_output is not None:
            training.loss_output = loss_output.encode()
        self._labels_name = labels_name
        training.frozen, training.frozen_count = texts(frozen)
        self._load(model, device, threads, settings, None, False, (), runtime, training, data_folder, files, progress)

    def step(self, inputs: Mapping[str, Any] | None = None, /, *, labels: Any = None, learning_rate: float,
             **named: Any) -> float:
        """Trains on one batch. Returns its loss before the update."""
        given = {**(inputs or {}), **named, "learning_rate": learning_rate}
        if labels is not None:
            given[self._labels_name] = labels
        first = self.outputs[0].name
        return float(self.run(given, outputs=[first])[first])

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the parameters."""
        handle = self._open()
        return tuple(text(lib.mge_session_parameter_name(handle, i)) for i in range(lib.mge_session_parameter_count(handle)))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Writes the model with its present parameters, completely or not at all."""
        raise_for(lib.mge_session_save(self._open(), os.fspath(path).encode()))
