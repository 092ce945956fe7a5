"""One agent from setup to undo: its second session must know what the first one learned."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from tools.e2e import drivers, fixtures
from tools.e2e.model import Model
from tools.e2e.scratch import Scratch
from tools.e2e.script import SUMMARY, Act

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tools.e2e.drivers import Driver

LESSON = "run make config before make build in a fresh clone"
BUILD = Act(
    "Please build this project",
    (
        "make build",
        "make config",
        "make build V=1",
        f"git commit --allow-empty -m 'LEARNED: {LESSON}'",
    ),
    "It is built.",
)
CARRY_ON = Act("Please carry on", ("git log -1 --oneline",), "Done.")
CHECK = Act("Please check the build", ("git status --short",), "It is fine.")
# As the hook prints it at the start of a session. The lesson alone may also stand in the agent's
# own context, which can have the latest commits.
SHOWN = f"[LEARN] {LESSON}"


class Check(NamedTuple):
    """Something that must hold, whether it does, and what was found otherwise."""

    name: str
    holds: bool
    found: str = ""


class Run:
    """The checks of one agent, and what it sent, for a fixture."""

    def __init__(self, driver: Driver, tools: Path, folder: Path) -> None:
        self.driver, self.tools, self.folder = driver, tools, folder
        self.version = ""
        self.fixture: dict[str, Any] = {}

    def checks(self) -> Iterator[Check]:
        with Model((BUILD, CARRY_ON, CHECK), self.driver.shell) as model:
            variables = drivers.variables(self.driver, model.url)
            scratch = Scratch(self.folder, self.tools, variables)
            drivers.write_settings(self.driver, scratch.home, model.url)
            try:
                yield from self._sessions(scratch, model)
                yield from self._ending(scratch)
            finally:
                scratch.run("commonplace", "serve", "--stop")
                scratch.kill_processes()

    def _sessions(self, scratch: Scratch, model: Model) -> Iterator[Check]:
        driver = self.driver
        version = scratch.run(driver.program, "--version").output.strip().splitlines()
        self.version = version[0] if version else ""
        self.before = scratch.settings()
        done = scratch.run("commonplace", "setup", driver.agent, "--yes")
        yield Check("setup", done.code == 0, done.output)
        self.written = _changed(self.before, scratch.settings())

        done = scratch.run(driver.program, *driver.first, BUILD.prompt)
        first = scratch.events()
        names = [fixtures.event_name(event.payload) for event in first]
        yield Check("first session ends", done.code == 0, done.output)
        yield Check("its commands ran", BUILD.closing in done.output, done.output)
        yield Check("start, prompt and end were sent", len(first) > 2, str(names))

        if driver.compact_prompt:
            done = scratch.run(driver.program, *driver.resume, driver.compact_prompt)
        else:
            model.full = True
            done = scratch.run(driver.program, *driver.resume, CARRY_ON.prompt)
        names = [fixtures.event_name(event.payload) for event in scratch.events()[len(first) :]]
        compacted = any(one.answer and one.answer.text == SUMMARY for one in model.requests)
        found = f"{names}\n{done.output}"
        yield Check("compaction", compacted, found)
        if driver.reports_compaction:
            yield Check("compaction is sent to the hook", "PreCompact" in names, found)

        sent = len(model.requests)
        done = scratch.run(driver.program, *driver.first, CHECK.prompt)
        asked = [one for one in model.requests[sent:] if one.answer and one.answer.command]
        yield Check("second session ends", done.code == 0 and bool(asked), done.output)
        if asked:
            text = asked[0].text()
            yield Check("its first request carries the lesson", SHOWN in text, text[-2000:])
            events = fixtures.select(scratch.events(), len(first))
            self.fixture = fixtures.scrub(
                {
                    "agent": driver.agent,
                    "version": self.version,
                    "events": events,
                    "request": sorted(asked[0].body),
                },
                str(self.folder),
            )

    def _ending(self, scratch: Scratch) -> Iterator[Check]:
        done = scratch.run("commonplace", "inbox", "--json")
        yield Check("inbox has the candidate", "make build V=1" in done.output, done.output)
        done = scratch.run("commonplace", "doctor", "--json")
        rows = json.loads(done.output)["agents"] if done.output.startswith("{") else []
        ran = [row for row in rows if row["agent"] == self.driver.agent and row["hook_last_ran"]]
        yield Check("doctor knows that the hook ran", bool(ran), done.output)
        in_session = _changed(self.written, scratch.settings())
        done = scratch.run("commonplace", "setup", self.driver.agent, "--undo", "--yes")
        yield Check("undo", done.code == 0, done.output)
        left = [
            name
            for name, text in scratch.settings().items()
            if name in self.written and text != self.before.get(name) and b"commonplace" in text
        ]
        yield Check("undo removes everything of ours", not left, str(left))
        now = scratch.settings()
        other = [
            name
            for name in self.written
            if name not in in_session and now.get(name) != self.before.get(name)
        ]
        yield Check("undo restores every byte", not other, str(other))
        scratch.run("commonplace", "serve", "--stop")
        processes = scratch.wait_for_processes()
        yield Check("no process is left", not processes, str(processes))


def _changed(before: dict[str, bytes], after: dict[str, bytes]) -> dict[str, bytes]:
    return {name: text for name, text in after.items() if before.get(name) != text}
