"""What the commands for packs print about a pack and what became of its records."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from commonplace.cli.output import note, number_of
from commonplace.foreign import flat, one_line
from commonplace.packs import signing
from commonplace.packs.importing import QUARANTINED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from commonplace.packs.exporting import Exported
    from commonplace.packs.importing import Changes
    from commonplace.packs.review import Reviewed
    from commonplace.packs.suspicion import Flag

SHOWN_MAX = 20
_VALUE_CHARS_MAX = 70
_NUMBER = re.compile(r"[0-9]{1,9}")
_REASONS = {
    "private": "{} tagged `private`",
    "telling_private": "{} that came of those, name or repeat them",
    "of_other_agents": "{} of other agents",
    "of_packs": "{} of installed packs; `pack:NAME` selects those",
    "built_contexts": "{} of contexts that were built from others",
    "files": "{} of skills and notes, which are files",
    "links": "{} to records that are not in it",
    "feedback": "{} with feedback on what is not in it",
}


def print_exported(done: Exported) -> None:
    records = number_of(done.manifest["counts"]["records"], "record")
    print(f"Wrote {records} to `{one_line(done.path)}` ({done.bytes:,} bytes)")
    print(f"  {done.manifest['id']} {one_line(done.manifest['version'])}")
    print(f"  {f'encrypted: {done.encrypted_for}' if done.encrypted_for else 'not encrypted'}")
    print(f"  signed by {done.signer}")
    for reason, count in done.left_out.items():
        what = "link" if reason == "links" else "record"
        print(f"  - left out: {_REASONS[reason].format(number_of(count, what))}")
    if done.redacted:
        print(f"  ! {number_of(done.redacted, 'record')} held secrets, which were removed")
    if done.paths_replaced:
        print(f"  ~ {number_of(done.paths_replaced, 'record')} named paths of this machine")


def print_inspected(found: Reviewed) -> None:
    pack, manifest = found.inspected, found.inspected.manifest
    counts = manifest["counts"].get("types", {}).items()
    types = ", ".join(f"{one_line(name)} {count:,}" for name, count in counts)
    for name, value in (
        ("id", f"{manifest['id']} {one_line(manifest['version'])}"),
        ("name", one_line(str(manifest.get("title") or manifest["name"]))),
        ("domains", ", ".join(map(one_line, manifest["domain_tags"]))),
        ("records", f"{pack.records:,}{f' ({types})' if types else ''}"),
        ("created", one_line(manifest["created_at"])),
        ("authors", ", ".join(map(one_line, manifest["authors"]))),
        ("licence", one_line(manifest["licence"])),
        ("encrypted", pack.encryption or "no"),
        ("signer", f"{pack.signer} ({one_line(found.known_as) or 'not trusted'})"),
        ("", f"fingerprint {pack.fingerprint}"),
        ("here", found.here),
    ):
        if value:
            print(f"{name:<10}{value}")
    print_flags(found.flags, found.flagged)


def print_changes(done: Changes, verb: str) -> None:
    """Print what became of the records: *verb* is `Installed` or `Upgraded`."""
    before = f" (was {one_line(done.before)})" if done.before not in ("", done.version) else ""
    records = number_of(done.records, "record")
    print(f"{_outcome(done, verb)}: {done.name} {one_line(done.version)}{before}, {records}")
    new, old = _numbers(done.version), _numbers(done.before)
    if new and new < old:
        note(f"{one_line(done.version)} is older than {one_line(done.before)}, which was here")
    not_taken = "would not be taken" if done.place == QUARANTINED else "not taken"
    for mark, count, text in (
        ("+", done.added, "added"),
        ("~", done.changed, "changed"),
        ("-", done.removed, "removed"),
        ("=", done.unchanged, "unchanged"),
        ("=", done.kept, f"{not_taken}: records of your own have the same ids"),
        ("=", done.of_other_packs, f"{not_taken}: records of other packs have the same ids"),
        ("=", done.forgotten, f"{not_taken}: you have forgotten them"),
        ("=", done.skipped, "not taken: they judge or replace other records"),
        ("!", done.redacted, "held secrets or hidden characters, which were removed"),
    ):
        if count:
            print(f"  {mark} {count:,} {text}")
    for mark, ids in (("~", done.changed_ids), ("-", done.removed_ids)) if done.before else ():
        for ident in ids[:SHOWN_MAX]:
            print(f"    {mark} {one_line(ident)}")
    for one in done.differences[:SHOWN_MAX]:
        _print_difference(one)
    print_flags(done.flags, done.flagged)
    if done.place == QUARANTINED:
        note(f"its signer is not trusted: {done.signer}")
        note(f"fingerprint {signing.fingerprint(done.signer)}: compare it with the signer's")
        note("`commonplace recall --quarantined QUESTION` searches it; recall and hooks do not")
        note(f"`commonplace pack trust {done.name}` installs this pack")
        note("`commonplace pack trust KEY` installs all packs of that signer")
        note("`commonplace inbox` lists what waits for a decision")


def _outcome(done: Changes, verb: str) -> str:
    if done.place == QUARANTINED:
        return "Would go to quarantine" if done.dry_run else "In quarantine"
    if verb == "Upgraded" and not done.before:
        verb = "Installed"
    return f"Would be {verb.lower()}" if done.dry_run else verb


def _numbers(version: str) -> list[int]:
    """Return the numbers of a version such as `1.10.0`; none if it is not of numbers alone."""
    parts = version.split(".")
    return [int(part) for part in parts] if all(map(_NUMBER.fullmatch, parts)) else []


def _print_difference(one: dict[str, Any]) -> None:
    """Print how a record that is here differs from the one of the pack."""
    here = f"that of {one_line(one['pack'])}" if one["pack"] else "yours"
    print(f"    = {one_line(one['id'])}: {here} is kept")
    for name in one["yours"]:
        texts = [flat(values.get(name, "")) for values in (one["yours"], one["theirs"])]
        start = _start_of_difference(*texts)
        for whose, text in zip((here, "theirs"), texts, strict=True):
            print(f"        {one_line(name)}, {whose}: {_part(text, start) or '(nothing)'}")


def _start_of_difference(one: str, other: str) -> int:
    """Return where a part of both texts begins that shows in what they differ."""
    pairs = enumerate(zip(one, other, strict=False))
    same = next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))
    if max(len(one), len(other)) <= _VALUE_CHARS_MAX or same < _VALUE_CHARS_MAX // 2:
        return 0
    # From the beginning of a word, a few words before the difference.
    return one.rfind(" ", 0, same - _VALUE_CHARS_MAX // 3) + 1


def _part(text: str, start: int) -> str:
    end = start + _VALUE_CHARS_MAX
    return ("… " if start else "") + one_line(text[start:end]) + (" …" if end < len(text) else "")


def print_flags(flags: Sequence[Flag], flagged: int) -> None:
    if not flagged:
        return
    note(f"{number_of(flagged, 'record')} may hold instructions to a model:")
    for flag in flags[:SHOWN_MAX]:
        note(f"  {flag.id}, {one_line(flag.field)}: {flag.what}: {one_line(flag.excerpt)}")
    if len(flags) > SHOWN_MAX:
        note("  … (`--json` lists more)")
