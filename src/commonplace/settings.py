"""Settings: `config.toml` in a home, all optional. The nearest home's file overrides the user's."""

from __future__ import annotations

import errno
from typing import Any, NamedTuple

from commonplace.errors import SettingsInvalid
from commonplace.files.plain import read_small

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from commonplace.where.home import Home

SETTINGS_BYTES_MAX = 64 << 10
# No setting has more; a key of thousands of parts takes a parser minutes.
_KEY_PARTS_MAX = 8


class Setting(NamedTuple):
    """One setting: its default, its meaning, and the values it may have."""

    default: Any
    meaning: str
    # Of a list: what each of its items may be.
    choices: tuple[str, ...] = ()
    minimum: float | None = None
    maximum: float | None = None
    # The home in a repository may come from a stranger, so it cannot set where data is sent.
    user_only: bool = False


SETTINGS: dict[str, Setting] = {
    "fsync": Setting(
        "batch",
        "when appended lines are synced to the disk: never, batch (when a command or program is "
        "done) or always (before each is confirmed)",
        choices=("never", "batch", "always"),
    ),
    "line_bytes_max": Setting(
        1 << 20,
        "the longest line that may be written, in bytes; at most 16 MiB",
        minimum=1024,
        maximum=16 << 20,  # A quarter of the longest line that is read.
    ),
    "maintenance.background": Setting(
        True,
        "whether an idle server and the end of a session do what `commonplace maintain` does",
    ),
    "learn.background": Setting(
        True,
        "whether maintenance consolidates: makes patterns of what recent tasks have in common",
    ),
    "maintenance.suggestions": Setting(
        True,
        "whether maintenance proposes links and contradictions of new records in the inbox",
    ),
    "rotation.lines_max": Setting(
        10_000,
        "maintenance rotates a log that has more lines than this; 0 = never",
        minimum=0,
    ),
    "embedder.kind": Setting(
        "minilm",
        "what turns text into vectors: minilm (in the package), http (a service of yours) or none",
        choices=("minilm", "http", "none"),
        user_only=True,
    ),
    "embedder.url": Setting(
        "", "the OpenAI-compatible embeddings endpoint, for `embedder.kind` http", user_only=True
    ),
    "embedder.model": Setting("", "the model to ask for there", user_only=True),
    "embedder.key_variable": Setting(
        "", "the environment variable that holds its key", user_only=True
    ),
    "embedder.background": Setting(
        True,
        "whether a recall that found many records without vectors starts a process to embed them",
    ),
    "recall.dense": Setting(
        0.5, "the weight of meaning (vectors) against words, 0 to 1", minimum=0, maximum=1
    ),
    "recall.pieces": Setting(
        0.25,
        "what the single words of the best memories, compared by meaning, weigh beside the rest; "
        "0 = they are not compared",
        minimum=0,
        maximum=2,
    ),
    "recall.reading": Setting(
        0.03,
        "what it weighs how well the best memories answer when a small model reads them together "
        "with the question, if the first place is in doubt; 0 = it does not",
        minimum=0,
        maximum=1,
    ),
    "recall.relevance_min": Setting(
        0.06,
        "the minimum relevance of a hit: the probability (0 to 1) that it answers; 0 = no minimum",
        minimum=0,
        maximum=1,
    ),
    "recall.passages": Setting(
        True, "whether long memories are delivered as the passages that answer, or from their start"
    ),
    "recall.same": Setting(
        True, "whether near-duplicates are folded and the newest of a changed rule comes first"
    ),
    "recall.priors": Setting(
        True,
        "whether recency, success, use, evidence, kind, repository, agent, tags and files affect "
        "ranks",
    ),
    "recall.half_life_days": Setting(
        180.0, "after how many days recency has lost half its weight", minimum=1
    ),
    "recall.semantic": Setting(
        0.5, "the weight of lessons, patterns and facts among kinds", minimum=0
    ),
    "recall.episodic": Setting(0.3, "the weight of episodes among kinds", minimum=0),
    "recall.skills": Setting(0.2, "the weight of skills among kinds", minimum=0),
    "brief.weights.semantic": Setting(
        0.5, "the weight of patterns, lessons and facts among the memories of a brief", minimum=0
    ),
    "brief.weights.episodic": Setting(
        0.3, "the weight of episodes among the memories of a brief", minimum=0
    ),
    "brief.weights.skills": Setting(
        0.2, "the weight of skills among the memories of a brief", minimum=0
    ),
    "continuity.maintain": Setting(
        True, "whether hooks keep our section of a CONTINUITY.md up to date, where there is one"
    ),
    "continuity.create": Setting(False, "whether hooks create a CONTINUITY.md where there is none"),
    "continuity.path": Setting(
        "", "where CONTINUITY.md is in a repository, e.g. .loki/CONTINUITY.md; empty = in the home"
    ),
    "trust.repositories": Setting(
        False, "whether the home that any repository brings is trusted at once", user_only=True
    ),
    "server.host": Setting(
        "127.0.0.1", "where `commonplace serve` listens without `--host`", user_only=True
    ),
    "server.port": Setting(
        8377, "its port; if another program uses that, any free one", minimum=0, maximum=65535
    ),
    "server.hosts": Setting([], "further names it answers to, in the Host header", user_only=True),
    "server.idle_minutes": Setting(
        30.0, "the minutes without a request after which it ends", minimum=0
    ),
    "server.body_bytes_max": Setting(
        4 << 20, "the maximum size of a request, in bytes", minimum=1024
    ),
    "server.rate_max": Setting(
        1000, "the maximum number of requests per second from a caller", minimum=1, user_only=True
    ),
    "server.concurrency_max": Setting(
        64, "the maximum number of requests at once", minimum=1, user_only=True
    ),
    "tools.sets": Setting(
        [],
        "the toolsets the server offers without `--toolsets`: core, notes, episodes, kom;"
        " an empty list = core and notes",
        choices=("core", "notes", "episodes", "kom"),
    ),
    "tools.dotted_names": Setting(
        False,
        "whether the tools of the toolset kom are listed by their dotted names, such as "
        "kom.memory.v1.search_memory, which not every client accepts; both names can be called",
    ),
    "packs.folders": Setting(
        [],
        "folders besides the home's `packs/` that tools may write packs to and import them from",
        user_only=True,
    ),
    "packs.passphrase_file": Setting(
        "",
        "a file whose first line is the passphrase of packs, where COMMONPLACE_PASSPHRASE is not "
        "set",
        user_only=True,
    ),
    "packs.recipients": Setting(
        [],
        "public keys (age1…, ssh-ed25519 …) that packs are encrypted for, instead of a passphrase",
        user_only=True,
    ),
    "packs.identity_file": Setting(
        "", "the file of your private key, of age or ssh, to open packs with", user_only=True
    ),
    "tools.memory.enabled": Setting(
        True, "whether the server offers agents tools for their own notes"
    ),
    "hooks.start": Setting(
        True,
        "whether a session starts with recent knowledge, the agent's CONTEXT.md and its handoff",
    ),
    "hooks.prompt": Setting(True, "whether relevant memories are added to a prompt"),
    "hooks.relevance_min": Setting(
        0.32,
        "the minimum relevance (0 to 1) of a memory that is added to a prompt",
        minimum=0,
        maximum=1,
    ),
    "hooks.prefixes": Setting(
        ["LEARNED:", "DECISION:", "FACT:", "GOTCHA:", "PATTERN:"],
        "the prefixes that mark a lesson in a comment, commit message, note or echo",
    ),
    "hooks.failures": Setting(
        True, "whether solved failures are put in the inbox as candidates for lessons"
    ),
    "hooks.episodes": Setting(True, "whether sessions are logged as episodes"),
    "hooks.exempt": Setting(
        ["worker-supervisor"], "the agents and subagents whose sessions are not captured"
    ),
    "hooks.completion": Setting(
        "off",
        "what `commonplace-hook AGENT check-completion` does: off, report or block",
        choices=("off", "report", "block"),
    ),
    "hooks.dispatches": Setting(
        False, "whether prompts sent to subagents are kept in .state/dispatches.jsonl"
    ),
    "rotation.move": Setting(
        5_000, "the number of lines that a rotation moves to the archive; 0 = none", minimum=0
    ),
    "learn.episodes_whole_days": Setting(
        7,
        "after how many days maintenance replaces an episode in the log by its summary, and moves "
        "the whole one to the archive; 0 = never",
        minimum=0,
    ),
    "learn.episodes_kept_days": Setting(
        30,
        "after how many days maintenance moves an episode to the archive, unless a memory was "
        "derived from it; 0 = never",
        minimum=0,
    ),
    "learn.merge": Setting(
        True, "whether maintenance merges patterns, and lessons, that say the same"
    ),
    "context.weights.similarity": Setting(
        0.45, "the weight of likeness to the question in the score of a node", minimum=0, maximum=1
    ),
    "context.weights.edge": Setting(
        0.20, "that of the strongest link to a node that was found", minimum=0, maximum=1
    ),
    "context.weights.recency": Setting(
        0.15, "that of how recently it was written or used", minimum=0, maximum=1
    ),
    "context.weights.usage": Setting(0.10, "that of how often it was used", minimum=0, maximum=1),
    "context.weights.task": Setting(
        0.07, "that of the task's tags, among its tags and in its path", minimum=0, maximum=1
    ),
    "context.weights.persona": Setting(
        0.03,
        "that of its links to the active persona, and of the persona's tags",
        minimum=0,
        maximum=1,
    ),
    "context.half_life_days": Setting(
        30.0, "after how many days the recency of a node has lost half its value", minimum=1
    ),
    "context.similarity_min": Setting(
        0.15,
        "the minimum likeness (0 to 1) to the question of a node that no link leads to",
        minimum=0,
        maximum=1,
    ),
    "context.hot_nodes_max": Setting(
        0,
        "how many nodes of the working set are looked at again for a new question, whether or not"
        " it leads to them; measured, this found nothing more",
        minimum=0,
        maximum=800,
    ),
    "context.decay": Setting(
        0.98,
        "what is left of the resonance of a node that a context does not light",
        minimum=0,
        maximum=1,
    ),
    "context.value_min": Setting(
        0.05, "the resonance below which a node leaves the working set", minimum=0, maximum=1
    ),
    "context.nodes_max": Setting(
        800, "the maximum number of nodes in the working set; at most 800", minimum=1, maximum=800
    ),
    "context.ttl_hours": Setting(
        24.0,
        "the hours after which a node that was not lit again leaves the working set",
        minimum=0,
    ),
    "context.knowledge_share": Setting(
        0.5,
        "the share of the budget that knowledge may have, 0.4 to 0.6",
        minimum=0.4,
        maximum=0.6,
    ),
    "context.persona": Setting(
        "", "the id of the active persona, where neither a caller nor COMMONPLACE_PERSONA names one"
    ),
    "context.caps.concept": Setting(
        8, "the maximum number of concepts in a context", minimum=0, maximum=100
    ),
    "context.caps.skill": Setting(
        6, "the maximum number of skills in a context", minimum=0, maximum=100
    ),
    "context.caps.fact": Setting(
        10, "the maximum number of facts and lessons in a context", minimum=0, maximum=100
    ),
    "context.caps.snippet": Setting(
        10, "the maximum number of snippets in a context", minimum=0, maximum=100
    ),
    "context.caps.pattern": Setting(
        4, "the maximum number of patterns and anti-patterns in a context", minimum=0, maximum=100
    ),
    "context.caps.episode": Setting(
        6, "the maximum number of episodes in a context", minimum=0, maximum=100
    ),
    "context.caps.tool": Setting(
        4, "the maximum number of tools in a context", minimum=0, maximum=100
    ),
    "context.caps.persona": Setting(
        1, "the maximum number of personas in a context", minimum=0, maximum=100
    ),
    "context.caps.task": Setting(
        2, "the maximum number of tasks in a context", minimum=0, maximum=100
    ),
}


