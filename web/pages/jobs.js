// SPDX-License-Identifier: PostgreSQL
//
// Jobs, the newest first, by anything they can be found by.

import { html } from "/core/html.js";
import { Filters, chosen } from "/parts/filters.js";
import { JobTable } from "/parts/job_table.js";
import { Loaded } from "/parts/trouble.js";
import { none_of, usePages } from "/parts/pager.js";

const EVERY_MS = 5000;

const fields = [
    { name: "queue", label: "Queue", list: "known-queues" },
    { name: "status", label: "Status", options: ["available", "running", "scheduled", "paused", "waiting", "completed", "dead", "cancelled", "expired"] },
    { name: "kind", label: "Kind" },
    { name: "tenant", label: "Tenant" },
    { name: "source", label: "Source" },
    { name: "ref", label: "Ref" },
    { name: "error", label: "Error contains" },
    { name: "id", label: "Id", number: true },
];

export function Jobs({ route })
{
    const filter = chosen(route.query, fields);
    const page = usePages("/jobs", "jobs", filter, EVERY_MS);

    return html`
        <div class="head"><h1>Jobs</h1></div>
        <${Filters} route=${route} fields=${fields} />
        <${Loaded} from=${page} show=${(data) => html`<${JobTable} caption="Jobs" jobs=${data.items}
            none=${none_of(data, "No job is like that.")} />`} />
        ${page.pager}`;
}
