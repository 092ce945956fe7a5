"""A line of shell as the commands it runs: enough of the grammar to see who says what, and to whom.

Quotes are taken away, here-documents become words of the command that reads them, comments vanish. Substitutions are
left as they are written: nothing here is run.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

COMMAND_CHARS_MAX = 64 << 10
_BLANK = " \t\r"
_ENDS = ";&|\n()"
# What may stand before a command without being it.
_BEFORE = frozenset(
    ["sudo", "env", "command", "time", "nohup", "exec", "then", "do", "else", "!", "{", "builtin"]
)
_SHELLS = frozenset(["bash", "sh", "zsh", "dash", "pwsh", "powershell"])
_NESTED_MAX = 3


class Simple(NamedTuple):
    """One simple command: its words, and whether what it prints goes into the next."""

    words: list[str]
    piped: bool


class Unfinished(ValueError):
    """A quote that is never closed: not a command that ran."""


def commands(text: str, nested_max: int = _NESTED_MAX) -> list[Simple]:
    """The simple commands of *text*, in their order; those given to `bash -c` are looked into."""
    found: list[Simple] = []
    for simple in _Reader(text[:COMMAND_CHARS_MAX]).read():
        inner = _given_to_shell(simple.words)
        found += commands(inner, nested_max - 1) if inner and nested_max else [simple]
    return found


def plain(words: list[str]) -> list[str]:
    """The words from the program on: no assignments, no `sudo`, no option of these."""
    at = 0
    while at < len(words):
        word = words[at]
        name, equals, _value = word.partition("=")
        if (equals and name.replace("_", "a").isalnum()) or word in _BEFORE:
            at += 1
        elif word.startswith("-") and at:
            at += 1  # An option of what stands before.
        else:
            break
    return words[at:]


def _given_to_shell(words: list[str]) -> str:
    """The command line behind `bash -lc`, if that is what this is."""
    real = plain(words)
    if len(real) > 2 and real[0].rpartition("/")[2] in _SHELLS:  # noqa: PLR2004 (a shell, `-c`, the line)
        for option, line in pairwise(real):
            if option in ("-c", "-lc", "-ic", "-Command"):
                return line
    return ""


class _Reader:
    """Reads one text once, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[Simple] = []
        self.words: list[str] = []
        self.word: list[str] | None = None
        # Here-documents that begin behind the end of this line: (delimiter, where its text goes).
        self.awaited: list[tuple[str, list[str], int]] = []

    def read(self) -> list[Simple]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self._escaped()
            elif char == "'":
                self._single()
            elif char == '"':
                self._double()
            elif char in _BLANK:
                self._end_word()
                self.at += 1
            elif char == "#" and self.word is None:
                self.at = self._line_end()
            elif self.text.startswith("<<", self.at) and not self.text.startswith("<<<", self.at):
                self._announce()
            elif char in _ENDS and not self._is_redirection(char):
                self._end_command(char)
            else:
                self._take(char)
        self._end_word()
        self._end_command("")
        return self.found

    def _take(self, chars: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(chars)
        self.at += len(chars)

    def _escaped(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if following == "\n":
            self.at += 1
        else:
            self._take(following) if following else None

    def _single(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unfinished
        self.at += 1
        self._take(self.text[self.at : end])
        self.at = end + 1

    def _double(self) -> None:
        self.at += 1
        self._take("")
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                self.at += 1
                self._take(self.text[self.at])
            elif self.text.startswith("<<", self.at) and "$(" in self._so_far():
                self._take_document()  # `-m "$(cat <<'EOF' …)"`: the text may hold quotes of its own.
            else:
                self._take(char)
        raise Unfinished

    def _so_far(self) -> str:
        return "".join(self.word or [])[-200:]

    def _take_document(self) -> None:
        delimiter = self._delimiter()
        body, end = self._document(delimiter, self._line_end() + 1)
        assert self.word is not None
        # `$(cat` before it and the bracket behind are how it is read, not what is said.
        said = "".join(self.word)
        self.word[:] = [said[: said.rfind("$(")], body]
        self.at = end
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1
        if self.text.startswith(")", self.at):
            self.at += 1

    def _announce(self) -> None:
        self._end_word()
        self.words.append("")
        self.awaited.append((self._delimiter(), self.words, len(self.words) - 1))

    def _delimiter(self) -> str:
        """The word behind `<<`, with its quotes off; the reader stands behind it afterwards."""
        self.at += 2
        while self.text[self.at : self.at + 1] in ("-", " ", "\t") and self.at < len(self.text):
            self.at += 1
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|()<>":
            self.at += 1
        return self.text[start : self.at].strip("'\"\\")

    def _document(self, delimiter: str, start: int) -> tuple[str, int]:
        """The lines from *start* up to the delimiter, and where what follows begins."""
        at = start
        while at < len(self.text):
            end = self.text.find("\n", at)
            end = len(self.text) if end < 0 else end
            if self.text[at:end].strip() == delimiter:
                return self.text[start:at].rstrip("\n"), end
            at = end + 1
        return self.text[start:].rstrip("\n"), len(self.text)

    def _line_end(self) -> int:
        end = self.text.find("\n", self.at)
        return len(self.text) if end < 0 else end

    def _is_redirection(self, char: str) -> bool:
        """`2>&1` and `&>file` end nothing."""
        before, after = self.text[self.at - 1 : self.at], self.text[self.at + 1 : self.at + 2]
        return (char == "&" and (before == ">" or after == ">")) or (char == "|" and before == ">")

    def _end_word(self) -> None:
        if self.word is not None:
            self.words.append("".join(self.word))
            self.word = None

    def _end_command(self, char: str) -> None:
        self._end_word()
        piped = char == "|" and self.text[self.at + 1 : self.at + 2] != "|"
        if self.words:
            self.found.append(Simple(self.words, piped))
            self.words = []
        self.at += (
            2 if char and char in "&|" and self.text[self.at + 1 : self.at + 2] == char else 1
        )
        if char == "\n":
            for delimiter, words, place in self.awaited:
                words[place], self.at = self._document(delimiter, self.at)
            self.awaited = []
