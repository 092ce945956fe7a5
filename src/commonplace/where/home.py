"""A home: a folder of memory, and the paths of its files. No other module builds such a path.

`hooks/` repeats some of these paths, because loading this module would take longer than a hook
may; a test compares the two.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from commonplace.where.state import FOLDER, HOMES, INDEX, SOCKET, STATE

__all__ = ["FOLDER", "LOG_SUFFIX", "PACK_LOGS", "SKILL_BYTES_MAX", "Home", "is_pack_log", "repo_of"]

LOG_SUFFIX = ".jsonl"
SKILL_BYTES_MAX = 1 << 20
_QUARANTINE = "it holds packs whose signers are not trusted"
# The logs of packs are called `packs/NAME`. No repository can have such a name.
PACK_LOGS = "packs"


class Home(NamedTuple):
    """A folder of memory, whether it is the user's own, and why it was chosen.

    `state_elsewhere` is the state folder if that is not in the home itself (see `state.py`).
    A home that came with a repository is `trusted` once the user says so (see `trust.py`).
    """

    path: Path
    of_user: bool = True
    why: str = ""
    state_elsewhere: Path | None = None
    trusted: bool = True

    # --- The memory itself ------------------------------------------------------------------------

    @property
    def settings_file(self) -> Path:
        return self.path / "config.toml"

    @property
    def log_folder(self) -> Path:
        return self.path / "log"

    @property
    def archive_folder(self) -> Path:
        return self.log_folder / "archive"

    @property
    def damaged_folder(self) -> Path:
        """Where `doctor --fix` moves lines that hold no record."""
        return self.log_folder / "damaged"

    def log(self, repo: str) -> Path:
        """Return the log of the repository named *repo*; of a pack it is `packs/NAME`."""
        return self.log_folder / f"{repo}{LOG_SUFFIX}"

    def archive(self, repo: str) -> Path:
        """Return the archive of that log: the records rotated out of it."""
        return self.archive_folder / f"{repo}{LOG_SUFFIX}"

    def damaged(self, repo: str) -> Path:
        """Return the file with the lines of that log that hold no record."""
        return self.damaged_folder / f"{repo}{LOG_SUFFIX}"

    @property
    def pack_logs_folder(self) -> Path:
        """Holds a log and a description of each pack that is installed."""
        return self.log_folder / PACK_LOGS

    def pack_log(self, name: str) -> Path:
        return self.log(f"{PACK_LOGS}/{name}")

    def pack_description(self, name: str) -> Path:
        return self.pack_logs_folder / f"{name}.json"

    def pack_dropped_ids(self, name: str) -> Path:
        """Return the file with the ids of records that only earlier versions of the pack had."""
        return self.pack_logs_folder / f"{name}.dropped"

    @property
    def repos_file(self) -> Path:
        """Which addresses, folders and older names belong to which log (see `aliases.py`)."""
        return self.path / "repos.jsonl"

    @property
    def notes_folder(self) -> Path:
        """Holds one folder for each agent."""
        return self.path / "agents"

    def notes(self, agent: str) -> Path:
        return self.notes_folder / agent

    @property
    def script(self) -> Path:
        """The script that logs from a shell, if `commonplace init --script` put it there."""
        return self.path / "scripts" / "log_memory.sh"

    @property
    def continuity_file(self) -> Path:
        """The agents' working memory, of which one section is ours (see `learn/continuity.py`)."""
        return self.path / "CONTINUITY.md"

    @property
    def continuity_lock(self) -> Path:
        """Held by a process that changes our section of a `CONTINUITY.md`, wherever that is."""
        return self.state_folder / "continuity.lock"

    @property
    def continuity_files(self) -> Path:
        """The other files with a section of ours that names memories of this home."""
        return self.state_folder / "continuity.json"

    @property
    def skills_folder(self) -> Path:
        return self.path / "skills"

    def skill(self, name: str) -> Path:
        return self.skills_folder / name / "SKILL.md"

    @property
    def snapshots_folder(self) -> Path:
        return self.path / "snapshots"

    @property
    def snapshot_objects(self) -> Path:
        """The pieces of logs that snapshots consist of, named by their hashes."""
        return self.snapshots_folder / "objects"

    def snapshot(self, ident: str) -> Path:
        return self.snapshots_folder / f"{ident}.json"

    @property
    def packs_folder(self) -> Path:
        """Encrypted packs that tools have written, and those that they may import."""
        return self.path / "packs"

    # --- Derived: can be deleted at any time ------------------------------------------------------

    @property
    def index_folder(self) -> Path:
        return (self.state_elsewhere or self.path) / INDEX

    @property
    def index_lock(self) -> Path:
        """Held by a process while it opens or removes the index."""
        return self.state_folder / "index.lock"

    def folders(self) -> list[Path]:
        """Return the folders that a home has, and those of its state."""
        return [
            self.log_folder,
            self.archive_folder,
            self.pack_logs_folder,
            self.damaged_folder,
            self.notes_folder,
            self.skills_folder,
            self.index_folder,
            self.state_folder,
            self.spool_folder,
            self.sessions_folder,
            self.inbox_folder,
            self.drafts_folder,
            self.hook_marks_folder,
        ]

    # --- State of this machine --------------------------------------------------------------------

    @property
    def state_folder(self) -> Path:
        return self.state_elsewhere or self.path / STATE

    def client_state_folder(self, name: str) -> Path:
        """Return where the orchestrator called *name* keeps its state (see `client/state.py`)."""
        return self.clients_folder / name

    @property
    def clients_folder(self) -> Path:
        return self.state_folder / "clients"

    @property
    def other_states_folder(self) -> Path:
        """In the user's home: the state of the homes of repositories."""
        return self.state_folder / HOMES

    @property
    def trust_mark(self) -> Path:
        """Shows that the user trusts this home, which came with a repository."""
        return self.state_folder / "trusted"

    def announcement_mark(self, surface: str) -> Path:
        """Shows that *surface* has said that this home came with a repository."""
        return self.state_folder / f"announced-{surface}"

    @property
    def usage_file(self) -> Path:
        return self.state_folder / "usage.sqlite"

    @property
    def resonance_file(self) -> Path:
        """The working set of nodes, which every `build_context` changes."""
        return self.state_folder / "resonance.sqlite"

    @property
    def quarantine(self) -> Home:
        """The home of packs whose signer the user does not trust: no index but its own reads it."""
        path = self.state_folder / "quarantine"
        return Home(path, of_user=False, why=_QUARANTINE, trusted=False)

    @property
    def is_quarantine(self) -> bool:
        return self.why == _QUARANTINE

    @property
    def trusted_signers_file(self) -> Path:
        """The public keys of those whose packs are installed without quarantine."""
        return self.state_folder / "trusted-signers.json"

    @property
    def packs_lock(self) -> Path:
        """Held by the process that installs, upgrades or removes a pack."""
        return self.state_folder / "packs.lock"

    @property
    def spool_folder(self) -> Path:
        """Events from hooks that no process has ingested yet."""
        return self.state_folder / "spool"

    @property
    def failed_events_folder(self) -> Path:
        """Events that could not be applied because of a fault of ours, the latest hundred."""
        return self.state_folder / "failed-events"

    @property
    def hook_folders(self) -> tuple[Path, ...]:
        """What hooks, sessions and started episodes have left. Each file can be deleted."""
        return (
            self.spool_folder,
            self.failed_events_folder,
            self.sessions_folder,
            self.inbox_folder,
            self.drafts_folder,
        )

    @property
    def spool_lock(self) -> Path:
        """Held by the process that ingests events or writes the state of a session."""
        return self.state_folder / "drain.lock"

    @property
    def sessions_folder(self) -> Path:
        return self.state_folder / "sessions"

    @property
    def inbox_folder(self) -> Path:
        return self.state_folder / "inbox"

    @property
    def dropped_file(self) -> Path:
        """The digests of candidates that were dropped, so that they are not proposed again."""
        return self.inbox_folder / "dropped.txt"

    @property
    def drafts_folder(self) -> Path:
        """Episodes that are still going on, which a harness without hooks has started."""
        return self.state_folder / "drafts"

    @property
    def suggestions_mark(self) -> Path:
        """How far the index was searched for links to suggest."""
        return self.state_folder / "suggestions.json"

    @property
    def observations_mark(self) -> Path:
        """How far the index was read for episodes to link with what they involve."""
        return self.state_folder / "observations.json"

    @property
    def erasures_folder(self) -> Path:
        """Holds one file for each erasure that has begun and is not finished."""
        return self.state_folder / "erasures"

    @property
    def erased_file(self) -> Path:
        """When records were erased, by digests of their ids."""
        return self.state_folder / "erased.txt"

    @property
    def dispatches_file(self) -> Path:
        return self.state_folder / "dispatches.jsonl"

    @property
    def hook_marks_folder(self) -> Path:
        """A hook touches a file with its agent's name here each time it runs."""
        return self.state_folder / "hooks"

    @property
    def server_file(self) -> Path:
        """The address of the home's server, and the secret that a client sends."""
        return self.state_folder / "server.json"

    @property
    def server_socket(self) -> Path:
        """Where the server listens to programs of its own user (see `server/own_socket.py`)."""
        return self.state_folder / SOCKET

    @property
    def server_token_file(self) -> Path:
        """The access token of this home's user, for clients over HTTP."""
        return self.state_folder / "server.token"

    @property
    def server_lock(self) -> Path:
        """Held by the server as long as it runs."""
        return self.state_folder / "server.lock"

    @property
    def server_start_lock(self) -> Path:
        """Held by the process that starts the server."""
        return self.state_folder / "server.starting"

    @property
    def server_log(self) -> Path:
        return self.state_folder / "server.log"

    @property
    def access_tokens_file(self) -> Path:
        return self.state_folder / "tokens.json"

    @property
    def access_tokens_lock(self) -> Path:
        return self.state_folder / "tokens.lock"

    @property
    def signing_key_file(self) -> Path:
        """The key that the packs of this home are signed with."""
        return self.state_folder / "signing.pem"

    @property
    def signing_lock(self) -> Path:
        """Held by the process that makes a key of packs."""
        return self.state_folder / "signing.lock"

    @property
    def identity_file(self) -> Path:
        """The private key of age that `pack keygen` makes: it opens packs for this home."""
        return self.state_folder / "identity.txt"

    def notes_lock(self, agent: str) -> Path:
        return self.state_folder / f"notes-{agent}.lock"

    @property
    def skills_lock(self) -> Path:
        return self.state_folder / "skills.lock"

    def lock_of(self, path: Path) -> Path:
        """Return the file whose lock the writers of the file at *path* hold.

        A program that rewrites a file of a home must hold it too, from reading to renaming. A log
        is its own lock, and so is every file that is not named here.
        """
        if self.notes_folder in path.parents:
            return self.notes_lock(path.relative_to(self.notes_folder).parts[0])
        if self.skills_folder in path.parents:
            return self.skills_lock
        if path == self.continuity_file:
            return self.continuity_lock
        if set(self.hook_folders).intersection(path.parents):
            return self.spool_lock
        return self.access_tokens_lock if path == self.access_tokens_file else path

    @property
    def snapshots_lock(self) -> Path:
        """Held by a process that reads or writes snapshots."""
        return self.state_folder / "snapshots.lock"

    @property
    def embed_lock(self) -> Path:
        """Held by the process that embeds the backlog."""
        return self.state_folder / "embed.lock"

    @property
    def embed_mark(self) -> Path:
        """Touched when a background process for the backlog is started."""
        return self.state_folder / "embed.started"

    @property
    def maintenance_lock(self) -> Path:
        return self.state_folder / "maintenance.lock"

    @property
    def maintenance_mark(self) -> Path:
        """Touched when all steps of maintenance have run."""
        return self.state_folder / "maintenance.done"

    @property
    def maintenance_planned(self) -> Path:
        """Its time of change is when a process that waits will run maintenance."""
        return self.state_folder / "maintenance.planned"

    @property
    def learning_lock(self) -> Path:
        """Held by the process that consolidates."""
        return self.state_folder / "learning.lock"

    @property
    def skills_mark(self) -> Path:
        """Up to which episode this home was searched for skills."""
        return self.state_folder / "skills.json"

    @property
    def learning_mark(self) -> Path:
        """How far consolidation has read the index of this home."""
        return self.state_folder / "learning.json"

    @property
    def merging_mark(self) -> Path:
        """Which records were compared with one another, to merge those that say the same."""
        return self.state_folder / "merging.json"

    @property
    def setup_file(self) -> Path:
        """The folders `commonplace setup` has made."""
        return self.state_folder / "setup.json"


def repo_of(path: Path) -> str:
    """Return the name of the repository whose log or archive is at *path*, or of a pack's log."""
    name = path.name.removesuffix(LOG_SUFFIX)
    return f"{PACK_LOGS}/{name}" if path.parent.name == PACK_LOGS else name


def is_pack_log(log: str) -> bool:
    """Whether the log of that name holds the records of a pack."""
    return log.startswith(f"{PACK_LOGS}/")
