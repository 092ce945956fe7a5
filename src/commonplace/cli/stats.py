"""`commonplace stats`: how many memories there are, what tasks took, what recalls saved."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from commonplace.cli.arguments import add_home, add_json, whole_number
from commonplace.cli.open_memory import open_memory
from commonplace.cli.output import count_list, note, number_of, print_json
from commonplace.errors import UsageError
from commonplace.foreign import one_line

if TYPE_CHECKING:
    from argparse import ArgumentParser, Namespace

DAYS = 7
DAYS_MAX = 3650
TASKS_SHOWN_MAX = 10
EXAMPLES = (
    "commonplace stats",
    "commonplace stats --days 30",
    "commonplace stats --savings",
    "commonplace stats --context --days 7",
)


def add_arguments(parser: ArgumentParser) -> None:
    parser.add_argument("--repo", metavar="NAME", help="Count only this log (default: all)")
    parser.add_argument(
        "--days",
        metavar="N",
        type=whole_number(1, DAYS_MAX),
        help="How many days of tasks and feedback to sum up (default: 7)",
    )
    parser.add_argument(
        "--savings",
        action="store_true",
        help="Show how many tokens recalls saved, against the ten best records and the whole logs",
    )
    parser.add_argument(
        "--context",
        action="store_true",
        help="Show how many tokens agents were given in these days, and what came of it",
    )
    add_home(parser)
    add_json(parser)


def run(args: Namespace) -> int:
    if args.savings and args.context:
        raise UsageError("`--savings` and `--context` are two reports", "give one of them")
    if (args.savings or args.context) and args.repo:
        name = "--savings" if args.savings else "--context"
        raise UsageError(f"`{name}` is counted over all logs", "leave `--repo` out")
    if args.savings and args.days is not None:
        raise UsageError("`--savings` is counted from the first recall on", "leave `--days` out")
    with open_memory(args.home) as memory:
        if args.savings:
            print_savings(memory.savings(), as_json=args.json)
        elif args.context:
            print_worth(memory.worth(args.days or DAYS), as_json=args.json)
        else:
            counts = memory.stats(args.repo or None)
            metrics = memory.metrics(
                args.days or DAYS, repo=args.repo or None, all_repos=not args.repo
            )
            if args.json:
                print_json({**counts, "metrics": metrics})
            else:
                print_counts(counts, as_json=False)
                print_metrics(metrics)
    return 0


def print_counts(counts: dict[str, Any], *, as_json: bool, with_archive: bool = False) -> None:
    """Print how many records there are, by repository, kind and type."""
    if as_json:
        print_json(counts)
        return
    more = "of them" if with_archive else "more"
    print(f"{number_of(counts['records'], 'record')}, {counts['archived']:,} {more} in the archive")
    for name in ("repos", "kinds", "types"):
        for value, count in counts[name].items():
            print(f"  {name[:-1]:5} {one_line(value):40} {count:,}")


def print_metrics(metrics: dict[str, Any]) -> None:
    """Print what the tasks of the last days took; nothing if there were none, and no feedback."""
    feedback = count_list(metrics["feedback"])
    if not metrics["tasks"] and not feedback:
        return
    print(f"last {number_of(metrics['days'], 'day')}: {_work(metrics)}")
    for label, text in (("outcomes", count_list(metrics["outcomes"])), ("feedback", feedback)):
        if text:
            print(f"  {label}  {text}")
    for day in metrics["by_day"]:
        print(f"  {one_line(day['day'])}  {_work(day)}")
    for task in metrics["by_task"][:TASKS_SHOWN_MAX]:
        goal = one_line(task["goal"] or task["task_id"])
        attempts = number_of(task["attempts"], "attempt")
        retries = number_of(task["retries"], "retry", "retries")
        print(
            f"  task  {goal}  {one_line(task['outcome'])},"
            f" {_duration(task['seconds'])}, {attempts}, {retries}"
        )
    if len(metrics["by_task"]) > TASKS_SHOWN_MAX:
        note(f"{len(metrics['by_task']) - TASKS_SHOWN_MAX:,} more tasks: see `--json`")


def _work(figures: dict[str, Any]) -> str:
    return (
        f"{number_of(figures['tasks'], 'task')}, {number_of(figures['attempts'], 'attempt')},"
        f" {number_of(figures['retries'], 'retry', 'retries')},"
        f" {number_of(figures['errors'], 'error')}, {_duration(figures['seconds'])}"
    )


def _duration(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:,} h {minutes} min" if hours else f"{minutes} min {rest} s"


def print_savings(savings: dict[str, Any], *, as_json: bool) -> None:
    """Print what recalls delivered, and what their best records or whole logs would have cost."""
    if as_json:
        print_json(savings)
        return
    count = savings["recalls"]
    since = (
        f" since {savings['since'][:10]}, {savings['empty']:,} of them found nothing"
        if count
        else ""
    )
    print(f"{'recalls':24}  {count:,}{since}")

    def line(label: str, tokens: int, share: float | None = None) -> None:
        each = f" ({tokens / count:,.0f} a recall)" if count and share is None else ""
        part = f" ({share:.1%})" if share is not None else ""
        print(f"{label:24}  {tokens:,} tokens{each}{part}")

    line("delivered", savings["tokens_delivered"])
    line("the ten best instead", savings["tokens_best"])
    line("saved of the ten best", savings["tokens_saved_of_best"], savings["share_saved_of_best"])
    line("the whole logs instead", savings["tokens_logs"])
    line("saved of the logs", savings["tokens_saved"], savings["share_saved"])
    print(f"{'all logs now':24}  {savings['tokens_logs_now']:,} tokens")
    note(savings["definition"])


def print_worth(found: dict[str, Any], *, as_json: bool) -> None:
    """Print what agents were given, the state of the contexts, and what followed."""
    if as_json:
        print_json(found)
        return
    cost, context, utility = found["cost"], found["context"], found["utility"]
    times = number_of(cost["injections"], "time")
    print(
        f"last {number_of(found['days'], 'day')}: memories given {times}, {cost['tokens']:,} tokens"
    )
    for source, one in cost["by_source"].items():
        print(f"  {source:10} {number_of(one['injections'], 'time')}, {one['tokens']:,} tokens")
    for frame, tokens in cost["by_frame"].items():
        if tokens:
            print(f"  frame {one_line(frame):16} {tokens:,} tokens")
    if context["built"]:
        print(
            f"contexts  {context['built']:,}, coverage {_share(context['coverage'])},"
            f" drift {_figure(context['drift'])}, working set"
            f" {number_of(context['nodes_now'], 'node')} (at most {context['nodes_most']:,}),"
            f" mean resonance {_figure(context['mean_resonance_now'])}"
        )
    rated = count_list(utility["rated"]) or "none"
    print(f"feedback on what was given  {rated}")
    tests = utility["tests_after"]
    print(f"tests and builds after  {tests['passed']:,} passed, {tests['failed']:,} failed")
    for label, name in (("with", "tasks_with"), ("without", "tasks_without")):
        work = utility[name]
        each = (
            f", {work['retries_a_task']} retries and {work['errors_a_task']} errors each"
            if work["tasks"]
            else ""
        )
        print(
            f"tasks {label} memories  {work['tasks']:,}: {work['succeeded']:,} succeeded,"
            f" {work['failed']:,} failed{each}"
        )


def _share(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.0%}"


def _figure(value: float | None) -> str:
    return "unknown" if value is None else f"{value:.2f}"
