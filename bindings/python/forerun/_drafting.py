"""Draft methods of the program's own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Optional, Union

from ._library import UsageError, ffi, view_ids

__all__ = ["Drafting", "Drafts"]


class Drafting:
    """Shows the timeline to a draft method. It is valid until the method returns."""

    __slots__ = ("_drafting", "ids")

    ids: memoryview
    """The timeline, prompt and text so far: [length] int32, without a copy."""

    def __init__(self, drafting: Any) -> None:
        self._drafting = drafting
        self.ids = view_ids(drafting.ids, drafting.length)

    def end(self) -> None:
        """Forgets the library's struct, which is gone once the method has returned."""
        self._drafting = None

    @property
    def count(self) -> int:
        """The most drafts that can be used, 1 to 15."""
        return int(self._drafting.count)

    @property
    def least(self) -> float:
        """The option draft_p_min: drafts below this probability are not wanted; 0 if it is automatic."""
        return float(self._drafting.least)

    @property
    def suggested(self) -> list[int]:
        """Drafts of the session's drafter or n-grams, which may be passed on or changed."""
        count = self._drafting.suggestions
        return ffi.unpack(self._drafting.suggested, count) if count else []

    @property
    def wants_chances(self) -> bool:
        """True with accept="rejection": Drafts may have `chances`."""
        return bool(self._drafting.chances != ffi.NULL)


@dataclass(frozen=True)
class Drafts:
    """Ids that may follow, with what is known about them."""

    ids: Sequence[int]
    """The drafts in order; those beyond `drafting.count` are left out."""
    odds: Optional[Sequence[float]] = None
    """The probability that each draft is right if all before it are; with it a round uses those worth their time."""
    chances: Optional[Any] = None
    """The distribution from which each draft was drawn, up to a factor: a buffer of [drafts, vocab] float32."""


ProposeResult = Union[Sequence[int], Drafts, None]


def fill_drafts(proposed: ProposeResult, drafting: Any, vocab: int) -> int:
    """Writes what a method proposes where the library reads it, and returns the number of drafts."""
    drafts = proposed if isinstance(proposed, Drafts) else Drafts(proposed if proposed is not None else ())
    count = min(len(drafts.ids), int(drafting.count))
    for index, token in enumerate(drafts.ids[:count]):
        drafting.drafts[index] = token
    if drafts.odds is not None and drafting.odds != ffi.NULL:
        for index, odds in enumerate(drafts.odds[:count]):
            drafting.odds[index] = odds
        drafting.tells_odds = True
    if drafts.chances is not None and drafting.chances != ffi.NULL:
        given = memoryview(drafts.chances).cast("B")
        if len(given) != 4 * vocab * len(drafts.ids):
            raise UsageError(f"chances have {len(given)} bytes, not {len(drafts.ids)} rows of {vocab} float32")
        ffi.memmove(drafting.chances, given, 4 * vocab * count)
        drafting.tells_chances = True
    return count
