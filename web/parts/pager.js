// SPDX-License-Identifier: PostgreSQL
//
// Pages of a list that goes on from a cursor: never more than a page is asked for. A page that the
// server stopped early, because it had looked at as many rows as it does for one request, is shown as it
// is, and filled up with a few more requests; then the user decides whether to go on.

import { html, useState } from "/core/html.js";
import { count } from "/core/format.js";
import { useLoad } from "/core/load.js";
import { get } from "/core/api.js";

const LIMIT = 50;
const CALLS_MAX = 8;
// What no index finds is looked for row by row: not that often.
const WALKED = ["kind", "tenant", "ref", "source", "error", "cause", "label"];
const WALKED_EVERY_MS = 30000;

async function fill(route, items, filter, after, signal, show)
{
    let page = { items: [], next: after, complete: false, looked_at: 0, going_on: true };

    for (let calls = 1; page.going_on; calls++) {
        const answer = await get(route, { ...filter, limit: LIMIT - page.items.length, after: page.next }, { signal });
        const all = [...page.items, ...answer[items]];
        page = {
            items: all, next: answer.next, complete: !answer.next, looked_at: page.looked_at + (answer.looked_at || 0),
            going_on: Boolean(answer.next) && all.length < LIMIT && calls < CALLS_MAX,
        };
        show(page);
    }
    return page;
}

// Of a page that is not full though there is more: how far the search has come.
function Searched({ page })
{
    return page && !page.complete && page.items.length < LIMIT
        ? html`<p class="muted" role="status">${page.going_on ? "Searching" : "Searched"}: ${count(page.looked_at)} rows looked at${page.going_on ? " …" : ", and there are older ones."}</p>` : null;
}

// What a list without items says: that there are none, or none so far.
export function none_of(page, nothing)
{
    return page.complete ? nothing : page.going_on ? "None so far, still searching." : "None so far: search further, there are older ones.";
}

// Returns what useLoad returns, and `pager` to draw. items: the name of the list in the answer.
export function usePages(route, items, filter, every_ms)
{
    const key = JSON.stringify(filter);
    const [place, set_place] = useState({ key, cursors: [null] });
    const cursors = place.key === key ? place.cursors : [null];
    const after = cursors[cursors.length - 1];
    const often_ms = WALKED.some((name) => filter[name]) ? WALKED_EVERY_MS : every_ms;
    const loaded = useLoad(key + "|" + after, (signal, show) => fill(route, items, filter, after, signal, show), cursors.length === 1 ? often_ms : null);
    const older = () => set_place({ key, cursors: [...cursors, loaded.data.next] });
    const newer = () => set_place({ key, cursors: cursors.slice(0, -1) });

    const pager = html`<${Searched} page=${loaded.data} /><nav class="pager" aria-label="Pages">
        <button type="button" disabled=${cursors.length === 1} onClick=${newer}>Newer</button>
        <span class="muted">Page ${cursors.length}</span>
        <button type="button" disabled=${!loaded.data?.next || loaded.data.going_on} onClick=${older}>${loaded.data && loaded.data.items.length < LIMIT && loaded.data.next ? "Search further" : "Older"}</button>
    </nav>`;
    return { ...loaded, pager };
}
