// SPDX-License-Identifier: PostgreSQL
//
// Who works: all that hold a lease, or have claimed lately.

import { html } from "/core/html.js";
import { get } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { link } from "/core/route.js";
import { count } from "/core/format.js";
import { Loaded } from "/parts/trouble.js";
import { Table } from "/parts/table.js";
import { Time } from "/parts/time.js";
import { visible } from "/parts/payload.js";

const EVERY_MS = 3000;

const columns = [
    { name: "Worker", show: (w) => visible(w.worker) },
    { name: "Queue", show: (w) => html`<a href=${link("queues", w.queue)}>${visible(w.queue)}</a>` },
    { name: "Running", number: true, show: (w) => count(w.jobs_running) },
    { name: "Claims", number: true, wide: true, show: (w) => count(w.claims_open) },
    { name: "Last claim", number: true, show: (w) => html`<${Time} at=${w.last_claim_at} />` },
    { name: "Lease until", number: true, wide: true, show: (w) => html`<${Time} at=${w.lease_until} />` },
];

export function Workers()
{
    const list = useLoad("", (signal) => get("/workers", null, { signal }), EVERY_MS);

    return html`<div class="head"><h1>Workers</h1></div>
        <${Loaded} from=${list} show=${(data) => html`<${Table} caption="Workers" rows=${data.workers} id=${(w) => [w.shard, w.queue, w.worker].join("\n")} columns=${columns}
            none="Nobody has claimed a job lately." />`} />`;
}
