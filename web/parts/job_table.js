// SPDX-License-Identifier: PostgreSQL
//
// Jobs as rows.

import { html } from "/core/html.js";
import { link } from "/core/route.js";
import { cut } from "/core/format.js";
import { Badge } from "/parts/badge.js";
import { Table } from "/parts/table.js";
import { Time } from "/parts/time.js";
import { visible } from "/parts/payload.js";

const args_text = (job) => (job.args_cut ? "(over 2 KB)" : job.args === undefined ? "" : visible(cut(JSON.stringify(job.args), 90)));

const columns = [
    { name: "Job", show: (job) => html`<a class="id" href=${link("jobs", String(job.id))}>${String(job.id)}</a>` },
    { name: "Status", show: (job) => html`<${Badge} word=${job.status} />` },
    { name: "Queue", show: (job) => html`<a href=${link("queues", job.queue)}>${visible(job.queue)}</a>` },
    { name: "Kind", wide: true, show: (job) => visible(cut(job.kind, 60)) },
    { name: "Attempt", number: true, wide: true, show: (job) => `${job.attempt} of ${job.max_attempts}` },
    { name: "What", wide: true, look: "what", show: (job) => (job.error ? html`<span class="bad-text">${visible(cut(job.error, 120))}</span>` : html`<code>${args_text(job)}</code>`) },
    { name: "Worker", wide: true, show: (job) => visible(job.worker || "") },
    { name: "When", number: true, show: (job) => html`<${Time} at=${job.finished_at || job.claimed_at || job.run_at || job.created_at} />` },
];

export function JobTable({ caption, jobs, none, without = [] })
{
    return html`<${Table} caption=${caption} columns=${columns.filter((column) => !without.includes(column.name))} rows=${jobs} id=${(job) => job.id} none=${none} />`;
}
