// SPDX-License-Identifier: PostgreSQL
//
// One batch: how far it is, and its callbacks.

import { html } from "/core/html.js";
import { get, path } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { link } from "/core/route.js";
import { count } from "/core/format.js";
import { Badge } from "/parts/badge.js";
import { Facts } from "/parts/tiles.js";
import { Loaded } from "/parts/trouble.js";
import { Time } from "/parts/time.js";
import { visible } from "/parts/payload.js";
import { ended_of } from "/pages/batches.js";

const EVERY_MS = 2000;

const callback = (id) => id && html`<a class="id" href=${link("jobs", String(id))}>${String(id)}</a>`;

export function Batch({ id })
{
    const story = useLoad(id, (signal) => get(path("batches", id), null, { signal }), EVERY_MS);

    return html`<div class="head"><h1><a href="#/batches" class="muted">Batches</a> / ${visible(id)}</h1></div>
        <${Loaded} from=${story} show=${(batch) => html`
            <p class="health"><${Badge} word=${batch.status} /> ${batch.label && visible(batch.label)} ${batch.error && html`<span class="bad-text">${visible(batch.error)}</span>`}</p>
            <section class="panel"><h2>Done</h2>
                <div><progress max=${batch.jobs || 1} value=${ended_of(batch)} aria-label="Done"></progress> ${count(ended_of(batch))} of ${count(batch.jobs)}</div>
                <${Facts} facts=${[
                    ["Completed", count(batch.completed)], ["Dead", count(batch.dead)], ["Cancelled", count(batch.cancelled)], ["Expired", count(batch.expired)],
                    ["Began", html`<${Time} at=${batch.began_at} />`], ["Sealed", html`<${Time} at=${batch.sealed_at} />`], ["Ended", html`<${Time} at=${batch.ended_at} />`],
                    ["On complete", callback(batch.on_complete)], ["On death", callback(batch.on_death)], ["On end", callback(batch.on_end)],
                ]} />
            </section>`} />`;
}
