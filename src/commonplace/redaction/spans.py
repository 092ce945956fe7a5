"""Spans: the places of secrets in a text; overlapping ones merged, and all cut out."""

from typing import NamedTuple


class Span(NamedTuple):
    """A secret in a text: where it starts and ends, and its kind."""

    start: int
    end: int
    kind: str


def merge_spans(spans: list[Span]) -> list[Span]:
    """Return *spans* in order, with those that overlap as one.

    A merged span has the kind of the span that came first in the list: particular rules come
    before general ones.
    """
    merged: list[Span] = []
    first = 0
    for rank, span in sorted(enumerate(spans), key=lambda item: item[1].start):
        if not merged or span.start >= merged[-1].end:
            merged.append(span)
            first = rank
        else:
            kind = span.kind if rank < first else merged[-1].kind
            merged[-1] = Span(merged[-1].start, max(merged[-1].end, span.end), kind)
            first = min(first, rank)
    return merged


def cut_spans(text: str, spans: list[Span]) -> str:
    """Return *text* with a marker in place of each of *spans*; private text leaves no marker."""
    pieces: list[str] = []
    at = 0
    for span in spans:
        pieces.append(text[at : span.start])
        at = span.end
        if span.kind != "private":
            pieces.append(marker(span.kind))
        elif text[at : at + 1] in {" ", ""} and (span.start == 0 or text[span.start - 1] == " "):
            # Of the two spaces around the gap, one goes too.
            at += 1
    if at > len(text):
        pieces[-1] = pieces[-1].removesuffix(" ")
    return "".join([*pieces, text[at:]])


def marker(kind: str) -> str:
    """Return what is written in place of a secret of *kind*."""
    return f"[redacted:{kind}]"
