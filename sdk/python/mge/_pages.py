# SPDX-License-Identifier: Apache-2.0
"""Pages of HTML that the library makes of reports, for notebooks."""
from __future__ import annotations

import html
from typing import Any, Callable

from .errors import Error

FRAME = '<iframe sandbox srcdoc="{}" style="width:100%;height:640px;border:0"></iframe>'


def framed(page: str) -> str:
    """Returns a page as a part of a notebook's page: a frame without scripts, which keeps its style to itself."""
    return FRAME.format(html.escape(page))


def framed_or_none(make: Callable[[], str]) -> str | None:
    """Returns the page that `make` returns, framed. None, for which a notebook shows the text, if the session is closed or has no
    such report yet."""
    try:
        return framed(make())
    except Error:
        return None


class PlanText(str):
    """The text of a plan. A notebook shows it as a picture. It keeps the inputs of the plan."""

    _make: Callable[[], str]

    @classmethod
    def _of(cls, text: str, make: Callable[[], str]) -> "PlanText":
        plan = cls(text)
        plan._make = make
        return plan

    def html(self) -> str:
        """Returns the plan as a page for a browser that needs no network. Raises ClosedError if the session is closed."""
        return self._make()

    def _repr_html_(self) -> str | None:
        return framed_or_none(self._make)

    def __reduce__(self) -> Any:
        return str, (str(self),)  # a copy, or one in another process, is the text alone
