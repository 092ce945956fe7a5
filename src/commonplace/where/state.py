"""Where this machine's state of a home is kept: never where git could put files.

Anyone may have written the `.commonplace` folder of a repository. If its `.state/` were used, a
clone could bring a server's address for hooks to send prompts to. So the state of such a home is
kept in the user's home. Hooks use this module too; so it imports nothing but `os`.
"""

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

FOLDER = ".commonplace"
STATE = ".state"
INDEX = ".index"
# The socket of the server, in the state folder.
SOCKET = "server.sock"
# In the state folder of the user's home: the state of the homes of repositories.
HOMES = "homes"
_NAME_CHARS_MAX = 40


def user_folder(environment: "Mapping[str, str]") -> str:
    """Return the user's own folder. An empty `HOME` names none: `~` would then be the root."""
    named = environment.get("HOME") or environment.get("USERPROFILE")
    if named or os.name == "nt":
        return named or os.path.expanduser("~")
    import pwd  # noqa: PLC0415 (only POSIX has it, and hardly any process needs it)

    try:
        return pwd.getpwuid(os.getuid()).pw_dir
    except KeyError:
        return os.path.expanduser("~")


def state_of_repository_home(home: str, user: str) -> str:
    """Return the folder for the state of *home*, if it is one that a repository may bring; else "".

    *user* is the user's home.
    """
    real = os.path.realpath(home)
    names = (os.path.basename(home), os.path.basename(real))
    if FOLDER not in names or real == os.path.realpath(user):
        return ""
    try:
        from _blake2 import blake2b  # noqa: PLC0415 (`hashlib` takes longer to load than a hook may)
    except ImportError:
        from hashlib import blake2b  # noqa: PLC0415
    digest = blake2b(os.fsencode(real), digest_size=8).hexdigest()
    name = os.path.basename(os.path.dirname(real))
    plain = "".join(one if one.isascii() and one.isalnum() else "-" for one in name)
    return os.path.join(user, STATE, HOMES, f"{plain[:_NAME_CHARS_MAX]}-{digest}")
