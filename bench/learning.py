"""Whether consolidation finds the rules behind generated episodes, and whether that helps.

    python bench/learning.py [--seeds 11,12,13] [--half tune|test|all] [--scale 100000] [--logs FOLDER] [--show]

300 episodes are generated from known rules (bench/learning_rules.json, written by somebody who had
not seen the code) plus noise: tasks without a problem, one-off problems, problems that went away by
themselves, wrong fixes that failed. Half of them have the form that hooks write (a long action
list, an error type that is a command, an unknown outcome). Bars were chosen on one half of the
rules; figures are from the other half.

- A pattern or anti-pattern is right if nine of ten of its sources come from one rule, and its fix
  has a key word of that rule's fix. Precision: the right ones among those written. Recall: the
  rules of which one was written, among those that were solved in two sessions or more. Twins: right
  ones beyond the first of a rule.
- Found: a question of the rule (which no episode contains) is asked with 500 tokens for the
  answer, and the text has a key word of the fix.
- The real logs hold lessons and no episodes; what lessons of one repository say already is
  proposed, not written. Ten are printed for a person to judge.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from commonplace.memory import Memory

HERE = Path(__file__).resolve().parent
NOW = datetime(2026, 11, 1, tzinfo=UTC)
PRECISION_MIN = 0.9
RECALL_MIN = 0.7
SECONDS_MAX = 120.0
BYTES_MAX = 1 << 30
LOGS = HERE.parent.parent / "shared" / "data" / "agent-logs"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seeds", default="11,12,13")
    parser.add_argument("--half", choices=("tune", "test", "all"), default="test")
    parser.add_argument("--episodes", type=int, default=300)
    parser.add_argument("--scale", type=int, default=100_000, help="0: do not measure time")
    parser.add_argument("--logs", type=Path, default=LOGS)
    parser.add_argument("--show", action="store_true", help="print what was written")
    args = parser.parse_args()
    material = json.loads((HERE / "learning_rules.json").read_text("utf-8"))
    rules = choose(material["rules"], args.half)
    holds = [
        measure_quality(material, rules, int(seed), args.episodes, show=args.show)
        for seed in args.seeds.split(",")
    ]
    if args.logs.is_dir():
        show_real(args.logs)
    if args.scale:
        holds.append(measure_scale(material, args.scale))
    return 0 if all(holds) else 1


def choose(rules: list[dict[str, Any]], half: str) -> list[dict[str, Any]]:
    """Return the rules for choosing thresholds, those for judging, or all; pairs stay together."""
    if half == "all":
        return rules
    return [rule for number, rule in enumerate(rules) if (number // 2 % 2 == 0) == (half == "tune")]


class Generator:
    """Makes episodes of *rules* and noise, the same for the same seed."""

    def __init__(self, material: dict[str, Any], rules: list[dict[str, Any]], seed: int) -> None:
        self.random = random.Random(seed)
        self.material = material
        self.rules = rules
        self.rule_of: dict[str, str] = {}
        # In how many sessions each rule's right fix worked.
        self.solved: dict[str, int] = {}
        self.count = 0

    def make(self, count: int) -> list[dict[str, Any]]:
        """Return *count* episodes, two thirds of them of rules."""
        made: list[dict[str, Any]] = []
        noise = list(self.material["noise"])
        plain = list(self.material["plain"])
        self.random.shuffle(noise)
        while len(made) < count:
            draw = self.random.random()
            if draw < 0.67:
                made.append(self.of_rule(self.random.choice(self.rules)))
            elif draw < 0.85 and noise:
                made.append(self.one_off(noise.pop()))
            else:
                made.append(self.episode(self.random.choice(plain), [], "success"))
        return made

    def of_rule(self, rule: dict[str, Any]) -> dict[str, Any]:
        draw = self.random.random()
        type_, message = rule["type"], self.random.choice(rule["messages"])
        goal = self.random.choice(rule["goals"])
        fix, outcome = self.random.choice(rule["fixes"]), "success"
        if draw < 0.08:
            fix, outcome = self.random.choice(rule["wrong_fixes"]), "failure"
        elif draw < 0.16:
            fix, outcome = "", "failure"
        else:
            self.solved[rule["id"]] = self.solved.get(rule["id"], 0) + 1
        by_hook = self.random.random() < 0.5
        if by_hook:
            type_ = rule["command"].split("|")[0].strip()
            if rule["fix_command"] and outcome == "success":
                fix = rule["fix_command"]
            outcome = "unknown" if outcome == "success" else outcome
        error = {"type": type_, "message": message}
        if fix:
            error["resolution"] = fix
        made = self.episode(goal, [error], outcome, rule["command"], fix, by_hook=by_hook)
        self.rule_of[made["id"]] = rule["id"]
        return made

    def one_off(self, noise: dict[str, Any]) -> dict[str, Any]:
        error = {"type": noise["type"], "message": noise["message"], "resolution": noise["fix"]}
        return self.episode(noise["goal"], [error], "success", noise["command"], noise["fix"])

    def episode(
        self,
        goal: str,
        errors: list[dict[str, Any]],
        outcome: str,
        command: str = "",
        fix: str = "",
        *,
        by_hook: bool = False,
    ) -> dict[str, Any]:
        self.count += 1
        at = NOW - timedelta(minutes=self.random.randrange(60 * 24 * 20))
        actions = [
            {"t": t, "action": "run", "target": f"ls part{t}", "result": "pass"}
            for t in range(60 if by_hook else 3)
        ]
        if command:
            actions.append({"t": 90, "action": "run", "target": command, "result": "fail",
                            "error": errors[0]["message"] if errors else ""})  # fmt: skip
        if fix:
            actions.append({"t": 99, "action": "run", "target": fix, "result": "pass"})
        return {
            "id": f"ep-{self.count:06d}",
            "kind": "episode",
            "task_id": f"task-{self.count}",
            "timestamp": at,
            "repo": "app",
            "agent_id": f"agent-{self.count % 3}",
            "context": {"phase": "development", "goal": goal, "files_involved": []},
            "action_log": actions,
            "outcome": outcome,
            "errors_encountered": errors,
            **({"meta": {"origin": "hooks"}} if by_hook else {}),
        }


def measure_quality(
    material: dict[str, Any], rules: list[dict[str, Any]], seed: int, count: int, *, show: bool
) -> bool:
    """Print precision, recall and what is found; return whether the aims are met."""
    generator = Generator(material, rules, seed)
    print(f"seed {seed}, {count} episodes, {len(rules)} rules")
    holds = True
    episodes = generator.make(count)
    by_id = {rule["id"]: rule for rule in rules}
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "home", clock=lambda: NOW, background=False) as memory,
    ):
        memory.append(episodes)
        memory.engine().vectors.embed_all()
        before = found(memory, rules)
        report = memory.consolidate("3650d")
        memory.engine().vectors.embed_all()
        after = found(memory, rules)
    able = {rule for rule, times in generator.solved.items() if times > 1}
    for kind in ("pattern", "anti_pattern"):
        made = [one for one in report.made if one.kind == kind]
        names = [rule_of(one, generator, by_id) for one in made]
        right = [name for name in names if name]
        precision = len(right) / len(made) if made else 1.0
        recall = len(set(right) & able) / len(able)
        twins = len(right) - len(set(right))
        holds = holds and precision >= PRECISION_MIN and recall >= RECALL_MIN
        print(f"{kind:12} written {len(made):3}  precision {precision:.3f} (aim {PRECISION_MIN})"
              f"  recall {recall:.3f} of {len(able)} (aim {RECALL_MIN})"
              f"  wrong {len(made) - len(right)}  twins {twins}")  # fmt: skip
        for one, name in zip(made, names, strict=True):
            if show or not name:
                fix = one.fields.get("correct_approach") or one.fields.get("prevention")
                print(
                    f"    {name or 'WRONG'}: {one.fields.get('pattern') or one.fields['what_fails']}: {fix}"
                )
    reasons: dict[str, int] = {}
    for held in report.held_back:
        reason = held.reason.split(" is ")[0].split(",")[0]
        reasons[reason] = reasons.get(reason, 0) + 1
    print(f"held back: {reasons}")
    if show:
        for held in report.held_back:
            print("    held:", held.fields.get("pattern") or held.fields.get("what_fails"), "|",
                  held.fields.get("correct_approach") or held.fields.get("prevention"), "|", held.reason)  # fmt: skip
    print(f"the fix found within 500 tokens: {before:.3f} without, {after:.3f} with consolidation"
          f" ({2 * len(rules)} questions)")  # fmt: skip
    return holds and after >= before


def rule_of(record: Any, generator: Generator, by_id: dict[str, Any]) -> str:
    """Return the rule that *record* states rightly; "" if none."""
    sources = list(dict.fromkeys(record.sources))
    names = [generator.rule_of.get(source, "") for source in sources]
    best = max(set(names), key=names.count)
    if not best or names.count(best) < 0.9 * len(names):
        return ""
    fix = str(record.fields.get("correct_approach") or record.fields.get("prevention"))
    return best if says_fix(fix, by_id[best]) else ""


def says_fix(text: str, rule: dict[str, Any]) -> bool:
    keys = [*rule["fix_key"], *([rule["fix_command"]] if rule["fix_command"] else [])]
    return any(key.lower() in text.lower() for key in keys)


def found(memory: Memory, rules: list[dict[str, Any]]) -> float:
    """Return the share of the rules' questions whose answer states the fix."""
    hits = 0
    for rule in rules:
        for question in rule["questions"]:
            answer = memory.recall(question, repo="app", tokens_max=500)
            hits += says_fix(answer.text, rule)
    return hits / sum(len(rule["questions"]) for rule in rules)


