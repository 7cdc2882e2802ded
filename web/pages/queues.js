// SPDX-License-Identifier: PostgreSQL
//
// All queues.

import { html } from "/core/html.js";
import { useStore } from "/core/store.js";
import { change_query } from "/core/route.js";
import { QueueTable, by_trouble } from "/parts/queue_table.js";

export function Queues({ route })
{
    const overview = useStore((state) => state.overview);
    const part = route.query.name || "";
    const queues = (overview?.queues || []).filter((queue) => queue.queue.includes(part)).sort(by_trouble);

    return html`
        <div class="head"><h1>Queues</h1>
            <div class="field"><label for="queue-name" class="unseen">Name contains</label>
                <input id="queue-name" type="search" placeholder="Name contains" value=${part} autocomplete="off"
                    onInput=${(event) => change_query(route, { name: event.target.value })} /></div>
        </div>
        ${overview ? html`<${QueueTable} queues=${queues} none=${part && "No queue has that in its name."} />` : html`<p class="muted" role="status">Loading …</p>`}`;
}