class Settings:
    """The value of every setting, by its name.

    `unknown` lists the files' unknown names, `origins` the file that set each value, if one did.
    `unknown_items` are unknown items of lists. They are left out: a newer version may have written
    them, and a server that does not start helps nobody.
    """

    def __init__(self) -> None:
        self._values: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}
        self.unknown: list[tuple[Path, str]] = []
        self.unknown_items: list[tuple[Path, str, str]] = []
        self.origins: dict[str, Path] = {}

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self._values[name]

    def override(self, values: Mapping[str, Any]) -> None:
        """Set *values*, by their full names; they override the values in files."""
        for name, value in values.items():
            if name not in SETTINGS:
                raise SettingsInvalid("settings", f"there is no setting `{name}`")
            check_value("settings", name, SETTINGS[name], value)
            self._values[name] = value

    def read(self, path: Path, *, of_user: bool) -> None:
        """Read the values in the file at *path*, if it exists. Raises `SettingsInvalid`."""
        try:
            raw = read_small(path, SETTINGS_BYTES_MAX)
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            is_link = error.errno == errno.ELOOP
            reason = "it is a link, which is not followed" if is_link else error.strerror
            raise SettingsInvalid(path, f"cannot be read ({reason})") from error
        for name, value in parse(path, raw):
            setting = SETTINGS.get(name)
            if setting is None:
                self.unknown.append((path, name))
            elif setting.user_only and not of_user:
                raise SettingsInvalid(path, f"`{name}` may be set in the user's home only")
            else:
                known = _known_items(setting, value)
                check_value(path, name, setting, known)
                if known != value:
                    self.unknown_items += [(path, name, one) for one in value if one not in known]
                self._values[name] = known
                self.origins[name] = path


