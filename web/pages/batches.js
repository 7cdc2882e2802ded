// SPDX-License-Identifier: PostgreSQL
//
// Batches, the newest first.

import { html } from "/core/html.js";
import { link } from "/core/route.js";
import { count } from "/core/format.js";
import { Badge } from "/parts/badge.js";
import { Filters, chosen } from "/parts/filters.js";
import { Loaded } from "/parts/trouble.js";
import { Table } from "/parts/table.js";
import { Time } from "/parts/time.js";
import { none_of, usePages } from "/parts/pager.js";
import { visible } from "/parts/payload.js";

const EVERY_MS = 5000;

const fields = [
    { name: "status", label: "Status", options: ["open", "running", "completed", "failed"] },
    { name: "label", label: "Label contains" },
];

export const ended_of = (batch) => (batch.completed || 0) + (batch.dead || 0) + (batch.cancelled || 0) + (batch.expired || 0);

const columns = [
    { name: "Batch", show: (b) => html`<a class="id" href=${link("batches", String(b.id))}>${String(b.id)}</a>` },
    { name: "Label", show: (b) => visible(b.label || "") },
    { name: "Status", show: (b) => html`<${Badge} word=${b.status} />` },
    { name: "Done", show: (b) => html`<progress max=${b.jobs || 1} value=${ended_of(b)} aria-label=${`Done of batch ${b.id}`}></progress>` },
    { name: "Jobs", number: true, show: (b) => count(b.jobs) },
    { name: "Completed", number: true, wide: true, show: (b) => count(b.completed) },
    { name: "Dead", number: true, wide: true, show: (b) => count(b.dead) },
    { name: "Began", number: true, show: (b) => html`<${Time} at=${b.began_at} />` },
    { name: "Ended", number: true, wide: true, show: (b) => html`<${Time} at=${b.ended_at} />` },
];

export function Batches({ route })
{
    const page = usePages("/batches", "batches", chosen(route.query, fields), EVERY_MS);

    return html`<div class="head"><h1>Batches</h1></div>
        <${Filters} route=${route} fields=${fields} />
        <${Loaded} from=${page} show=${(data) => html`<${Table} caption="Batches" rows=${data.items} id=${(b) => [b.shard, b.id].join()} columns=${columns} none=${none_of(data, "No batch is like that.")} />`} />
        ${page.pager}`;
}
