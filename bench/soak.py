# SPDX-License-Identifier: PostgreSQL
"""Draws and judges the samples of a soak: soak.py SAMPLES CHART. Status 0: flat, 1: not, 2: broken.

Flat: the straight line that fits disk and p99 best over the last two thirds of the time changes by at most 5 % of its
middle between its ends. Beside the change stands its standard error: a line through noise is not level either. How much of p99 is the
disk's shows a commit of one row in a table that has nothing to do with jobs, and how far the two go together (correlation)."""

import json
import sys
from xml.sax.saxutils import escape

FLAT = 0.05
WIDTH, PANEL, LEFT, RIGHT, HEAD, GAP = 760, 110, 96, 24, 56, 34
GROUND, INK, QUIET, LINE, FIT = "#ffffff", "#1f2328", "#59636e", "#0b5cad", "#bc4c00"

# What is drawn: title, member of a sample, divisor, unit, whether it has to be flat.
PANELS = [
    ("Jobs that wait", "depth", 1, "", False),
    ("Commit to handler, p99", "p99_ms", 1, " ms", True),
    ("Commit of one row elsewhere, p99", "commit_p99_ms", 1, " ms", False),
    ("Disk, the whole database", "disk_bytes", 1e9, " GB", True),
    ("WAL written", "wal_bytes_s", 1e6, " MB/s", False),
    ("Server's processor time", "server_cores", 1, " cores", False),
]


def fit(points):
    """Offset and slope of the line with the least squares."""
    n = len(points)
    mean_x, mean_y = sum(x for x, _ in points) / n, sum(y for _, y in points) / n
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    slope = sum((x - mean_x) * (y - mean_y) for x, y in points) / spread if spread else 0.0
    return mean_y - slope * mean_x, slope


def settled(samples):
    """The last two thirds of the time."""
    end = samples[-1]["at_s"]
    return [sample for sample in samples if sample["at_s"] > end / 3]


def change(samples, member):
    """How far the fitted line goes between its ends, as a share of its middle."""
    points = [(sample["at_s"], sample[member]) for sample in samples]
    offset, slope = fit(points)
    middle = offset + slope * (points[0][0] + points[-1][0]) / 2
    return slope * (points[-1][0] - points[0][0]) / middle if middle else 0.0


def doubt(samples, member):
    """The standard error of that change: what the noise of the samples alone would make of it."""
    points = [(sample["at_s"], sample[member]) for sample in samples]
    offset, slope = fit(points)
    mean_x = sum(x for x, _ in points) / len(points)
    middle = offset + slope * mean_x
    residue = sum((y - offset - slope * x) ** 2 for x, y in points) / max(len(points) - 2, 1)
    spread = sum((x - mean_x) ** 2 for x, _ in points)
    return (residue / spread) ** 0.5 * (points[-1][0] - points[0][0]) / middle if spread and middle else 0.0


def together(samples, one, other):
    """The correlation of two figures: 1 when they rise and fall as one, 0 when neither knows of the other."""
    xs, ys = [sample[one] for sample in samples], [sample[other] for sample in samples]
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    both = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys))
    apart = sum((x - mean_x) ** 2 for x in xs) * sum((y - mean_y) ** 2 for y in ys)
    return both / apart ** 0.5 if apart else 0.0


def text(x, y, content, anchor="start", size=12, fill=QUIET, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(content)}</text>')


def shown(value):
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


def panel(top, samples, title, member, divisor, unit, judged):
    values = [sample[member] / divisor for sample in samples]
    end, most = samples[-1]["at_s"], max(max(values), 1e-9) * 1.1

    def at(x, y):
        return LEFT + (WIDTH - LEFT - RIGHT) * x / end, top + PANEL * (1 - y / most)

    path = " ".join("{:.1f},{:.1f}".format(*at(sample["at_s"], value)) for sample, value in zip(samples, values))
    parts = [text(LEFT, top - 8, title, size=13, fill=INK, weight="bold"),
             f'<line x1="{LEFT}" y1="{top + PANEL}" x2="{WIDTH - RIGHT}" y2="{top + PANEL}" stroke="{QUIET}"/>',
             text(LEFT - 8, top + PANEL, "0", "end"), text(LEFT - 8, top + 10, shown(most) + unit, "end"),
             f'<polyline points="{path}" fill="none" stroke="{LINE}" stroke-width="1.5"/>']
    if judged:
        part = settled(samples)
        offset, slope = fit([(sample["at_s"], sample[member] / divisor) for sample in part])
        (x1, y1), (x2, y2) = (at(x, offset + slope * x) for x in (part[0]["at_s"], end))
        parts.append(f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" stroke="{FIT}" stroke-width="2"/>')
        parts.append(text(WIDTH - RIGHT, top - 8, f"{change(part, member):+.1%} over the line", "end", fill=FIT))
    return parts


def chart(samples):
    minutes = samples[-1]["at_s"] / 60
    rate = sum(sample["completed_s"] for sample in samples) / len(samples)
    height = HEAD + len(PANELS) * (PANEL + GAP) + 30
    title = f"{minutes:.0f} minutes at {rate:,.0f} jobs/s of 4.5 KB"
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" viewBox="0 0 {WIDTH} {height}" '
             'role="img" font-family="system-ui, sans-serif">', f"<title>{escape(title)}</title>",
             f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{GROUND}" stroke="#d1d9e0"/>',
             text(16, 26, title, size=16, fill=INK, weight="bold")]
    for index, description in enumerate(PANELS):
        parts += panel(HEAD + 20 + index * (PANEL + GAP), samples, *description)
    parts += [text(LEFT, height - 14, "0"), text(WIDTH - RIGHT, height - 14, f"{minutes:.0f} min", "end")]
    return "\n".join(parts + ["</svg>", ""])


def report(samples):
    """Prints a line for each figure; true when all that has to be is flat."""
    part, good = settled(samples), True
    print(f"{'over the last two thirds':40}{'mean':>12}{'least':>12}{'most':>12}{'change':>9}{'error':>8}")
    for title, member, divisor, unit, judged in PANELS + [
            ("Completed", "completed_s", 1, " jobs/s", False), ("Client's memory", "client_bytes", 1e6, " MB", False)]:
        values = [sample[member] / divisor for sample in part]
        moved = change(part, member)
        flat = not judged or abs(moved) <= FLAT
        good = good and flat
        print(f"{title + (',' + unit if unit else ''):40}{shown(sum(values) / len(values)):>12}{shown(min(values)):>12}"
              f"{shown(max(values)):>12}{moved:>+9.1%}{doubt(part, member):>8.1%}{'' if not judged else '  flat' if flat else '  NOT FLAT'}")
    print(f"p99 and the commit elsewhere: correlation {together(part, 'p99_ms', 'commit_p99_ms'):.2f}")
    return good


def main(path, picture):
    with open(path, encoding="utf-8") as file:
        samples = [json.loads(line) for line in file]
    if len(samples) < 6:
        print(f"soak.py: {path} has {len(samples)} samples, too few to judge", file=sys.stderr)
        return 2
    with open(picture, "w", encoding="utf-8") as file:
        file.write(chart(samples))
    return 0 if report(samples) else 1


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
