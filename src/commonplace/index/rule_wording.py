"""Which texts state a rule about style, versions or tests, by their wording alone.

A sentence states one if it is about such a thing and binds: by a word like `must`, as an order, as
what holds for everything of a kind ("names of tests begin with test_"), or as a fixed value
("line length: 100"). What is told as an event ("the test failed because …") is no rule.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Collection

# A rule is stated in a sentence or two; a long text that mentions one further on is no rule.
RULE_CHARS_MAX = 600
# A longer sentence explains something. One that is only about parts of code must be shorter still.
_SENTENCE_WORDS_MAX = 32
_WEAK_WORDS_MAX = 14
# A first paragraph of so few words is the heading of the next one: "Naming", "style".
_HEADING_WORDS_MAX = 4
_TAGS = (
    "constraint constraints convention conventions formatting lint policy rule rules signature"
    " signatures style"
)
TAGS = frozenset(_TAGS.split())
# What these tags are about may have rules, and much else besides; modules have such names, too.
_SUBJECT_TAGS = "api format language test testing tests version versions"
_SUBJECTS = frozenset(_SUBJECT_TAGS.split())

# What rules are about.
_STYLE = (
    "style format formats formatted formatting formatter lint lints linter linters linting"
    " convention conventions naming indent indented indentation tabs spaces quotes camelcase"
    " pascalcase snake_case camel_case upper_case kebab docstring docstrings warnings"
    " black ruff flake8 pylint isort mypy pyright prettier eslint biome gofmt goimports rustfmt"
    " clippy checkstyle ktlint rubocop shellcheck"
)
_VERSIONS = "version versions standard edition msrv dependency dependencies signature signatures"
_TESTS = (
    "test tests testing coverage fixtures mock mocks ci pytest unittest jest vitest mocha junit"
    " gtest googletest catch2 rspec playwright cypress exception exceptions panic panics"
)
_WORDS = frozenset(f"{_STYLE} {_VERSIONS} {_TESTS}".split())
_PHRASES = (
    "line length", "type hint", "type annotation", "strict mode", "doc comment", "header file",
    "include guard", "commit message", "conventional commit", "language level", "error handling",
    "error polic", "error code", "public api", "std::expected", "iso 8601", "pep 8", "-wall",
    "-werror",
)  # fmt: skip
# Parts of code, as plurals: a rule is about all of them.
_CODE = (
    "functions methods classes constants variables identifiers imports comments errors raise throw"
    " lines typescript"
)
_WEAK = frozenset(_CODE.split())
_NAMES = (
    "c++ c# net python cpython node nodejs java jdk go golang rust ruby php kotlin scala swift perl"
    " typescript ecmascript es django flask fastapi rails react vue angular svelte spring postgres"
    " postgresql mysql mariadb sqlite redis gcc clang llvm msvc cmake bazel gradle maven npm pnpm"
    " yarn ubuntu debian macos windows android ios cuda qt unity kubernetes terraform pydantic"
    " numpy pandas pytest"
)
_PLATFORMS = frozenset(_NAMES.split())
_VERSIONED = (
    rf"(?<![\w.])(?:{'|'.join(map(re.escape, sorted(_PLATFORMS)))})(?:\.js)?(?: boot)?"
    r"[ -]?v?\d[\d.x]*(?!\w)"
)
_IS_VERSIONED = re.compile(_VERSIONED)
# Words, but not those of paths, calls and names with a dot.
_WORD = re.compile(r"(?<![\w./])[\w+#]+(?![\w/(])")

_SENTENCE_END = re.compile(r"(?<=[.!?])\s+|\n+")
# Where a part of a sentence begins: an order may stand there.
_START = r"(?:^|[:;.!?]\s+|,\s+(?:and|but|then)\s+)[-*•\s]*(?:please\s+)?"
_VERB = (
    r"(?:add|annotate|avoid|build|catch|check|compile|cover|declare|document|ensure|execute|follow"
    r"|format|handle|import|include|indent|keep|limit|lint|mark|mock|name|pin|place|prefer|prefix"
    r"|put|quote|raise|return|run|set|sort|squash|stick|support|target|throw|treat|use|verify|wrap"
    r"|write)"
)
_BINDING = re.compile(
    r"\b(?:must|shall|mandatory|forbidden|prohibited|not (?:allowed|permitted)|may (?:not|only)"
    r"|(?:have|has|needs?) to)\b"
    r"|\b(?:always|never)\s+(?!\w+ed\b|(?:was|were|had|did|saw|ran|came|got|went|has|have|is)\b)"
    rf"|{_START}(?:do not|don't|{_VERB}|test (?:every|each|all|with|against))"
    r"(?!\s*[:=(/.]|\s+(?:of|for|is|was|fail\w*|errors?|value|code|type|string|message)\b)\b",
)
_UNIT = (
    r"(?:names|tests|files|functions|methods|classes|types|variables|constants|imports|docstrings"
    r"|comments|headers|messages|fixtures|mocks|strings|dates|errors|exceptions|modules"
    r"|identifiers|interfaces|enums|parameters|dependencies|warnings|signatures|lines|tabs|quotes)"
)
_IS = (
    r"(?:are|is|have|has|may|begin|end|start|live|belong|go|follow|use|return|come|carry|get|raise"
    r"|throw|stay|take|need|explain|fit|sit)"
)
# What holds now, for everything of a kind or for this project.
_STATED = re.compile(
    # Every new function needs a test.
    r"^[-*•\s]*(?:every|each|all|any)\s[^.]*?\b(?:is|are|has|have|needs?|gets?|comes?|goes|go|uses?"
    r"|carr(?:y|ies)|returns?|follows?|begins?|ends?|starts?|lives?|takes?)\b"
    # No exceptions in the hot path. (That there is no test of something is no rule.)
    r"|^[-*•\s]*(?:no|only)\s(?!(?:\w+ )?(?:tests?|coverage|docstrings?|errors?|versions?)\b)"
    # Names of tests begin with test_.
    rf"|{_START}(?:\w+\s+){{0,2}}?{_UNIT}(?:\s+(?:in|of|for|on)(?:\s+[\w*]+){{1,3}}?)?\s+{_IS}\b"
    # We follow the Google style guide.
    r"|\b(?:we|our (?:code|project|team)|(?:the|this) (?:project|repo(?:sitory)?|code ?base))\s+"
    r"(?:only\s+)?(?:adhere|are|build|compile|document|follow|format|is|keep|lint|name|need|pin"
    r"|prefer|put|require|return|run|sort|stick|support|target|test|treat|use|write)(?:e?s)?\b"
    # The core is C++20; Minimum Node 20; Java 17 or newer; Go 1.22 is required.
    r"|\b(?:is|are|on|as|uses?|targets?|supports?|requires?|needs?|min(?:imum)?|in|with)[ :]\s*"
    rf"{_VERSIONED}(?:$|[.,;]| or | and | to |\+)"
    rf"|{_VERSIONED}[^.;]*?\b(?:or|and) (?:newer|later|higher|above|up)\b"
    rf"|{_VERSIONED} (?:is|as) (?:the )?(?:minimum|required|supported|standard|target|oldest)\b"
    # Coverage threshold: 85 %; Code style: PEP 8; Line length is 100.
    rf"|{_START}(?:language(?: (?:level|version))?|(?:code|coding|naming|test|commit|error|import)"
    r" (?:style|conventions?|polic(?:y|ies)|handling|standards?|rules?|format|framework|runner)"
    r"|(?:max\w*|min\w*) [\w ]{3,30}|line length|indent(?:ation)?|formatter|linter|quotes|edition"
    r"|(?:test )?coverage (?:threshold|minimum|target|goal)|supported [\w ]{3,30}|msrv|naming"
    r"|toolchain|compiler)(?: is| are| =|=|:)\s+\S"
    r"|\b(?:two|four|eight|2|4|8)[ -]spaces?\b|\b(?:tabs,? not spaces|spaces,? not tabs)\b"
    r"|\bedition 20\d\d\b|\bstrict mode is on\b"
    rf"|^{_VERSIONED}(?:(?:,| and) {_VERSIONED})*$"
    # Words of advice.
    r"|\b(?:should|prefer(?:red)?|required|recommended|instead of|rather than|at least|at most"
    r"|no more than|everywhere|pinned (?:to|at)"
    r"|before (?:(?:a|any|every|each|the) )?(?:commit|merg|push|releas|pull request)\w*)\b",
)
# What follows gives the reason or the circumstances of what was stated.
_REASON = re.compile(r"\b(?:because|since|until|so that|otherwise|which)\b|,\s+so\b")
# Past tense, and states that pass. A participle after `is` or `are` is neither.
_PARTICIPLE = re.compile(r"\b(?:is|are|be|get|gets|been) (?:\w+ly )?\w+ed\b")
_EVENT = re.compile(
    r"\b(?:was|were|had|did|didn't|could(?:n't)?|broke|hung|took|went|came|found|got|made|became"
    r"|ran|saw|lost|threw|wrote|led|has been|have been|green|red|passing|failing|fails?|flaky"
    r"|broken|slow|deprecated|last (?:week|month|year|night|release|commit)|yesterday"
    r"|(?!need|embed|exceed|speed|seed|feed|requir|support|preferr|recommend|nest|typ|nam|pinn"
    r"|shar|unus|mix|bas|allow|formatt|expect|reserv|quot|fix)\w{2,}ed"
    r"(?=\s+(?:the|a|an|to|in|on|from|after|out|into|with|for|by|and|two|three|\d+)\b|[.,;]|$))\b",
)


def states_rule(words: Collection[str], text: str) -> bool:
    """Whether a memory states such a rule, by its tags and the parts of its path, or its text."""
    if not TAGS.isdisjoint(words):
        return True
    has_subject = not _SUBJECTS.isdisjoint(words)
    sentences = _sentences(text[:RULE_CHARS_MAX].lower())
    return any(_is_rule(sentence, has_subject=has_subject) for sentence in sentences)


def _sentences(text: str) -> list[str]:
    heading, _line, rest = text.strip().partition("\n")
    if rest.strip() and len(heading.split()) <= _HEADING_WORDS_MAX:
        text = f"{heading.rstrip(':. ')}: {rest.strip()}"
    return _SENTENCE_END.split(text.strip())


def _is_rule(sentence: str, *, has_subject: bool) -> bool:
    if not has_subject and not _is_about(sentence):
        return False
    reason = _REASON.search(sentence)
    stated = sentence[: reason.start() if reason else None].strip()
    if reason and not has_subject and not _is_about(stated):
        return False
    if _BINDING.search(stated):
        return True
    return bool(_STATED.search(stated)) and not _EVENT.search(_PARTICIPLE.sub("", stated))


def _is_about(sentence: str) -> bool:
    if sentence.count(" ") >= _SENTENCE_WORDS_MAX:
        return False
    words = _WORD.findall(sentence)
    if not _WORDS.isdisjoint(words) or any(phrase in sentence for phrase in _PHRASES):
        return True
    if len(words) <= _WEAK_WORDS_MAX and not _WEAK.isdisjoint(words):
        return True
    is_platform = any(word.rstrip("0123456789") in _PLATFORMS for word in words)
    return is_platform and _IS_VERSIONED.search(sentence) is not None
