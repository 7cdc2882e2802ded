// SPDX-License-Identifier: PostgreSQL
//
// Queues as rows, the ones in trouble first.

import { html } from "/core/html.js";
import { link } from "/core/route.js";
import { count, duration, rate } from "/core/format.js";
import { rates_now, trend } from "/core/samples.js";
import { Badge } from "/parts/badge.js";
import { Spark } from "/parts/spark.js";
import { Table } from "/parts/table.js";
import { visible } from "/parts/payload.js";

const ranks = { CRITICAL: 0, WARNING: 1, OK: 2 };

export function by_trouble(a, b)
{
    return ranks[a.status] - ranks[b.status] || b.available + b.running - a.available - a.running || (a.queue < b.queue ? -1 : 1);
}

const columns = [
    { name: "Queue", show: (q) => html`<a href=${link("queues", q.queue)}>${visible(q.queue)}</a>` },
    { name: "Health", show: (q) => html`<${Badge} word=${q.status} />${q.paused && html` <${Badge} word="paused" />`}<span class="wide muted says"> ${q.message}</span>` },
    { name: "Depth", wide: true, show: (q) => html`<${Spark} values=${trend(q.queue, "available")} label=${`Depth of ${q.queue} in the last minutes`} />` },
    { name: "Available", number: true, show: (q) => count(q.available) },
    { name: "Running", number: true, show: (q) => count(q.running) },
    { name: "Scheduled", number: true, wide: true, show: (q) => count(q.scheduled) },
    { name: "Dead", number: true, show: (q) => (q.dead ? html`<a href=${link("dead", { queue: q.queue })}>${count(q.dead)}</a>` : "0") },
    { name: "In", number: true, wide: true, show: (q) => rate(rates_now(q.queue).enqueued) },
    { name: "Out", number: true, wide: true, show: (q) => rate(rates_now(q.queue).completed) },
    { name: "Wait p95", number: true, wide: true, show: (q) => duration(q.wait?.p95) },
    { name: "Run p95", number: true, wide: true, show: (q) => duration(q.run?.p95) },
];

export function QueueTable({ queues, none })
{
    return html`<${Table} caption="Queues" columns=${columns} rows=${queues} id=${(q) => q.queue} none=${none || "No queue yet: the first job makes one."} />`;
}
