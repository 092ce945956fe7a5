"""The results of the tools as models, from which the SDK makes the output schemas."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel, Field


class HitModel(BaseModel):
    """One recalled memory."""

    id: str
    kind: str
    repo: str
    timestamp: str
    score: float
    text: str
    lesson: str | None = None
    context: str | None = None
    command: str | None = None
    success_rate: str | None = None
    why: dict[str, float] = Field(default_factory=dict)


class RecallModel(BaseModel):
    """An answer: the hits, the text, its cost."""

    hits: list[HitModel]
    text: str
    tokens: int
    notes: list[str] = Field(default_factory=list)


class BriefEntryModel(BaseModel):
    """One memory of a brief."""

    id: str
    kind: str
    summary: str
    score: float
    timestamp: str
    repo: str
    outcome: str | None = None
    contradicts: str | None = None


class BriefModel(BaseModel):
    """What is known before a task, in parts, and the best of it merged."""

    this_task: list[BriefEntryModel]
    relevant_patterns: list[BriefEntryModel]
    avoid_these: list[BriefEntryModel]
    applicable_skills: list[BriefEntryModel]
    similar_episodes: list[BriefEntryModel]
    open_handoffs: list[BriefEntryModel]
    contradictions: list[BriefEntryModel]
    memories: list[BriefEntryModel]
    text: str
    tokens: int
    notes: list[str] = Field(default_factory=list)


class StoredModel(BaseModel):
    """A record that was written, and what was redacted in it (`kind in field`)."""

    id: str
    repo: str
    redacted: list[str] = Field(default_factory=list)


class FeedbackModel(BaseModel):
    """A record's standing after feedback."""

    id: str
    success_rate: str | None = None
    feedback: dict[str, int]


class RecordModel(BaseModel):
    """A record with everything known about it."""

    record: dict[str, Any]


class ForgottenModel(BaseModel):
    """The id that is no longer recalled."""

    id: str
    reason: str


class NoteTextModel(BaseModel):
    """A note, or some lines of it; `sha256` is that of the whole note."""

    path: str
    text: str
    sha256: str
    trusted: bool = True


class NoteModel(BaseModel):
    """A note after a write; the next write can give its `sha256` to prevent lost updates."""

    path: str
    bytes: int
    sha256: str
    trusted: bool = True
    redacted: list[str] = Field(default_factory=list)


class NotesModel(BaseModel):
    """The notes of an agent."""

    notes: list[NoteModel]
