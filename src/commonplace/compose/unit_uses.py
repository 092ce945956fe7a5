"""What a unit of a text is for: a fix, advice, a cause, or background.

The heading that it stands under says so, or else how it begins.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING

from commonplace.index.passages import LABEL
from commonplace.index.units import CODE

if TYPE_CHECKING:
    from commonplace.index.units import Unit

LABEL_CHARS_MAX = 24
# A longer line introduces what follows, but does not say what that is for.
LEAD_CHARS_MAX = 60
# How useful a unit is, by the heading it stands under: what to do, how to prevent it and what
# follows from it, neither, the cause, background.
FIX, ADVICE, NEITHER, CAUSE, BACKGROUND = 1.0, 0.5, 0.0, -0.3, -1.0
# What says most of the question, wherever it stands: it is shown before the fix of something else.
ANSWER = 1.1
# Without a heading that says so: a sentence that begins with a verb such as "use".
IMPERATIVE = 0.6
# A sentence that only says what not to do.
WARNING = 0.2
_HEADINGS = {
    FIX: r"\b(solutions?|fix(ed|es)?|cure|patch(es)?|corrections?|resol(utions?|ved?)|"
    r"remed(y|ies)|workarounds?|guidance|what to do|relief|how to|steps?|instead|decision|"
    r"what (worked|works|solved|helped|fixed)|what (we|i) (did|changed)|^changes?$|way out|"
    r"recommend(ation|ed)?s?|correct|answer|rules?|convention|use|do this|approach|summary|"
    r"tl;?dr|verdict|lösung(en)?|behebung|abhilfe|"
    r"soluci(ón|ones)|arreglo|correctif|soluções|solução|correção)\b|"
    r"解决|解決|修复|修復|处理|対処|対策|해결",
    ADVICE: r"\b(prevention|prevent(ing)?|mitigations?|lessons?|takeaways?|acceptance|"
    r"best practices?|guardrails?|vorbeugung|prevención|prévention|prevenção)\b|"
    r"预防|預防|防止|예방",
    CAUSE: r"\b((root )?causes?|ursachen?|grund|causas?)\b|^why\b|原因|원인",
    BACKGROUND: r"\b(context|background|problem|symptoms?|history|investigation|timeline|related|"
    r"references?|what (happened|didn.?t work|did not work|failed)|see also|sources?|evidence|"
    r"observed|observations?|checklist|"
    r"examples?|results?|appendix|when to apply|verification|tests?|where it landed|alternatives?|"
    r"scope|hintergrund|symptome?|contexto|problema|síntomas|contexte|problème|symptômes)\b|"
    r"^(?:(?:considered )?options|attempts?|dead ends?|rejected|ruled out|verified|"
    r"tried(?: first)?|things that|(?:things |what )?(?:i|we|was) (?:tried|looked at))\b|"
    r"^(?:\w+ )?files$|^\W*(?:environment|errors?)\W*$|"
    r"问题|問題|背景|症状|现象|문제",
}
_USES = {use: re.compile(words, re.IGNORECASE) for use, words in _HEADINGS.items()}
_IMPERATIVE = re.compile(
    r"^\W*(fix|solution|resolution|use|run|set|add|remove|never|always|do not|don't|make|prefer|"
    r"ensure|avoid)\b",
    re.IGNORECASE,
)
# Advice that begins with where or when it holds: "In the Dockerfile use …", "… use it instead".
_ADVICE = re.compile(
    r"(?:^|[.!?]\s+)(?:in|on|for|with|to|instead|better|so|then|after that|afterwards)\b"
    r"[^.!?:;]{0,50}?[\s,](?:use|run|set|add|remove|never|always|do not|don't|prefer|ensure|avoid|"
    r"replace|install|pin|delete|restart|disable|enable)\s(?!of\b)|\buse\s[^.!?]{1,60}\binstead\b",
    re.IGNORECASE,
)
# A sentence that says that what follows is the fix.
_STATES_FIX = re.compile(
    r"\bthe (?:fix|remedy|solution|cure|workaround) (?:is|was|in|for|here|that)\b|"
    r"\b(?:fixed|solved|cured|resolved) (?:it |this )?by\b|"
    r"\bwhat (?:finally )?(?:helped|fixed|solved|cured)\b|"
    r"^to (?:get|make|bring|restore|fix|recover|unblock|solve|repair)\b[^.:]{0,60}:",
    re.IGNORECASE,
)
# And one that says what is done otherwise since.
_CHANGED = re.compile(
    r"\b(?:from now on|the way out|we now|(?:what|as) we have now|"
    r"now (?:uses?|goes|maps?|runs?|has|have|sets?|takes?|keeps?|gets?|calls?|reads?|writes?))\b",
    re.IGNORECASE,
)
# And one that says how to prevent it.
_PREVENTS = re.compile(
    r"^(?:so that|(?:in order )?to (?:prevent|avoid)|for (?:the )?next time)\b[^.]{0,60}"
    r"\b(?:again|prevent|avoid|next time|happens?)\b",
    re.IGNORECASE,
)
_WARNING = re.compile(r"^\W*(?:never|avoid|do not|don't)\b", re.IGNORECASE)
# What introduces a list, a table or code that says what to do: `Options:`, `Variables to set:`.
_LEAD = re.compile(r"\b(?:options|to (?:set|run|do|use|add|change|install))\b", re.IGNORECASE)
# More labels of fixes than those that passages begin with.
_LABEL = re.compile(
    r"(?:(?:immediate|permanent|short.term|long.term)(?: (?:relief|fix|solution))?|do this)\s*:",
    re.IGNORECASE,
)
_EMPHASIS = re.compile(r"(?:\*\*|__)(?=:)")
# What is in the output of a program that failed.
_MESSAGE = re.compile(
    r"\b(?:error|exception|traceback|fatal|failed|warning|panic|crashed|exit(?:ed)?)\b",
    re.IGNORECASE,
)
_LANGUAGE = re.compile(r"\s*(?:```+|~~~+) *([\w+#-]+)")
_OUTPUT = ("text", "txt", "console", "log", "output", "plaintext", "plain", "none", "shell-session")
# Lines of a stack trace.
_TRACE = re.compile(
    r"^goroutine \d|\b0x[0-9a-f]{4,}|^\s+at [\w.$<>]+\s?\(|^\s*File \".+\", line \d", re.MULTILINE
)
_SPEAKER = re.compile(
    r"^(?:user|human|assistant|agent|ai|system)\s*:", re.IGNORECASE | re.MULTILINE
)
_NOT_FIX = re.compile(r"\bnot (?:the|a) (?:fix|solution)\b", re.IGNORECASE)


def is_conversation(text: str) -> bool:
    """Whether *text* is what a user and an agent said in turn."""
    return len(_SPEAKER.findall(text)) > 1


def is_message(text: str) -> bool:
    """Whether *text* has words of the output of a program that failed, or lines of a trace.

    A block that names its language is code, and may speak of errors.
    """
    language = _LANGUAGE.match(text)
    if language and language[1].lower() not in _OUTPUT:
        return False
    return bool(_MESSAGE.search(text) or _TRACE.search(text))


def find_fix_word(heading: str) -> re.Match[str] | None:
    """Return where *heading* says that a fix follows, as in "Solution"; `None` if it does not."""
    return None if _NOT_FIX.search(heading) else _USES[FIX].search(heading)


def use_of_heading(heading: str) -> float | None:
    """Return what *heading* says that follows, such as `FIX`; `None` if it does not say."""
    return use_of_section((heading,))


def begins_with_label(text: str) -> bool:
    """Whether *text* begins with a label that says what it is, such as `Fix:`."""
    start = _EMPHASIS.sub("", text.lstrip("*-•> "), count=1)
    if LABEL.match(start):
        return True
    if _LABEL.match(start):
        return True
    label, colon, _rest = start[: LABEL_CHARS_MAX + 1].replace("\uff1a", ":").partition(":")
    return bool(colon) and not label.isascii() and _USES[FIX].search(label) is not None


def use_of_unit(unit: Unit, text: str, headings: tuple[str, ...]) -> float:
    """Return from -1 (background) to 1 (instructions), by the nearest heading, else by the text."""
    if (by_heading := use_of_section(headings)) is not None:
        return by_heading
    start = text.lstrip("*-• ")
    label, colon, rest = start.replace("\uff1a", ":").partition(":")
    # A line in bold stands for a heading.
    introduces = bool(colon) and not rest.strip("*_ \n")
    introduces = (introduces or start.endswith("**")) and len(label) <= LEAD_CHARS_MAX
    if introduces and _LEAD.search(label):
        return IMPERATIVE
    if introduces or len(label) < LABEL_CHARS_MAX:
        for use in (BACKGROUND, CAUSE):
            if _USES[use].search(label):
                return use
    is_advice = unit.kind != CODE and _ADVICE.search(start)
    if not begins_with_label(start) and (is_advice or (introduces and find_fix_word(label))):
        return IMPERATIVE
    return _use_of_sentence(start, unit.kind)


def announces_fix(kind: str, words: str) -> bool:
    return kind != CODE and bool(_STATES_FIX.search(words) or _CHANGED.search(words))


def _use_of_sentence(text: str, kind: str) -> float:
    if begins_with_label(text) or (kind != CODE and _STATES_FIX.search(text)):
        return FIX
    if _PREVENTS.search(text):
        return ADVICE
    if _WARNING.search(text):
        return WARNING
    return IMPERATIVE if _IMPERATIVE.search(text) else NEITHER


@lru_cache(maxsize=1000)
def use_of_section(headings: tuple[str, ...]) -> float | None:
    for heading in reversed(headings):
        if _NOT_FIX.search(heading):
            return BACKGROUND
        uses = [use for use, words in _USES.items() if words.search(heading)]
        if uses and not (FIX in uses and BACKGROUND in uses):
            return uses[0]
    return None