def parse(path: Path | str, raw: bytes) -> list[tuple[str, Any]]:
    """Return the names and values in a file of settings."""
    # Most homes have no such file, and every command starts here.
    import re  # noqa: PLC0415
    import tomllib  # noqa: PLC0415

    if re.search(rb"(?:[\w\"'-]+[ \t]*\.[ \t]*){%d}" % _KEY_PARTS_MAX, raw):
        raise SettingsInvalid(path, f"has a key of over {_KEY_PARTS_MAX} parts")
    try:
        return list(_flatten(tomllib.loads(raw.decode("utf-8"))))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SettingsInvalid(path, f"is not valid TOML ({error})") from None
    except RecursionError:
        raise SettingsInvalid(path, "is nested too deep") from None


def load(homes: Iterable[Home]) -> Settings:
    """Return the settings of *homes*; the last home overrides the others.

    Those of a home that is not trusted are not used, and nothing in them can stop a command.
    """
    settings = Settings()
    for home in homes:
        if home.trusted or settings["trust.repositories"]:
            settings.read(home.settings_file, of_user=home.of_user)
    return settings


def _flatten(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and prefix + key not in SETTINGS:
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _known_items(setting: Setting, value: Any) -> Any:  # noqa: ANN401 (see `Setting.default`)
    """Return a list without those texts that the setting does not know; else the value itself."""
    if not (setting.choices and isinstance(setting.default, list) and isinstance(value, list)):
        return value
    return [one for one in value if not isinstance(one, str) or one in setting.choices]


def check_value(path: Path | str, name: str, setting: Setting, value: object) -> None:
    """Raise `SettingsInvalid` if the setting *name* cannot have this *value*."""
    if setting.choices:
        is_list = isinstance(setting.default, list) and isinstance(value, list)
        for one in value if is_list else [value]:  # type: ignore[attr-defined]
            if one not in setting.choices:
                verb = "has" if is_list else "is"
                raise SettingsInvalid(
                    path, f"`{name}` {verb} {one!r}, not one of {', '.join(setting.choices)}"
                )
    types = (int, float) if type(setting.default) is float else (type(setting.default),)
    if type(value) not in types:
        raise SettingsInvalid(path, f"`{name}` must be {_type_name(setting)}, not {value!r}")
    # Only NaN differs from itself; it would pass the comparisons below.
    if value != value:  # noqa: PLR0124
        raise SettingsInvalid(path, f"`{name}` must be a number, not {value!r}")
    if isinstance(value, list) and not all(
        isinstance(item, str) and item.strip() for item in value
    ):
        raise SettingsInvalid(path, f"`{name}` must be a list of texts, not {value!r}")
    if setting.minimum is not None and value < setting.minimum:  # type: ignore[operator]
        raise SettingsInvalid(path, f"`{name}` is {value}, under {setting.minimum}")
    if setting.maximum is not None and value > setting.maximum:  # type: ignore[operator]
        raise SettingsInvalid(path, f"`{name}` is {value}, over {setting.maximum}")


def _type_name(setting: Setting) -> str:
    return {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        list: "a list of texts",
    }[type(setting.default)]
