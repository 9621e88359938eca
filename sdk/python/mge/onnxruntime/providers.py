# SPDX-License-Identifier: Apache-2.0
"""Providers, which are devices of MGE: CPUExecutionProvider is cpu0, and CUDAExecutionProvider with device_id 1 is cuda1."""
from __future__ import annotations

import warnings
from typing import Any, Mapping, Sequence

from ..runtime import default_runtime

_ENDING = "ExecutionProvider"
_NAMES = {"cpu": "CPU", "cuda": "CUDA", "rocm": "ROCM"}
CPU_PROVIDER = "CPU" + _ENDING


def provider_of(device: str) -> str:
    """Returns the provider of a device: "cuda0" gives CUDAExecutionProvider."""
    kind = device.rstrip("0123456789")
    return _NAMES.get(kind, kind.capitalize()) + _ENDING


def device_of(device_type: str, device_id: int = 0) -> str | None:
    """Returns the name of a device, or None for the memory of the host. `device_type` is "cpu", "cuda", or as MGE calls it."""
    kind = device_type.lower()
    return None if kind == "cpu" or kind.endswith("_pinned") else f"{kind}{device_id}"


def get_available_providers() -> list[str]:
    """Returns the providers of the usable devices of this machine; CPUExecutionProvider is the last one."""
    found = [provider_of(d.name) for d in default_runtime().devices() if d.usable and d.device_class not in ("host", "null")]
    return [name for name in dict.fromkeys(found) if name != CPU_PROVIDER] + [CPU_PROVIDER]


def get_all_providers() -> list[str]:
    """Returns the providers of all backends that are known by name; see get_available_providers()."""
    return list(dict.fromkeys([f"{name}{_ENDING}" for kind, name in _NAMES.items() if kind != "cpu"] + get_available_providers()))


def get_device() -> str:
    """Returns "GPU" if the machine has a usable one, else "CPU"."""
    return "GPU" if any(d.usable and d.gpu_name for d in default_runtime().devices()) else "CPU"


Asked = Sequence["str | tuple[str, Mapping[str, Any]]"]


def chosen(providers: Asked | None, options: Sequence[Mapping[str, Any]] | None) -> tuple[list[str], dict[str, dict[str, Any]], list[str]]:
    """Returns the devices in order of preference, each provider's options, and the options without effect. Warns about providers
    that are not available. Fails if none is: a session runs on no device that was not asked for."""
    if options is not None and len(options) != len(providers or ()):
        raise ValueError(f"provider_options has {len(options)} entries, and providers has {len(providers or ())}; give as many")
    asked: dict[str, dict[str, Any]] = {}
    for index, entry in enumerate(providers or ()):
        name, own = (entry, {}) if isinstance(entry, str) else entry
        asked.setdefault(name, dict(own) | dict(options[index] if options else {}))
    available = get_available_providers()
    absent = [name for name in asked if name not in available]
    if absent and len(absent) == len(asked):
        raise ValueError(f"no provider of {list(asked)} is available; available are {available}")
    if absent:
        warnings.warn(f"providers that are not available: {', '.join(absent)}; available are {available}", stacklevel=4)
    devices, ignored = [], []
    for name in [n for n in asked if n in available]:
        devices.append(f"{name[:-len(_ENDING)].lower()}{int(asked[name].get('device_id', 0))}")
        ignored += [f"{name}.{key}" for key in asked[name] if key != "device_id"]
    return devices, {name: {k: str(v) for k, v in own.items()} for name, own in asked.items() if name in available}, ignored
