# SPDX-License-Identifier: Apache-2.0
"""Training on several processes, which a launcher such as mpirun started."""
from __future__ import annotations

import dataclasses

from .runtime import Runtime, default_runtime


@dataclasses.dataclass(frozen=True)
class Place:
    """A process among those of a training. Without a launcher, it is rank 0 of 1."""
    rank: int
    ranks: int
    local_rank: int  # among the processes of its host; 0 if the launcher does not say
    launcher: str  # "mpirun"; empty: none
    host: str


def init(runtime: Runtime | None = None) -> Place:
    """Returns the place of this process. `Trainer(data_parallel=True)` connects the processes when it is created, each with the
    whole batch. Create it in all processes, and start programs that fork, such as data loaders, before. Raises an error if the
    variables of the launcher contradict each other."""
    facts = (runtime or default_runtime()).report("mge.launch/1")
    return Place(**{field.name: facts[field.name] for field in dataclasses.fields(Place)})
