# SPDX-License-Identifier: PostgreSQL
"""Makes the report of what run.py measured.

  report.py PEERS.JSON               prints the figures and the targets
  report.py PEERS.JSON --write       and writes docs/benchmarks.md with its charts
  report.py PEERS.JSON --docs DIR    writes them there

Exit status 0: every target that was measured is kept, or the run was a quick one; 1: some are missed.
"""

import argparse
import json
import os
import statistics
import sys
from dataclasses import dataclass

import chart
from contenders import BY_NAME, CONTENDERS


# ---- numbers as text ----

def rate(value):
    if value >= 10000:
        return f"{value / 1000:.0f} k"
    return f"{value / 1000:.1f} k" if value >= 1000 else f"{value:.0f}"


def plain(value):
    return f"{value:,.0f}"


def ratio(value):
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def milliseconds(value):
    return "< 0.05" if value < 0.05 else f"{value:.2f}" if value < 10 else plain(value)


# The columns of the figures: name, heading, how a value is written.
COLUMNS = (
    ("enqueue", "bulk enqueue/s", rate),
    ("drain", "drain/s, {batch} a claim", rate),
    ("drain_best", "drain/s, best claim size", rate),
    ("single", "drain/s, one by one", rate),
    ("steady", "steady state/s", rate),
    ("wal_bytes", "WAL B/job", plain),
    ("p50_ms", "latency p50 ms", milliseconds),
    ("p99_ms", "p99 ms", milliseconds),
    ("held", "held snapshot, last/first fifth", ratio),
    ("depth", "deep/shallow", ratio),
)


# ---- targets ----

@dataclass(frozen=True)
class Target:
    what: str
    ours: str                # Millrace's figure
    bar: float
    peer: str = ""           # over whose figure; "" for a figure that is a ratio by itself
    theirs: str = ""         # which figure of the peer's, if another
    at_most: bool = False
    limit: str = ""          # what keeps it from being better


JSON_OUT = ("12,400 instructions of the server to claim a job and 6,400 to print its JSON, and what the worker does to read it")
STATEMENTS = ("a claim and a completion are three statements in PL/pgSQL, 0.9 million instructions with one job, against the textbook's "
              "two plain ones with 0.5 million")

TARGETS = (
    Target("drain, best claim size, against PgQ's read rate", "drain_best", 0.75, "pgq", limit=JSON_OUT),
    Target("drain, best claim size, against graphile-worker", "drain_best", 4, "graphile-worker", limit=JSON_OUT),
    Target("drain, best claim size, against pgmq-like reads (read and delete)", "drain_best", 4, "visibility", limit=JSON_OUT),
    Target("drain, best claim size, against pgmq-like reads (`delete … returning`)", "drain_best", 4, "delete-returning",
           limit=JSON_OUT + "; it keeps no lease, no history and no retry, so it has little to do but to print"),
    Target("bulk enqueue against PgQ's", "enqueue", 0.8, "pgq",
           limit="reading the JSON, which PgQ does not do: more than half of 27,000 instructions a job"),
    Target("steady state against textbook", "steady", 4, "textbook", limit="both of the above, on two cores"),
    Target("WAL for a job's whole life, of PgQ's", "wal_bytes", 1.25, "pgq", at_most=True,
           limit="the args themselves; seventeen jobs share a row and its entries in two indexes"),
    Target("one by one, {single_workers} connections, fresh tables, against textbook", "single", 0.8, "textbook", limit=STATEMENTS),
    Target("the same under a held snapshot, last fifth of {single_held_jobs} jobs", "single_held", 5, "textbook", limit=STATEMENTS),
    Target("{single_workers} workers behind one station against textbook, one by one", "served", 3, "textbook", "single",
           limit="pipes to the handlers"),
    Target("drain under a held snapshot, last fifth over first of {held_jobs_millrace} jobs", "held", 0.95,
           limit="nothing that grows; the rest is noise"),
    Target("drain {deep_millrace} deep over {shallow} deep", "depth", 0.95, limit="nothing that grows; the rest is noise"),
    Target("latency p50, of a bare NOTIFY's round trip in the same run", "p50_ms", 2, "millrace", "notify_p50_ms",
           at_most=True, limit="the claim, with cold caches after an idle pause; the notification itself is one half of the bar"),
    Target("memory of a worker draining {memory_jobs} jobs of 4.5 KB, MB", "memory_mb", 64, at_most=True,
           limit="claims of large jobs end at 16 MB"),
    Target("the same with four times as many, over that", "memory_growth", 1.1, at_most=True, limit="nothing is kept for a job that is done"),
)


