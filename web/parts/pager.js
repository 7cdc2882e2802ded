// SPDX-License-Identifier: PostgreSQL
//
// Pages of a list that goes on from a cursor: never more than a page is asked for, and a page that
// the server stopped early is filled up with a few more calls.

import { html, useState } from "/core/html.js";
import { useLoad } from "/core/load.js";
import { get } from "/core/api.js";

const LIMIT = 50;
const CALLS_MAX = 8;
// What no index finds is looked for row by row: not that often.
const WALKED = ["kind", "tenant", "ref", "error", "cause", "label"];
const WALKED_EVERY_MS = 30000;

async function fill(route, items, filter, after, signal)
{
    const page = { items: [], next: after, complete: false };

    for (let calls = 0; calls < CALLS_MAX && page.items.length < LIMIT && !page.complete; calls++) {
        const answer = await get(route, { ...filter, limit: LIMIT - page.items.length, after: page.next }, { signal });
        page.items.push(...answer[items]);
        page.next = answer.next;
        page.complete = !answer.next;
    }
    return page;
}

// Returns what useLoad returns, and `pager` to draw. items: the name of the list in the answer.
export function usePages(route, items, filter, every_ms)
{
    const key = JSON.stringify(filter);
    const [place, set_place] = useState({ key, cursors: [null] });
    const cursors = place.key === key ? place.cursors : [null];
    const after = cursors[cursors.length - 1];
    const often_ms = WALKED.some((name) => filter[name]) ? WALKED_EVERY_MS : every_ms;
    const loaded = useLoad(key + "|" + after, (signal) => fill(route, items, filter, after, signal), cursors.length === 1 ? often_ms : null);
    const older = () => set_place({ key, cursors: [...cursors, loaded.data.next] });
    const newer = () => set_place({ key, cursors: cursors.slice(0, -1) });

    const pager = html`<nav class="pager" aria-label="Pages">
        <button type="button" disabled=${cursors.length === 1} onClick=${newer}>Newer</button>
        <span class="muted">Page ${cursors.length}</span>
        <button type="button" disabled=${!loaded.data?.next} onClick=${older}>${loaded.data && loaded.data.items.length < LIMIT && loaded.data.next ? "Search further" : "Older"}</button>
    </nav>`;
    return { ...loaded, pager };
}
