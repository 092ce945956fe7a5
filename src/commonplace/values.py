"""`Values`: classes whose fields have defaults, are named when they are given, and never change.

They are like frozen data classes, but importing `dataclasses` and making two classes with it would
take 6 ms of every cold recall.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, dataclass_transform

if TYPE_CHECKING:
    from typing import Self


@dataclass_transform(kw_only_default=True, frozen_default=True, eq_default=True)
class Values:
    """Fields with defaults, as the annotations of a class and its bases say."""

    def __init__(self, **given: Any) -> None:  # noqa: ANN401 (the fields of the class)
        if not given.keys() <= (known := set(self._names())):
            raise TypeError(f"{type(self).__name__} has no field {min(given.keys() - known)}")
        self.__dict__.update(given)

    @classmethod
    def _names(cls) -> list[str]:
        bases = (getattr(base, "__annotations__", ()) for base in reversed(cls.__mro__))
        return [name for names in bases for name in names]

    def _as_tuple(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self._names())

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._as_tuple() == other._as_tuple()

    def __hash__(self) -> int:
        return hash(self._as_tuple())

    def __repr__(self) -> str:
        shown = ", ".join(f"{name}={getattr(self, name)!r}" for name in self._names())
        return f"{type(self).__name__}({shown})"

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"{name} never changes; `with_` returns a copy with another value")

    def with_(self, **changes: Any) -> Self:  # noqa: ANN401 (the fields of the class)
        """Return the same with *changes*."""
        return type(self)(**{**self.__dict__, **changes})