class Results:
    def __init__(self, told):
        self.told = told
        self.entries = {entry["name"]: entry for entry in told["contenders"]}
        self.sizes = {name: plain(value) for name, value in told["sizes"].items()}

    def entry(self, name):
        return self.entries.get(name) or {"status": "not run", "reason": "not asked for", "figures": {}, "runs": [],
                                          "version": "", "title": BY_NAME[name].title}

    def figure(self, name, figure):
        found = self.entry(name)["figures"].get(figure) if self.entry(name)["status"] == "ran" else None
        return found["median"] if found else None

    def ratios(self, ours, peer, theirs=""):
        """A value for each round in which both were measured; round by round, because the machine has moods."""
        pairs = zip(self.entry("millrace")["runs"], self.entry(peer)["runs"] if peer else self.entry("millrace")["runs"])
        return [mine[ours] / (other[theirs or ours] if peer else 1) for mine, other in pairs
                if ours in mine and (not peer or other.get(theirs or ours))]

    def judge(self, target):
        """(measured, verdict) as text."""
        values = self.ratios(target.ours, target.peer, target.theirs)
        absent = [name for name in ("millrace", target.peer) if name and self.entry(name)["status"] != "ran"]
        if absent or not values:
            return "–", f"not measured: {BY_NAME[absent[0]].title if absent else 'it'} was not run"
        middle = statistics.median(values)
        kept = middle <= target.bar if target.at_most else middle >= target.bar
        return f"{ratio(middle)} ({ratio(min(values))} to {ratio(max(values))})", "kept" if kept else "MISSED"

    def judged(self):
        """(what, bar, measured, verdict) of every target, and what limits it."""
        for target in TARGETS:
            bar = ("at most " if target.at_most else "at least ") + f"{target.bar:g}"
            yield (target.what.format(**self.sizes), bar) + self.judge(target) + (target.limit,)


# ---- tables ----

def table(head, rows):
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows])


def name_of(entry):
    return f"{entry['title']} {entry['version']}".strip()


def figures_table(results, cell):
    head = ["contender"] + [heading.format(**results.sizes) for _, heading, _ in COLUMNS]
    rows = []
    for contender in CONTENDERS:
        entry = results.entry(contender.name)
        if entry["status"] != "ran":
            rows.append([name_of(entry), f"not run: {entry['reason']}"] + [""] * (len(COLUMNS) - 1))
            continue
        rows.append([name_of(entry)] + [cell(entry["figures"].get(name), show) for name, _, show in COLUMNS])
    return table(head, rows)


def median_cell(figure, show):
    return show(figure["median"]) if figure else "–"


def spread_cell(figure, show):
    return f"{show(figure['least'])} to {show(figure['most'])}" if figure else "–"


def ratio_table(results):
    """Millrace over each peer; for WAL and latency the peer over Millrace, so that more is better everywhere."""
    chosen = [column for column in COLUMNS if column[0] not in ("held", "depth", "p99_ms")]
    rows = []
    for contender in CONTENDERS[1:]:
        cells = []
        for name, _, _ in chosen:
            values = results.ratios(name, contender.name) if results.entry(contender.name)["status"] == "ran" else []
            middle = statistics.median(values) if values else 0
            cells.append("–" if not middle else ratio(1 / middle if name in ("wal_bytes", "p50_ms") else middle))
        rows.append([contender.title] + cells)
    return table(["Millrace against"] + [heading.format(**results.sizes) for _, heading, _ in chosen], rows)


def config_list(results):
    lines = []
    for contender in CONTENDERS:
        entry = results.entry(contender.name)
        best = ""
        if entry.get("best") and len(contender.candidates) > 1:
            best = "; best claim size {:,}, {} worker(s)".format(*entry["best"])
        lines.append(f"- **{name_of(entry)}**: " + "; ".join(contender.config) + best + ".")
    return "\n".join(lines)


def machine_text(results):
    machine, settings = results.told["machine"], results.told["machine"].get("settings", {})
    facts = [f"{machine.get('cores', '?')} cores, shared by server and clients"]
    for key, title in (("server", "PostgreSQL"), ("node", "Node"), ("redis", "Redis")):
        if machine.get(key):
            facts.append(f"{title} {machine[key]}")
    facts += [f"`{name} = {value}`" for name, value in settings.items()]
    return ", ".join(facts)


# ---- the page ----

CHARTS = (
    ("bench-drain", "Drain, jobs a second", "no-op jobs, claimed and completed; more is better",
     (("drain", "{batch} a claim"), ("drain_best", "best claim size")), rate),
    ("bench-enqueue", "Bulk enqueue, jobs a second", "durable inserts of many jobs; more is better",
     (("enqueue", "enqueue"),), rate),
    ("bench-wal", "WAL, bytes a job", "from enqueue to completion; less is better", (("wal_bytes", "WAL"),), plain),
    ("bench-held", "Drain under a held snapshot",
     "rate of the last fifth over the first; 1 is flat, less is slower", (("held", "last/first"),), ratio),
)


def why_empty(contender, figure, entry):
    if entry["status"] != "ran":
        return "not run"
    return "not applicable" if figure in contender.lacks or figure == "wal_bytes" else "not measured"


