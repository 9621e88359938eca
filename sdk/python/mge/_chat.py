# SPDX-License-Identifier: Apache-2.0
"""Chat templates: texts for jinja2 that turn a conversation into a prompt. What a template may use is what the package transformers
gives to it."""
from __future__ import annotations

import datetime
import json
import pathlib
from typing import Any, Mapping

from .errors import UnsupportedError, UsageError


def render_chat(template: Any, folder: pathlib.Path, values: Mapping[str, Any]) -> str:
    """Returns the prompt. `template` is a text, or a list of several with names: that for tools is used if tools are given. Fails with
    UnsupportedError if there is no template or no package jinja2, and with UsageError if the template refuses the messages."""
    try:
        from jinja2 import TemplateError
        from jinja2.ext import Extension
        from jinja2.sandbox import ImmutableSandboxedEnvironment
    except ImportError as error:
        raise UnsupportedError("chat templates need the package jinja2: pip install jinja2") from error
    if isinstance(template, list):
        named = {entry["name"]: entry["template"] for entry in template}
        first = ["tool_use"] if values.get("tools") else []
        template = next((named[name] for name in [*first, "default"] if name in named), next(iter(named.values()), None))
    if not isinstance(template, str):
        raise UnsupportedError(f"the folder {folder} has no chat template: neither chat_template.jinja nor chat_template in "
                               "tokenizer_config.json")

    class Generation(Extension):
        """The block {% generation %}, which marks answers for training. Its content is part of the prompt."""

        tags = {"generation"}

        def parse(self, parser: Any) -> Any:
            next(parser.stream)
            return parser.parse_statements(("name:endgeneration",), drop_needle=True)

    def refuse(message: str) -> None:
        raise UsageError(f"the chat template refuses the messages: {message}")

    def tojson(value: Any, ensure_ascii: bool = False, indent: int | None = None, separators: Any = None, sort_keys: bool = False) -> str:
        return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys)

    environment = ImmutableSandboxedEnvironment(trim_blocks=True, lstrip_blocks=True, extensions=["jinja2.ext.loopcontrols", Generation])
    environment.filters["tojson"] = tojson
    environment.globals["raise_exception"] = refuse
    environment.globals["strftime_now"] = lambda form: datetime.datetime.now().strftime(form)
    try:
        return str(environment.from_string(template).render(**values))
    except TemplateError as error:
        raise UsageError(f"the chat template of {folder} fails: {error}") from error
