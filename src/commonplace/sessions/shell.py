"""A shell command line, parsed into the simple commands that it runs.

Quotes and comments are removed, and a here-document becomes a word of the command that reads it.
Substitutions stay as they are written: nothing is run. It is enough of the grammar to see which
program gets which words.
"""

from __future__ import annotations

from itertools import pairwise
from typing import NamedTuple

COMMAND_CHARS_MAX = 64 << 10
_BLANK = " \t\r"
_ENDS = ";&|\n()"
# Words that may precede the program.
_PREFIXES = frozenset(
    ["sudo", "env", "command", "time", "nohup", "exec", "then", "do", "else", "!", "{", "builtin"]
)
_SHELLS = frozenset(["bash", "sh", "zsh", "dash", "pwsh", "powershell"])
_NESTED_MAX = 3


class SimpleCommand(NamedTuple):
    """The words of one command, and whether its output is piped into the next."""

    words: list[str]
    piped: bool


class UnclosedQuote(ValueError):
    """A quote that is never closed; such a command cannot have run."""


def parse(text: str, nested_max: int = _NESTED_MAX) -> list[SimpleCommand]:
    """Return the simple commands in *text*, in order. The argument of `bash -c` is parsed, too."""
    found: list[SimpleCommand] = []
    for simple in _Parser(text[:COMMAND_CHARS_MAX]).parse():
        inner = _shell_argument(simple.words)
        found += parse(inner, nested_max - 1) if inner and nested_max else [simple]
    return found


def without_prefixes(words: list[str]) -> list[str]:
    """Return *words* from the program on, without assignments and prefixes such as `sudo`."""
    at = 0
    while at < len(words):
        word = words[at]
        name, equals, _value = word.partition("=")
        if (equals and name.replace("_", "a").isalnum()) or word in _PREFIXES:
            at += 1
        elif word.startswith("-") and at:
            at += 1  # An option of the prefix.
        else:
            break
    return words[at:]


def _shell_argument(words: list[str]) -> str:
    """Return the command line after `bash -lc`; "" for any other command."""
    rest = without_prefixes(words)
    if len(rest) > 2 and rest[0].rpartition("/")[2] in _SHELLS:  # noqa: PLR2004 (bash, -c, line)
        for option, line in pairwise(rest):
            if option in ("-c", "-lc", "-ic", "-Command"):
                return line
    return ""


class _Parser:
    """Parses one text, from left to right."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[SimpleCommand] = []
        self.words: list[str] = []
        self.word: list[str] | None = None
        # Here-documents that begin on the next line: delimiter, list of words, index of its word.
        self.pending_documents: list[tuple[str, list[str], int]] = []

    def parse(self) -> list[SimpleCommand]:
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self._read_escape()
            elif char == "'":
                self._read_single_quotes()
            elif char == '"':
                self._read_double_quotes()
            elif char in _BLANK:
                self._end_word()
                self.at += 1
            elif char == "#" and self.word is None:
                self.at = self._line_end()
            elif self.text.startswith("<<<", self.at):
                self._add("<<<")
            elif self.text.startswith("<<", self.at):
                self._note_document()
            elif char in _ENDS and not self._is_redirection(char):
                self._end_command(char)
            else:
                self._add(char)
        self._end_word()
        self._end_command("")
        return self.found

    def _add(self, chars: str) -> None:
        if self.word is None:
            self.word = []
        self.word.append(chars)
        self.at += len(chars)

    def _read_escape(self) -> None:
        following = self.text[self.at + 1 : self.at + 2]
        self.at += 1
        if following == "\n":
            self.at += 1
        else:
            self._add(following) if following else None

    def _read_single_quotes(self) -> None:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise UnclosedQuote
        self.at += 1
        self._add(self.text[self.at : end])
        self.at = end + 1

    def _read_double_quotes(self) -> None:
        self.at += 1
        self._add("")
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ('"', "\\", "$", "`", "\n"):
                self.at += 1
                self._add(self.text[self.at])
            elif self.text.startswith("<<", self.at) and "$(" in self._word_end():
                # In `-m "$(cat <<'EOF' …)"` the document may contain quotes.
                self._read_document()
            else:
                self._add(char)
        raise UnclosedQuote

    def _word_end(self) -> str:
        return "".join(self.word or [])[-200:]

    def _read_document(self) -> None:
        delimiter = self._delimiter()
        body, end = self._document(delimiter, self._line_end() + 1)
        assert self.word is not None
        # `$(cat` before the document and the bracket after it are not part of its text.
        before = "".join(self.word)
        self.word[:] = [before[: before.rfind("$(")], body]
        self.at = end
        while self.at < len(self.text) and self.text[self.at] in " \t\r\n":
            self.at += 1
        if self.text.startswith(")", self.at):
            self.at += 1

    def _note_document(self) -> None:
        self._end_word()
        self.words.append("")
        self.pending_documents.append((self._delimiter(), self.words, len(self.words) - 1))

    def _delimiter(self) -> str:
        """Return the word after `<<` without its quotes; leaves the position after it."""
        self.at += 2
        while self.text[self.at : self.at + 1] in ("-", " ", "\t") and self.at < len(self.text):
            self.at += 1
        start = self.at
        while self.at < len(self.text) and self.text[self.at] not in " \t\r\n;&|()<>":
            self.at += 1
        return self.text[start : self.at].strip("'\"\\")

    def _document(self, delimiter: str, start: int) -> tuple[str, int]:
        """Return the lines from *start* up to the delimiter, and the position after them."""
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
        """Whether *char* is part of `2>&1`, `&>file` or `>|`, which do not end a command."""
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
            self.found.append(SimpleCommand(self.words, piped))
            self.words = []
        self.at += (
            2 if char and char in "&|" and self.text[self.at + 1 : self.at + 2] == char else 1
        )
        if char == "\n":
            start = self.at
            for delimiter, words, index in self.pending_documents:
                words[index], self.at = self._document(delimiter, start)
                start = self.at + 1
            self.pending_documents = []
