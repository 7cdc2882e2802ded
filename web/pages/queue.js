// SPDX-License-Identifier: PostgreSQL
//
// One queue: how it stands, its lanes and workers, what waits longest, its settings.

import { html, useState } from "/core/html.js";
import { ask, useStore } from "/core/store.js";
import { act, get, path } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { link } from "/core/route.js";
import { compact, count, duration, many, rate } from "/core/format.js";
import { rates_now } from "/core/samples.js";
import { Badge } from "/parts/badge.js";
import { Charts, Ranges } from "/parts/charts.js";
import { JobTable } from "/parts/job_table.js";
import { Loaded } from "/parts/trouble.js";
import { Settings } from "/parts/settings.js";
import { Table } from "/parts/table.js";
import { Tiles } from "/parts/tiles.js";
import { Time } from "/parts/time.js";
import { visible } from "/parts/payload.js";

const EVERY_MS = 5000;

async function purge(name, stats, done)
{
    const sure = await ask({
        title: `Purge ${visible(name)}?`, danger: true, action: "Remove them",
        text: `This removes ${many(stats.available + stats.scheduled, "waiting job")} of ${visible(name)} for good: available ones and scheduled ones. ` +
            "What runs goes on, and dead letters stay.",
    });

    if (sure) {
        await act("POST", path("queues", name, "purge"), undefined, (answer) => `${many(answer.purged, "job")} removed from ${visible(name)}.`);
        done();
    }
}

async function set_paused(name, paused, done)
{
    await act("PATCH", path("queues", name), { paused }, () => `${visible(name)} ${paused ? "is paused: no job of it is claimed." : "goes on."}`);
    done();
}

async function drop(name)
{
    const sure = await ask({
        title: `Drop ${visible(name)}?`, danger: true, action: "Drop the queue",
        text: `This removes the queue ${visible(name)} and its settings for good. It has to be empty.`,
    });

    if (sure && await act("DELETE", path("queues", name), undefined, () => `${visible(name)} is gone.`)) {
        location.hash = "#/queues";
    }
}

function Figures({ name, stats })
{
    const now = rates_now(name);

    return html`<${Tiles} tiles=${[
        { name: "Available", value: compact(stats.available), title: count(stats.available), href: link("jobs", { queue: name, status: "available" }) },
        { name: "Running", value: compact(stats.running), title: count(stats.running), href: link("jobs", { queue: name, status: "running" }) },
        { name: "Scheduled", value: compact(stats.scheduled), title: count(stats.scheduled), href: link("jobs", { queue: name, status: "scheduled" }) },
        { name: "Dead letters", value: compact(stats.dead), title: count(stats.dead), href: link("dead", { queue: name }), tone: stats.dead > 0 ? "bad" : "" },
        { name: "Oldest waits", value: duration(stats.oldest_seconds) },
        { name: "In", value: rate(now.enqueued) },
        { name: "Out", value: rate(now.completed) },
        { name: "Wait p95", value: duration(stats.wait?.p95) },
        { name: "Run p95", value: duration(stats.run?.p95) },
    ]} />`;
}

function Lanes({ lanes })
{
    return html`<section><h2>Lanes</h2><${Table} caption="Lanes" rows=${lanes} id=${(lane) => [lane.shard, lane.lane].join()} none="No lane yet." columns=${[
        { name: "Priority", show: (lane) => lane.priority },
        { name: "Part", number: true, show: (lane) => lane.part },
        { name: "Available", number: true, show: (lane) => count(lane.available) },
        { name: "Running", number: true, show: (lane) => count(lane.running) },
        { name: "Oldest", number: true, show: (lane) => duration(lane.oldest_seconds) },
    ]} /></section>`;
}

function Workers({ workers })
{
    return html`<section><h2>Workers</h2><${Table} caption="Workers" rows=${workers} id=${(worker) => [worker.shard, worker.worker].join()} none="Nobody works on this queue." columns=${[
        { name: "Worker", show: (worker) => visible(worker.worker) },
        { name: "Running", number: true, show: (worker) => count(worker.jobs_running) },
        { name: "Last claim", number: true, show: (worker) => html`<${Time} at=${worker.last_claim_at} />` },
        { name: "Lease until", number: true, wide: true, show: (worker) => html`<${Time} at=${worker.lease_until} />` },
    ]} /></section>`;
}

export function Queue({ id })
{
    const story = useLoad(id, (signal) => get(path("queues", id), null, { signal }), EVERY_MS);
    const live = useStore((state) => state.overview?.queues.find((queue) => queue.queue === id));
    const [editing, set_editing] = useState(false);

    return html`
        <div class="head">
            <h1><a href="#/queues" class="muted">Queues</a> / ${visible(id)}</h1><${Ranges} />
        </div>
        <${Loaded} from=${story} show=${(queue) => {
            const stats = live || queue.stats;
            return html`
                <p class="health"><${Badge} word=${stats.status} />${queue.paused && html` <${Badge} word="paused" />`} ${stats.message}</p>
                <div class="actions">
                    ${queue.paused
                        ? html`<button type="button" class="primary" onClick=${() => set_paused(id, false, story.reload)}>Resume</button>`
                        : html`<button type="button" onClick=${() => set_paused(id, true, story.reload)}>Pause</button>`}
                    <button type="button" onClick=${() => set_editing(!editing)} aria-expanded=${editing ? "true" : "false"}>Edit settings</button>
                    <a class="button" href=${link("jobs", { queue: id })}>Jobs</a>
                    <button type="button" class="danger" onClick=${() => purge(id, stats, story.reload)}>Purge</button>
                    <button type="button" class="danger" onClick=${() => drop(id)}>Drop</button>
                </div>
                ${editing && html`<${Settings} queue=${id} settings=${queue.settings} saved=${story.reload} close=${() => set_editing(false)} />`}
                <${Figures} name=${id} stats=${stats} />
                <${Charts} queue=${id} />
                <div class="pair"><${Lanes} lanes=${queue.lanes} /><${Workers} workers=${queue.workers} /></div>
                <section><h2>Oldest that wait</h2><${JobTable} caption="Oldest jobs" jobs=${queue.oldest} without=${["Queue", "Worker"]} none="Nothing waits." /></section>
                ${!editing && html`<section><h2>Settings</h2><${SettingList} settings=${queue.settings} /></section>`}`;
        }} />`;
}

function SettingList({ settings })
{
    return html`<dl class="facts panel">${Object.entries(settings).sort().map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value === null ? html`<span class="muted">off</span>` : String(value)}</dd></div>`)}</dl>`;
}
