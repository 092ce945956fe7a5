"""The frames of a context, as `build_context` returns them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from commonplace.compose import frames as composed

if TYPE_CHECKING:
    from collections.abc import Iterator


@dataclass(frozen=True)
class Frames(composed.Frames):
    """The frames by attribute and by key, and as JSON or Markdown for a prompt."""

    # What the agent should know about how they were made: the server was down, a save waits.
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, made: composed.Frames, notes: tuple[str, ...]) -> Frames:
        return cls(made.texts, made.knowledge, made.ids, made.has_all_keys, notes)

    @property
    def identity(self) -> str:
        return self.text("identity")

    @property
    def problem(self) -> str:
        return self.text("problem")

    @property
    def knowledgeHDoD(self) -> dict[str, Any]:  # noqa: N802 (the name in the contract)
        return self.knowledge

    @property
    def episodic(self) -> str:
        return self.text("episodic")

    @property
    def constraints(self) -> str:
        return self.text("constraints")

    @property
    def scratchpad(self) -> str:
        return self.text("scratchpad")

    def __getitem__(self, key: str) -> Any:  # noqa: ANN401 (JSON)
        return self.as_dict()[key]

    def keys(self) -> Iterator[str]:
        """Return the keys of the frames, so that `dict(frames)` works."""
        return iter(self.as_dict())
