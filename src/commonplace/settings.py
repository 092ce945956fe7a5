"""Settings: `config.toml` in a home, all optional. The user's file, then the nearest home's over it."""

from __future__ import annotations

from typing import Any, NamedTuple

from commonplace.errors import SettingsInvalid

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from pathlib import Path

    from commonplace.where.home import Home


class Setting(NamedTuple):
    """One setting: what it may be, what it is when nobody says, and what it means."""

    default: Any
    meaning: str
    choices: tuple[str, ...] = ()
    minimum: int | None = None
    maximum: int | None = None
    # A home inside a repository may come from a stranger; it cannot set what could send data elsewhere.
    user_only: bool = False


SETTINGS: dict[str, Setting] = {
    "fsync": Setting(
        "batch",
        "when appended lines are brought to the disk itself: never, batch (when a command or program is done) or "
        "always (before each is acknowledged)",
        choices=("never", "batch", "always"),
    ),
    "line_bytes_max": Setting(
        1 << 20,
        "the longest line that may be written, in bytes; at most 16 MiB",
        minimum=1024,
        maximum=16 << 20,  # A quarter of what every reader takes.
    ),
    "maintenance.background": Setting(
        True,
        "whether an idle server and the end of a session do what `commonplace maintain` does",
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
        "whether a short-lived process embeds what is missing after a recall that found many without vectors",
    ),
    "recall.dense": Setting(
        0.4, "the weight of meaning (vectors) against words, 0 to 1", minimum=0
    ),
    "recall.relevance_min": Setting(
        0.22, "below this relevance (0 to 1) nothing is an answer", minimum=0
    ),
    "recall.passages": Setting(
        True, "whether long memories are delivered as the passages that answer, or from their start"
    ),
    "recall.same": Setting(
        True, "whether near-duplicates are folded and the newest of a changed rule leads"
    ),
    "recall.priors": Setting(
        True, "whether recency, success, use, kind, repository, agent, tags and files count"
    ),
    "recall.half_life_days": Setting(
        180.0, "after how many days recency has lost half its weight", minimum=1
    ),
    "recall.semantic": Setting(
        0.5, "the weight of lessons, patterns and facts among kinds", minimum=0
    ),
    "recall.episodic": Setting(0.3, "the weight of episodes among kinds", minimum=0),
    "recall.skills": Setting(0.2, "the weight of skills among kinds", minimum=0),
    "server.host": Setting(
        "127.0.0.1", "where `commonplace serve` listens when not told", user_only=True
    ),
    "server.port": Setting(
        8377, "its usual port; where that is taken, any free one", minimum=0, maximum=65535
    ),
    "server.hosts": Setting([], "further names it answers to, in the Host header", user_only=True),
    "server.token_required": Setting(
        False,
        "whether a token is needed even while there is none; with one, or on another host, it always is",
        user_only=True,
    ),
    "server.idle_minutes": Setting(
        30.0, "after how long without a request it ends by itself", minimum=0
    ),
    "server.body_bytes_max": Setting(
        4 << 20, "the longest request it takes, in bytes", minimum=1024
    ),
    "server.rate_max": Setting(
        1000, "how many requests a second it takes of one caller", minimum=1, user_only=True
    ),
    "server.concurrency_max": Setting(64, "how many requests at once", minimum=1, user_only=True),
    "tools.sets": Setting(
        [], "the toolsets the server offers when not told: core, notes; none named = all"
    ),
    "tools.memory.enabled": Setting(
        True, "whether the server offers agents tools for their own notes"
    ),
    "hooks.start": Setting(
        True,
        "whether a session starts with recent knowledge, the agent's CONTEXT.md and its handoff",
    ),
    "hooks.prompt": Setting(True, "whether memories that matter to a prompt are added to it"),
    "hooks.relevance_min": Setting(
        0.4, "below this relevance (0 to 1) nothing is added to a prompt", minimum=0
    ),
    "hooks.prefixes": Setting(
        ["LEARNED:", "DECISION:", "FACT:", "GOTCHA:", "PATTERN:"],
        "what a comment, commit message, note or echo states a lesson with",
    ),
    "hooks.failures": Setting(
        True, "whether failures that get solved wait in the inbox as candidates"
    ),
    "hooks.episodes": Setting(True, "whether sessions are written down as episodes"),
    "hooks.exempt": Setting(
        ["worker-supervisor"], "agents and subagents of which nothing is captured"
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
        5_000, "how many of its lines then move to the archive; 0 = none", minimum=0
    ),
}