def draw(results, title, subtitle, series, show):
    rows = []
    for contender in CONTENDERS:
        entry = results.entry(contender.name)
        values = [results.figure(contender.name, figure) for figure, _ in series]
        rows.append((contender.title, values, why_empty(contender, series[0][0], entry), contender.name == "millrace"))
    return chart.chart(title, subtitle, [label.format(**results.sizes) for _, label in series], rows, show)


def page(results):
    told, sizes = results.told, results.sizes
    images = "\n\n".join(f"![{title}](img/{name}.svg)" for name, title, *_ in CHARTS)
    judged = [list(row) for row in results.judged()]
    for row in judged:
        row[3] = f"**{row[3]}**" if row[3] == "MISSED" else row[3]
    warning = "\n> A quick run: it shows that everything works, its figures mean nothing.\n" if told["quick"] else ""
    return f"""# Benchmarks

Written by `bench/run peers --write` and by `make bench`; do not edit.
{warning}
The same work on Millrace and its peers, one after the other, each on a private server of its own: no-op jobs with
{told['payload_bytes']} bytes of JSON. Figures are medians of {told['repeat']} round(s); a round takes every contender once, and
ratios are taken within a round. Nothing is the best of several tries.

Machine: {machine_text(results)}.

{images}

## Figures

{figures_table(results, median_cell)}

Spread, least to most of the rounds:

{figures_table(results, spread_cell)}

- Bulk enqueue and drain: {sizes['jobs']} jobs ({sizes.get('jobs_node', sizes['jobs'])} behind Node), {sizes['chunk']} a transaction where it can be set. The best claim size of each was
  found before the first round, on a quarter of the jobs; the figure is from the rounds. One by one: {sizes['single_jobs']} jobs, claims of one job on
  {sizes['single_workers']} connections. Steady state: producers and workers at once for {sizes['seconds']} s, jobs completed.
- Latency: from the moment the producer knows of its commit to the handler's start, on an idle queue. A worker may be faster than the
  answer to the producer; that counts as 0.
- Held snapshot: another session holds one while {sizes['held_jobs']} jobs ({sizes['held_jobs_millrace']} for Millrace) are drained,
  {sizes['batch']} a claim. Deep: {sizes['deep']} jobs waiting ({sizes['deep_millrace']} for Millrace) over {sizes['shallow']}.
- The drivers of Millrace, textbook, the pgmq-like reads, PgQ and beanstalkd are in C; the others also pay for Node. BullMQ and
  beanstalkd may lose what they acknowledged last in a crash, `delete … returning` loses what a dying worker holds, and PgQ is a log
  without jobs: no state, no retry, no lease for one of them.

## Ratios

More is better everywhere: Millrace over the peer, for WAL and latency the peer over Millrace.

{ratio_table(results)}

## Targets

{table(["what", "target", "measured, median (least to most)", "verdict", "what limits it"], judged)}

## Configuration of each

{config_list(results)}

Every round and every setting is in `peers.json` of the build directory after a run.
"""


def write(results, directory):
    os.makedirs(os.path.join(directory, "img"), exist_ok=True)
    for name, title, subtitle, series, show in CHARTS:
        with open(os.path.join(directory, "img", name + ".svg"), "w", encoding="utf-8") as file:
            file.write(draw(results, title, subtitle, series, show))
    with open(os.path.join(directory, "benchmarks.md"), "w", encoding="utf-8") as file:
        file.write(page(results))


# ---- the terminal ----

def aligned(rows):
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return "\n".join("  ".join(cell.ljust(width) for cell, width in zip(row, widths)).rstrip() for row in rows)


def print_report(results):
    short = ("enqueue", "drain", "drain_best", "single", "steady", "wal_bytes", "p50_ms", "p99_ms", "held", "depth")
    shows = {name: show for name, _, show in COLUMNS}
    rows, absent = [["contender"] + list(short)], []
    for contender in CONTENDERS:
        entry = results.entry(contender.name)
        if entry["status"] == "ran":
            rows.append([name_of(entry)] + [median_cell(entry["figures"].get(name), shows[name]) for name in short])
        else:
            absent.append(f"{contender.title}: not run: {entry['reason']}")
    print(aligned(rows))
    print("\n".join(absent))
    print()
    print(aligned([["target", "bar", "measured", "verdict"]] + [list(row[:4]) for row in results.judged()]))


def main(words):
    parser = argparse.ArgumentParser(prog="report.py", description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("input")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--docs")
    options = parser.parse_args(words)
    with open(options.input, encoding="utf-8") as file:
        results = Results(json.load(file))
    print_report(results)
    if options.docs:
        write(results, options.docs)
    elif options.write and results.told["quick"]:
        print("report.py: a quick run is not written to docs/; name a directory with --docs", file=sys.stderr)
    elif options.write:
        write(results, "docs")
    missed = any(row[3] == "MISSED" for row in results.judged())
    return 1 if missed and not results.told["quick"] else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
