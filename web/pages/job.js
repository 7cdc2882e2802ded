// SPDX-License-Identifier: PostgreSQL
//
// One job's story, from its beginning to now, and what can be done with it.

import { html } from "/core/html.js";
import { ask } from "/core/store.js";
import { act, get, path } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { link } from "/core/route.js";
import { Badge } from "/parts/badge.js";
import { Facts } from "/parts/tiles.js";
import { Loaded } from "/parts/trouble.js";
import { Part, Payload, visible } from "/parts/payload.js";
import { Time } from "/parts/time.js";
import { Timeline } from "/parts/timeline.js";

const EVERY_MS = 2000;

// What may be done in which status; the server has the last word.
const actions = [
    { name: "Run now", when: ["scheduled"], method: "POST", verb: "run", said: "is available now." },
    { name: "Pause", when: ["scheduled", "available", "waiting"], method: "POST", verb: "pause", said: "is paused." },
    { name: "Resume", when: ["paused"], method: "POST", verb: "resume", said: "goes on." },
    { name: "Cancel", when: ["scheduled", "available", "running", "paused", "waiting"], method: "DELETE", danger: true, said: "",
        question: (job) => (job.status === "running" ? "Its worker is told at its next heartbeat; what it has done by then stays done." : "It will not run.") },
    { name: "Replay", when: ["dead"], method: "POST", route: "/dead/replay", said: "is put back into its queue, as a first attempt." },
];

async function perform(action, job, done)
{
    const id = String(job.id);

    if (action.question && !await ask({ title: `${action.name} job ${id}?`, text: action.question(job), action: action.name + " the job", danger: true })) {
        return;
    }
    const route = action.route || path("jobs", id, ...(action.verb ? [action.verb] : []));
    await act(action.method, route, action.route ? { id: job.id } : undefined,
        (answer) => `Job ${id} ` + (action.said || (answer.status === "cancelled" ? "is cancelled." : `is ${answer.status}; it will be cancelled.`)));
    done();
}

const job_link = (id) => html`<a class="id" href=${link("jobs", String(id))}>${String(id)}</a>`;
const job_links = (ids) => (ids?.length ? ids.slice(0, 20).map((id) => html`${job_link(id)} `) : null);

function About({ job })
{
    return html`<section class="panel"><h2>About</h2><${Facts} facts=${[
        ["Queue", html`<a href=${link("queues", job.queue)}>${visible(job.queue)}</a>`],
        ["Kind", visible(job.kind)],
        ["Priority", String(job.priority)],
        ["Attempt", `${job.attempt} of ${job.max_attempts}`],
        ["Tenant", job.tenant && visible(job.tenant)],
        ["Ref", job.ref && visible(job.ref)],
        ["Ordering key", job.ordering_key && visible(job.ordering_key)],
        ["Source", job.source && visible(job.source)],
        ["Worker", job.worker && visible(job.worker)],
        ["Created", html`<${Time} at=${job.created_at} />`],
        ["Due", job.status === "scheduled" && html`<${Time} at=${job.run_at} />`],
        ["Batch", job.batch && html`<a href=${link("batches", String(job.batch))}>${String(job.batch)}</a>`],
        ["Needs", job_links(job.needs)],
        ["Needed by", job_links(job.needed_by)],
        ["Waits for", job.waits_for && job_link(job.waits_for)],
        ["Reason", job.reason && visible(job.reason)],
    ].filter(([, value]) => value !== false)} /></section>`;
}

function Progress({ job })
{
    return job.progress === undefined ? null : html`<section class="panel"><h2>Progress</h2>
        <div><progress max="100" value=${job.progress} aria-label="Progress"></progress> <b>${job.progress} %</b>${" "}
            <span class="muted"><${Time} at=${job.progress_at} /></span><br />${job.progress_note && visible(job.progress_note)}</div></section>`;
}

export function Job({ id })
{
    const story = useLoad(id, (signal) => get(path("jobs", id), null, { signal, exact: true }), EVERY_MS);

    return html`<div class="head"><h1><a href="#/jobs" class="muted">Jobs</a> / ${visible(id)}</h1></div>
        <${Loaded} from=${story} show=${(job) => html`
            <p class="health"><${Badge} word=${job.status} />${job.cancel_requested && html` <b>to be cancelled</b>`}
                ${job.error && html` <span class="bad-text">${visible(job.error)}</span>`}</p>
            <div class="actions">${actions.filter((action) => action.when.includes(job.status)).map((action) => html`
                <button key=${action.name} type="button" class=${action.danger ? "danger" : ""} onClick=${() => perform(action, job, story.reload)}>${action.name}</button>`)}</div>
            <div class="pair"><div><${Progress} job=${job} /><section class="panel"><h2>Story</h2><${Timeline} job=${job} /></section></div><${About} job=${job} /></div>
            ${job.result !== undefined && html`<${Payload} title="Result" value=${job.result} />`}
            <${Payload} title="Args" value=${job.args ?? null} />
            ${job.meta !== undefined && html`<${Payload} title="Meta" value=${job.meta} />`}
            ${job.state && html`<${Part} title="State" part=${job.state} />`}
            ${job.blob && html`<${Part} title="Blob" part=${job.blob} />`}`} />`;
}