class Settings:
    """The values in force. `settings["rotation.move"]` always has one; `unknown` lists names nobody knows."""

    def __init__(self) -> None:
        self._values: dict[str, Any] = {name: setting.default for name, setting in SETTINGS.items()}
        self.unknown: list[tuple[Path, str]] = []

    def __getitem__(self, name: str) -> Any:  # noqa: ANN401
        return self._values[name]

    def override(self, values: Mapping[str, Any]) -> None:
        """Set *values*, by their full names, over what the homes say."""
        for name, value in values.items():
            if name not in SETTINGS:
                raise SettingsInvalid("settings", f"there is no setting `{name}`")
            _check("settings", name, SETTINGS[name], value)
            self._values[name] = value

    def read(self, path: Path, *, of_user: bool) -> None:
        """Take over what the file at *path* sets, if there is one. `SettingsInvalid` says what is wrong in it."""
        try:
            raw = path.read_bytes()
        except (FileNotFoundError, NotADirectoryError):
            return
        except OSError as error:
            raise SettingsInvalid(path, f"cannot be read ({error.strerror})") from error
        import tomllib  # noqa: PLC0415 (most homes have no such file, and every command starts here)

        try:
            table = tomllib.loads(raw.decode("utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise SettingsInvalid(path, f"is not valid TOML ({error})") from None
        for name, value in _flattened(table):
            setting = SETTINGS.get(name)
            if setting is None:
                self.unknown.append((path, name))
            elif setting.user_only and not of_user:
                raise SettingsInvalid(path, f"`{name}` may be set in the user's home only")
            else:
                _check(path, name, setting, value)
                self._values[name] = value


def load(homes: Iterable[Home]) -> Settings:
    """The settings of *homes*, the nearest last."""
    settings = Settings()
    for home in homes:
        settings.read(home.settings_file, of_user=home.of_user)
    return settings


def _flattened(table: dict[str, Any], prefix: str = "") -> Iterable[tuple[str, Any]]:
    for key, value in table.items():
        if isinstance(value, dict) and prefix + key not in SETTINGS:
            yield from _flattened(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _check(path: Path | str, name: str, setting: Setting, value: object) -> None:
    if setting.choices and value not in setting.choices:
        raise SettingsInvalid(
            path, f"`{name}` is {value!r}, not one of {', '.join(setting.choices)}"
        )
    wanted = (int, float) if type(setting.default) is float else (type(setting.default),)
    if type(value) not in wanted:
        raise SettingsInvalid(path, f"`{name}` must be {_a(setting.default)}, not {value!r}")
    if value != value:  # noqa: PLR0124 (only "not a number" differs from itself; it would pass every bound below)
        raise SettingsInvalid(path, f"`{name}` must be a number, not {value!r}")
    if isinstance(value, list) and not all(
        isinstance(item, str) and item.strip() for item in value
    ):
        raise SettingsInvalid(path, f"`{name}` must be a list of texts, not {value!r}")
    if setting.minimum is not None and value < setting.minimum:  # type: ignore[operator]
        raise SettingsInvalid(path, f"`{name}` is {value}, under {setting.minimum}")
    if setting.maximum is not None and value > setting.maximum:  # type: ignore[operator]
        raise SettingsInvalid(path, f"`{name}` is {value}, over {setting.maximum}")


def _a(default: object) -> str:
    return {
        bool: "true or false",
        int: "a whole number",
        float: "a number",
        str: "text",
        list: "a list of texts",
    }[type(default)]
