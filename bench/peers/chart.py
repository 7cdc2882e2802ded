# SPDX-License-Identifier: PostgreSQL
"""Plain bar charts as SVG: a row a contender, a light ground of its own, so that they are readable on a dark page too."""

from xml.sax.saxutils import escape

WIDTH = 760
LABEL_WIDTH = 212
VALUE_WIDTH = 90
BAR_HEIGHT = 15
BAR_GAP = 3
ROW_GAP = 10
HEAD = 62
FOOT = 16

GROUND, INK, QUIET = "#ffffff", "#1f2328", "#59636e"
OURS, THEIRS = ("#0b5cad", "#7fb2e5"), ("#6e7781", "#b8bfc6")


def text(x, y, content, anchor="start", size=13, fill=INK, weight="normal"):
    return (f'<text x="{x:.1f}" y="{y:.1f}" font-size="{size}" fill="{fill}" text-anchor="{anchor}" '
            f'font-weight="{weight}">{escape(content)}</text>')


def legend(names, y):
    """Which shade is which, where a row has several bars."""
    parts, x = [], LABEL_WIDTH
    for index, name in enumerate(names if len(names) > 1 else ()):
        parts.append(f'<rect x="{x}" y="{y - 10}" width="12" height="12" fill="{THEIRS[index]}"/>')
        parts.append(text(x + 18, y, name, size=12, fill=QUIET))
        x += 40 + 7 * len(name)
    return parts


def bar(y, value, shown, most, color):
    room = WIDTH - LABEL_WIDTH - VALUE_WIDTH
    length = max(1.0, room * value / most) if most > 0 else 1.0
    return [f'<rect x="{LABEL_WIDTH}" y="{y:.1f}" width="{length:.1f}" height="{BAR_HEIGHT}" rx="2" fill="{color}"/>',
            text(LABEL_WIDTH + length + 6, y + BAR_HEIGHT - 3, shown, size=12)]


def row(y, label, values, reason, most, show, ours):
    """A contender's name and its bars; or the reason why there is none."""
    middle = y + len(values) * (BAR_HEIGHT + BAR_GAP) / 2 + 3
    parts = [text(LABEL_WIDTH - 10, middle, label, "end", weight="bold" if ours else "normal")]
    for index, value in enumerate(values):
        at = y + index * (BAR_HEIGHT + BAR_GAP)
        if value is None:
            parts.append(text(LABEL_WIDTH, at + BAR_HEIGHT - 3, reason, size=12, fill=QUIET))
        else:
            parts += bar(at, value, show(value), most, (OURS if ours else THEIRS)[index % 2])
    return parts


def chart(title, subtitle, series, rows, show):
    """SVG text. `rows`: (label, [value or None for each series], reason, ours)."""
    step = len(series) * (BAR_HEIGHT + BAR_GAP) + ROW_GAP
    height = HEAD + len(rows) * step + FOOT + (14 if len(series) > 1 else 0)
    most = max((value for _, values, _, _ in rows for value in values if value is not None), default=0)
    parts = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
             f'viewBox="0 0 {WIDTH} {height}" role="img" font-family="system-ui, sans-serif">',
             f"<title>{escape(title)}</title>", f"<desc>{escape(subtitle)}</desc>",
             f'<rect width="{WIDTH}" height="{height}" rx="6" fill="{GROUND}" stroke="#d1d9e0"/>',
             text(16, 26, title, size=16, weight="bold"), text(16, 46, subtitle, size=12, fill=QUIET)]
    top = HEAD
    if len(series) > 1:
        parts += legend(series, HEAD + 4)
        top += 14
    for index, (label, values, reason, ours) in enumerate(rows):
        parts += row(top + index * step, label, values, reason, most, show, ours)
    return "\n".join(parts + ["</svg>", ""])
