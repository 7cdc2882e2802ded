// SPDX-License-Identifier: PostgreSQL
//
// The first page: is all well, how much comes and goes, and where is the trouble.

import { html } from "/core/html.js";
import { useStore } from "/core/store.js";
import { link } from "/core/route.js";
import { compact, count, duration, many, rate } from "/core/format.js";
import { rates_now } from "/core/samples.js";
import { Badge } from "/parts/badge.js";
import { Charts, Ranges } from "/parts/charts.js";
import { QueueTable, by_trouble } from "/parts/queue_table.js";
import { Tiles } from "/parts/tiles.js";
import { visible } from "/parts/payload.js";

const QUEUES_SHOWN = 12;
const TROUBLES_SHOWN = 6;

// What is not OK, the worst first; or that all is well.
function Health({ overview })
{
    const queues = overview.queues.filter((queue) => queue.status !== "OK").sort(by_trouble)
        .map((queue) => ({ status: queue.status, name: queue.queue, message: queue.message }));
    const log = (overview.log || []).filter((entry) => entry.status !== "OK").map((entry) => ({ ...entry, name: null }));
    const troubles = [...log, ...queues];

    if (troubles.length === 0) {
        return html`<p class="health good"><${Badge} word="OK" /> All ${many(overview.queues.length, "queue")} are well; ${overview.log?.[0]?.message || ""}.</p>`;
    }
    return html`<ul class="health" aria-label="Health">
        ${troubles.slice(0, TROUBLES_SHOWN).map((trouble) => html`<li key=${trouble.name}><${Badge} word=${trouble.status} />
            ${trouble.name === null ? html` <b>Log</b>` : html` <a href=${link("queues", trouble.name)}>${visible(trouble.name)}</a>`}: ${trouble.message}</li>`)}
        ${troubles.length > TROUBLES_SHOWN && html`<li><a href="#/queues">${troubles.length - TROUBLES_SHOWN} more</a></li>`}
    </ul>`;
}

const spread = (times) => (times ? `of what ended in the last minute: p50 ${duration(times.p50)}, p95 ${duration(times.p95)}, p99 ${duration(times.p99)}`
    : "nothing has ended in the last minute");

function Totals({ totals })
{
    const now = rates_now(null);

    return html`<${Tiles} tiles=${[
        { name: "Available", value: compact(totals.available), title: count(totals.available), href: link("jobs", { status: "available" }) },
        { name: "Running", value: compact(totals.running), title: count(totals.running), href: link("jobs", { status: "running" }) },
        { name: "Scheduled", value: compact(totals.scheduled), title: count(totals.scheduled), href: link("jobs", { status: "scheduled" }) },
        { name: "Retrying", value: compact(totals.retrying), title: count(totals.retrying) },
        { name: "Dead letters", value: compact(totals.dead), title: count(totals.dead), href: link("dead"), tone: totals.dead > 0 ? "bad" : "" },
        { name: "In", value: rate(now.enqueued) },
        { name: "Out", value: rate(now.completed) },
        { name: "Wait p95", value: duration(totals.wait?.p95), title: spread(totals.wait) },
        { name: "Run p95", value: duration(totals.run?.p95), title: spread(totals.run) },
        { name: "Failed, last hour", value: compact(totals.failed_1h), title: `${count(totals.failed_1h)} of ${count(totals.completed_1h + totals.failed_1h)}` },
    ]} />`;
}

export function Overview()
{
    const overview = useStore((state) => state.overview);

    return html`
        <div class="head"><h1>Overview</h1><${Ranges} /></div>
        ${!overview ? html`<p class="muted" role="status">Waiting for the first figures …</p>` : html`
            <${Health} overview=${overview} />
            <${Totals} totals=${overview.totals} />`}
        <${Charts} queue=${null} />
        ${overview && html`<section>
            <h2>Queues ${overview.queues.length > QUEUES_SHOWN && html`<small><a href="#/queues">all ${overview.queues.length}</a></small>`}</h2>
            <${QueueTable} queues=${[...overview.queues].sort(by_trouble).slice(0, QUEUES_SHOWN)} />
        </section>`}`;
}