def show_real(logs: Path) -> None:
    """Print what consolidation makes of real logs."""
    with tempfile.TemporaryDirectory() as folder:
        home = str(Path(folder) / "home")
        for part in ("lessons", "mulch"):
            command = [
                sys.executable,
                "-m",
                "commonplace",
                "import",
                str(logs / part),
                "--home",
                home,
            ]
            subprocess.run(command, check=True, capture_output=True)
        with Memory.open(home, background=False) as memory:
            memory.engine().vectors.embed_all()
            report = memory.consolidate("100y", dry_run=True)
    print(f"real logs: {report.looked_at} lessons, {len(report.made)} written, "
          f"{len(report.held_back)} held back")  # fmt: skip
    for record in report.made[:10]:
        print(f"    written: {record.fields.get('pattern') or record.fields['what_fails']}"[:200])
    for held in report.held_back[: 10 - len(report.made)]:
        print(
            f"    {held.reason} ({held.candidate.sessions} sessions): {held.candidate.text}"[:200]
        )


def measure_scale(material: dict[str, Any], count: int) -> bool:
    """Print the time and the memory for *count* episodes; return whether the limits hold."""
    generator = Generator(material, material["rules"], 1)
    with (
        tempfile.TemporaryDirectory() as folder,
        Memory.open(Path(folder) / "home", clock=lambda: NOW, background=False) as memory,
    ):
        for _batch in range(count // 1000):
            memory.append(generator.make(1000))
        began = time.perf_counter()
        memory.engine().catch_up()
        indexed = time.perf_counter() - began
        began = time.perf_counter()
        report = memory.consolidate("3650d")
        first = time.perf_counter() - began
        memory.append(generator.make(20))
        began = time.perf_counter()
        again = memory.consolidate("3650d")
        second = time.perf_counter() - began
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{count:,} episodes: {first:.1f} s (limit {SECONDS_MAX:.0f}), index before {indexed:.1f} s,"
          f" {len(report.made)} written; 20 more: {second:.2f} s, {again.looked_at} read;"
          f" peak {peak / (1 << 20):.0f} MB (limit {BYTES_MAX >> 20})")  # fmt: skip
    return first <= SECONDS_MAX and peak <= BYTES_MAX


if __name__ == "__main__":
    sys.exit(main())
