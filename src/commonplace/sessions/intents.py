"""The intent of a command: its program and first word, however it is called.

`sudo npm ci` and `npm install --force` both install with npm; `uv run pytest -x` and
`python -m pytest` both run tests. Two commands with the same intent are two attempts at one thing.
"""

from __future__ import annotations

import re
from functools import lru_cache

from commonplace.sessions import shell

INTENT_CHARS_MAX = 80

# They read, move around or print: their failure is no error, and their success solves nothing.
_WITHOUT_INTENT = frozenset(
    [
        "cd", "ls", "ll", "cat", "echo", "printf", "pwd", "which", "whereis", "type", "true",
        "false", "test", "[", "grep", "egrep", "rg", "ag", "find", "fd", "head", "tail", "less",
        "more", "wc", "sed", "awk", "sort", "uniq", "cut", "tr", "tee", "diff", "stat", "file",
        "tree", "du", "df", "ps", "env", "export", "set", "unset", "source", ".", "sleep", "wait",
        "date", "history", "jq", "read", "exit", "return", "kill", "pkill", "mkdir", "touch",
        "man", "help", "clear", "for", "while", "if", "fi", "done", "esac", "xxd", "command",
    ]
)  # fmt: skip
# They run another program, whose intent it is.
_RUNNERS = (
    ("uv", "run"),
    ("poetry", "run"),
    ("pipenv", "run"),
    ("pdm", "run"),
    ("hatch", "run"),
    ("bundle", "exec"),
    ("npm", "exec"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("yarn", "exec"),
    ("bun", "x"),
    ("npx",),
    ("bunx",),
    ("uvx",),
    ("pipx", "run"),
    ("timeout",),
    ("nice",),
    ("xvfb-run",),
    ("doas",),
)
# Options of the runners that take a value.
_VALUE_OPTIONS = frozenset(
    ["--with", "--from", "--python", "--extra", "--group", "--package", "--project", "--directory"]
)
_PACKAGERS = frozenset(["npm", "pnpm", "yarn", "bun"])
_INSTALLS = frozenset(["install", "ci", "i", "add"])
# Their first argument is what they work on, not what they do.
_ONE_WORD = frozenset(
    ["pytest", "jest", "vitest", "tsc", "ruff", "mypy", "eslint", "tox", "nox", "pre-commit"]
)
# Two calls have the same intent only if they run the same file.
_INTERPRETERS = frozenset(
    ["python", "node", "bash", "sh", "zsh", "ruby", "perl", "php", "pwsh", "powershell"]
)
_FILE = r"[/\\]|\.\w{1,5}$"
_CHECKS = (
    r"^(pytest|jest|vitest|mocha|tox|nox|rspec|phpunit|tsc|ruff|mypy|eslint|make|ctest|"
    r"(npm|pnpm|yarn|bun|cargo|go|dotnet|gradle|mvn|swift|bazel|deno|mix|rake) "
    r"(test|build|check|run|vet|verify|clippy)|"
    r"git (commit|push)|gh pr|bd close)\b"
)
_TESTS = r"^(pytest|jest|vitest|mocha|tox|nox|rspec|phpunit|ctest|tsc|ruff|mypy|eslint|\S+ test)\b"
_BUILDS = (
    r"^(make|ninja|cmake|tsc|bazel build|mvn (compile|package|install|verify)|"
    r"(npm|pnpm|yarn|bun|cargo|go|dotnet|gradle|swift|mix|docker|vite|next) build|"
    r"(npm|pnpm|yarn|bun) run build)\b"
)
# They add what another command lacked: a package, a newer state, a service, a login, a right.
_INSTALLERS = (
    r"^((npm|pnpm|yarn|bun|pip|pipx|uv|poetry|pdm|pipenv|conda|mamba|gem|bundle|cargo|rustup|go|"
    r"composer|dotnet|mix|cabal|stack|opam|luarocks|brew|port|apt|apt-get|aptitude|dnf|yum|zypper|"
    r"apk|snap|flatpak|choco|winget|scoop|nvm|pyenv|asdf|mise|corepack|playwright|pre-commit|helm) "
    r"(install|add|sync|get|mod|update|upgrade|require|restore|enable|use|component|target|"
    r"toolchain|dep|repo)|(cpan|cpanm|pacman|emerge|yarn|nix-env|xcode-select)( \S+)?$|"
    r"git (pull|fetch|rebase|stash|submodule|lfs|config)|"
    r"(docker|podman) (login|start|compose|system)|docker-compose (up|start)|"
    r"(systemctl|service|launchctl) |(aws|gcloud|az|gh|npm|heroku|fly) "
    r"(sso|auth|login|configure)|alembic (upgrade|merge)|prisma (generate|migrate|db)|"
    r"(ssh-add|createdb|chmod|chown|killall|fuser)( |$))"
)


@lru_cache(maxsize=32)
def intents(command: str) -> tuple[str, ...]:
    """Return the intents of *command*, one for each program that has an intent."""
    try:
        simple = shell.parse(command)
    except shell.UnclosedQuote:
        return ()
    found = [_intent(_unwrap(shell.without_prefixes(each.words))) for each in simple]
    return tuple(dict.fromkeys(intent for intent in found if intent))


def is_check(intent: str) -> bool:
    """Whether its success confirms the work: tests, builds, a commit."""
    return re.match(_CHECKS, intent) is not None


def is_test(intent: str) -> bool:
    """Whether it checks the code: it passes or fails with the code, whatever its arguments."""
    return re.match(_TESTS, intent) is not None


def is_build(intent: str) -> bool:
    """Whether it builds the code."""
    return re.match(_BUILDS, intent) is not None


def is_install(intent: str) -> bool:
    """Whether its success may be why another command works now."""
    return re.match(_INSTALLERS, intent) is not None


def _unwrap(words: list[str]) -> list[str]:
    """Return *words* without programs that only run another one."""
    for _round in range(4):
        runner = next((one for one in _RUNNERS if tuple(words[: len(one)]) == one), None)
        if runner is not None:
            words = words[len(runner) :]
            while words and (words[0].startswith("-") or words[0][:1].isdigit()):
                words = words[2 if words[0] in _VALUE_OPTIONS else 1 :]
        elif len(words) > 2 and _program_name(words[0]).startswith("python") and words[1] == "-m":  # noqa: PLR2004
            words = words[2:]
        else:
            return shell.without_prefixes(words)
    return words


def _intent(words: list[str]) -> str:
    if not words:
        return ""
    program = _program_name(words[0])
    if not program or program in _WITHOUT_INTENT or not program[0].isalnum():
        return ""
    if program in _ONE_WORD:
        return program
    rest = [word for word in words[1:] if not word.startswith("-")]
    if program in _INTERPRETERS:
        file = rest[0] if rest and not {"-c", "-e", "-"} & set(words) else ""
        is_file = file.isprintable() and re.search(_FILE, file)
        return f"{program} {file}"[:INTENT_CHARS_MAX] if is_file else ""
    first = rest[0] if rest and rest[0].isprintable() else ""
    if re.search(_FILE, first):
        # Two addresses are two different things to attempt; two files usually are not.
        return f"{program} {first}"[:INTENT_CHARS_MAX] if "://" in first else program
    if program in _PACKAGERS and first in _INSTALLS:
        first = "install"
    if program == "uv" and first == "pip":
        program, first = "pip", rest[1] if len(rest) > 1 else ""
    if program in _PACKAGERS and first == "run" and len(rest) > 1:
        first = f"run {rest[1]}"
    return f"{program} {first}".strip()[:INTENT_CHARS_MAX]


def _program_name(word: str) -> str:
    name = word.replace("\\", "/").rpartition("/")[2].removesuffix(".exe").lower()
    return re.sub(r"^(python|pip)[\d.]+$", r"\1", name)
