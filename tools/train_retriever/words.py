"""Sentences, and questions in other words: rules on text that every kind of pair uses."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from tools.train_retriever.pair import squeeze

if TYPE_CHECKING:
    import random
    from collections import Counter

_END = re.compile(r"(?<=[.!?])(?<!e\.g\.)(?<!i\.e\.)(?<!etc\.)(?<!vs\.)\s+(?=[A-Z`\"'(\[])")
_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_.\-]*[A-Za-z0-9]")
_COMMON = frozenset(
    [
        "a",
        "an",
        "and",
        "are",
        "as",
        "at",
        "be",
        "been",
        "but",
        "by",
        "can",
        "could",
        "did",
        "do",
        "does",
        "for",
        "from",
        "had",
        "has",
        "have",
        "he",
        "her",
        "his",
        "how",
        "i",
        "if",
        "in",
        "into",
        "is",
        "it",
        "its",
        "just",
        "may",
        "me",
        "more",
        "most",
        "my",
        "no",
        "not",
        "of",
        "on",
        "only",
        "or",
        "other",
        "our",
        "out",
        "over",
        "she",
        "should",
        "so",
        "some",
        "such",
        "than",
        "that",
        "the",
        "their",
        "them",
        "then",
        "there",
        "these",
        "they",
        "this",
        "those",
        "to",
        "up",
        "use",
        "used",
        "uses",
        "using",
        "was",
        "we",
        "were",
        "what",
        "when",
        "where",
        "which",
        "while",
        "who",
        "will",
        "with",
        "would",
        "you",
        "your",
        "also",
        "any",
        "each",
        "one",
        "all",
        "set",
        "get",
        "new",
        "see",
        "e.g",
        "i.e",
    ]
)
# Word groups of one meaning, so that a question asks in other words than its answer says.
_SAME = """
error failure problem|delete remove drop erase|create make build add|change modify edit alter|fix repair solve resolve|begin start launch
stop halt end quit|show display print|find locate search|fast quick|slow sluggish|folder directory|file document|allow permit let
prevent avoid block|choose select pick|big large huge|small little tiny|get fetch obtain retrieve|send transmit post|check verify validate
replace swap substitute|skip ignore omit|convert transform turn|default standard preset|option setting flag|argument parameter|method function
value number amount|list array|dictionary mapping map|call invoke run execute|wait block hang|crash break die|missing absent lost
wrong incorrect bad|need require want|support handle cover|join merge combine|split divide separate|copy duplicate clone|save store keep persist
load read open|write store record|update refresh upgrade|install set-up deploy|configure set-up adjust|user person account|machine computer host
password secret credential|connect link attach|disconnect detach close|return give yield|raise throw|catch handle|hidden invisible private
public visible open|old previous former|new recent latest|unique distinct|same identical equal|example sample|test check trial|several multiple many
enable activate turn-on|disable deactivate turn-off|improve enhance better|increase raise grow|decrease reduce lower|explain describe tell
discuss talk-about mention|prefer like favour|dislike hate|buy purchase|child kid|house home|car vehicle|job work position|happy glad
sad unhappy|trip journey travel|friend buddy|movie film|begin commence|meet see|help assist support|learn study|answer reply respond
"""
_GROUPS: dict[str, list[str]] = {}
for _group in _SAME.replace("\n", "|").split("|"):
    _members = _group.split()
    for _member in _members:
        _GROUPS[_member] = [other.replace("-", " ") for other in _members if other != _member]


def sentences(text: str) -> list[str]:
    return [one for part in re.split(r"\n\s*\n", text) for one in _END.split(squeeze(part)) if one]


def first_sentence(text: str) -> tuple[str, str]:
    """The first sentence of *text*, and the rest as it stands."""
    head = re.split(r"\n\s*\n", text, maxsplit=1)[0]
    match = _END.search(head)
    end = match.start() if match else len(head)
    return text[:end].strip(), text[end:].strip()


def content_words(text: str) -> list[str]:
    return [word for word in _WORD.findall(text) if word.lower() not in _COMMON]


def in_other_words(text: str, chance: random.Random) -> str:
    """*text* with about half of the words it can replace replaced."""

    def other(match: re.Match[str]) -> str:
        word = match[0]
        found = _GROUPS.get(word.lower()) or [
            o + "s" for o in _GROUPS.get(word.lower().removesuffix("s"), []) if " " not in o
        ]
        return chance.choice(found) if found and chance.random() < 0.5 else word

    return re.sub(r"[A-Za-z]+", other, text)


_VERB = re.compile(
    r"^(?:add|install|configur|creat|us|set|writ|build|runn|run|deploy|enabl|disabl|manag|debug|test|upgrad|migrat|custom|handl|load|sav|updat|delet|remov|send|connect|defin|extend|get|mak|pars|work|chang|import|export|generat|convert|check|read|start|stop|access|pass|specify|select|call|return|authenticat|monitor|optimi|publish|document|schedul|cach|validat|index|query|train|plot|filter|sort|merg|join|group|rename|replac|format|print|log|encod|decod|encrypt|sign|verify)\w*\b",
    re.IGNORECASE,
)
_STEMS = {"configur": "configure", "creat": "create", "us": "use", "writ": "write", "enabl": "enable", "disabl": "disable", "manag": "manage",
          "upgrad": "upgrade", "migrat": "migrate", "handl": "handle", "sav": "save", "updat": "update", "delet": "delete", "remov": "remove",
          "defin": "define", "mak": "make", "pars": "parse", "chang": "change", "generat": "generate", "authenticat": "authenticate",
          "schedul": "schedule", "cach": "cache", "validat": "validate", "replac": "replace", "merg": "merge", "encod": "encode",
          "decod": "decode", "runn": "run", "sett": "set", "gett": "get", "plott": "plot", "logg": "log"}  # fmt: skip


def as_question(heading: str, topic: str, chance: random.Random) -> str:
    """A question that a section under *heading* in the documents of *topic* answers."""
    if heading.endswith("?"):
        return heading
    low = heading[:1].lower() + heading[1:] if heading[1:2].islower() else heading
    verb = _VERB.match(low)
    if verb:
        word = verb[0]
        if word.endswith("ing"):
            stem = word.removesuffix("ing")
            low = _STEMS.get(stem, stem) + low[len(word) :]
        start = chance.choice(
            ("how do I ", "how to ", "how can I ", "I want to ", "what is the way to ", "need to ")
        )
    else:
        start = chance.choice(
            (
                "what is ",
                "",
                "explain ",
                "how does this work: ",
                "tell me about ",
                "where is it said: ",
                "what about ",
            )
        )
    where = chance.choice((f" in {topic}", f" with {topic}", f" ({topic})", ""))
    if topic.lower() in low.lower():
        where = ""
    return start + in_other_words(low, chance) + where


def key_words(text: str, counts: Counter[str], chance: random.Random) -> str:
    """A few words of *text* that are rare in the other texts of its source, as one types them into a search box."""
    found = list(dict.fromkeys(word.strip(".") for word in content_words(text[:1_200])))
    found = [word for word in found if 2 < len(word) < 30]
    if len(found) < 4:
        return ""
    rare = sorted(found, key=lambda word: counts[word.lower()])[:12]
    chosen = chance.sample(rare, min(len(rare), chance.randint(3, 6)))
    return in_other_words(" ".join(chosen), chance)
