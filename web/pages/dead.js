// SPDX-License-Identifier: PostgreSQL
//
// Dead letters: by what went wrong, and one by one; back into their queues, or away.

import { html, useState } from "/core/html.js";
import { ask, notify, useStore } from "/core/store.js";
import { act, get } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { change_query, link } from "/core/route.js";
import { count, cut, many } from "/core/format.js";
import { Filters, chosen } from "/parts/filters.js";
import { Loaded } from "/parts/trouble.js";
import { Table } from "/parts/table.js";
import { Time } from "/parts/time.js";
import { none_of, usePages } from "/parts/pager.js";
import { visible } from "/parts/payload.js";

const EVERY_MS = 10000;
const SHAPE_LENGTH = 200;

const fields = [
    { name: "queue", label: "Queue", list: "known-queues" },
    { name: "kind", label: "Kind" },
    { name: "error", label: "Error contains" },
    { name: "cause", label: "Cause" },
];

const ages = [["all", "all of them"], ["86400", "those older than a day"], ["604800", "those older than a week"]];

// A group's error has # for what differs: as a pattern of LIKE.
export function pattern_of(shape)
{
    return shape.replace(/[\\%_]/g, "\\$&").replaceAll("#", "%") + (shape.length >= SHAPE_LENGTH ? "%" : "");
}

// The longest part of it that is the same in all.
export function common_part(shape)
{
    return shape.split("#").reduce((best, part) => (part.length > best.length ? part : best), "");
}

async function replay_group(group, done)
{
    const sure = await ask({
        title: `Replay ${many(group.jobs, "dead letter")}?`, action: "Replay them",
        text: `This puts ${many(group.jobs, "dead letter")} of ${visible(group.queue)} back into the queue, each as a first attempt with its history kept: ` +
            `kind ${visible(group.kind)}, error “${visible(group.error || "")}”.`,
    });

    if (sure) {
        await act("POST", "/dead/replay", { queue: group.queue, kind: group.kind, ...(group.error ? { error_like: pattern_of(group.error) } : {}) },
            (answer) => `${many(answer.replayed, "dead letter")} put back into ${visible(group.queue)}.`, { shard: group.shard });
        done();
    }
}

async function purge(queue, n, done)
{
    const age = await ask({
        title: `Purge the dead letters of ${visible(queue)}?`, danger: true, action: "Remove them", legend: "Which", options: ages,
        text: (choice) => (choice === "all" ? `This removes ${n === null ? "all dead letters" : many(n, "dead letter")} of ${visible(queue)} for good.`
            : `This removes the dead letters of ${visible(queue)} that are older than ${choice === "86400" ? "a day" : "a week"}, for good.`),
    });

    if (age) {
        await act("POST", "/dead/purge", { queue, ...(age === "all" ? {} : { older_than_s: Number(age) }) },
            (answer) => `${many(answer.purged, "dead letter")} of ${visible(queue)} removed.`);
        done();
    }
}

function Groups({ groups, route, done })
{
    return html`<${Table} stack caption="Dead letters by error" rows=${groups} id=${(group) => [group.shard, group.queue, group.kind, group.error].join("\n")} none="No dead letters." columns=${[
        { name: "Jobs", number: true, plain: true, show: (group) => count(group.jobs) },
        { name: "Error", look: "what", show: (group) => html`<span class="bad-text">${visible(cut(group.error || "(none)", 160))}</span>` },
        { name: "Queue", show: (group) => html`<a href=${link("queues", group.queue)}>${visible(group.queue)}</a>` },
        { name: "Kind", wide: true, show: (group) => visible(cut(group.kind, 60)) },
        { name: "Last", number: true, show: (group) => html`<${Time} at=${group.last_at} />` },
        { name: "Do", head: html`<span class="unseen">Actions</span>`, show: (group) => html`<span class="row-actions">
            <button type="button" onClick=${() => change_query(route, { queue: group.queue, kind: group.kind, error: common_part(group.error || "") })}>Show</button>
            <button type="button" onClick=${() => replay_group(group, done)}>Replay</button></span>` },
    ]} />`;
}

function Letters({ jobs, none, picked, set_picked })
{
    const all = jobs.length > 0 && jobs.every((job) => picked.has(job.id));
    const toggle = (ids, on) => {
        const next = new Set(picked);
        ids.forEach((id) => (on ? next.add(id) : next.delete(id)));
        set_picked(next);
    };

    return html`<${Table} caption="Dead letters" rows=${jobs} id=${(job) => job.id} none=${none} columns=${[
        { name: "Pick", plain: true, head: html`<input type="checkbox" aria-label="Select all on this page" checked=${all} onChange=${(event) => toggle(jobs.map((job) => job.id), event.target.checked)} />`,
            show: (job) => html`<input type="checkbox" aria-label=${"Select job " + job.id} checked=${picked.has(job.id)} onChange=${(event) => toggle([job.id], event.target.checked)} />` },
        { name: "Job", show: (job) => html`<a class="id" href=${link("jobs", String(job.id))}>${String(job.id)}</a>` },
        { name: "Error", look: "what", show: (job) => html`<span class="bad-text">${visible(cut(job.error || "", 160))}</span>` },
        { name: "Queue", wide: true, show: (job) => html`<a href=${link("queues", job.queue)}>${visible(job.queue)}</a>` },
        { name: "Kind", wide: true, show: (job) => visible(cut(job.kind, 60)) },
        { name: "Cause", wide: true, show: (job) => job.cause },
        { name: "Attempts", number: true, wide: true, show: (job) => String(job.attempt) },
        { name: "Died", number: true, show: (job) => html`<${Time} at=${job.died_at} />` },
    ]} />`;
}

export function Dead({ route })
{
    const filter = chosen(route.query, fields);
    const groups = useLoad("groups|" + (filter.queue || ""), (signal) => get("/dead/groups", { queue: filter.queue }, { signal }), EVERY_MS);
    const page = usePages("/dead", "jobs", filter, EVERY_MS);
    const [picked, set_picked] = useState(new Set());
    const known = useStore((state) => state.overview?.queues.find((queue) => queue.queue === filter.queue)?.dead ?? null);
    const done = () => {
        set_picked(new Set());
        groups.reload();
        page.reload();
    };
    const replay = async () => {
        await act("POST", "/dead/replay", { ids: [...picked] }, (answer) => `${many(answer.replayed, "dead letter")} put back.`);
        done();
    };
    const purge_queue = () => (filter.queue ? purge(filter.queue, known, done)
        : notify("bad", "Choose a queue first.", "Dead letters are purged queue by queue: fill in Queue above and search."));

    return html`
        <div class="head"><h1>Dead letters</h1></div>
        <section><h2>By error</h2><${Loaded} from=${groups} show=${(data) => html`
            <${Groups} groups=${data.groups} route=${route} done=${done} />
            ${!data.complete && html`<p class="muted">Of the newest 20,000.</p>`}`} /></section>
        <section><h2>One by one</h2>
            <${Filters} route=${route} fields=${fields} />
            <div class="actions"><button type="button" class="primary" disabled=${picked.size === 0} onClick=${replay}>Replay selected${picked.size ? ` (${picked.size})` : ""}</button>
                <button type="button" class="danger" onClick=${purge_queue}>Purge${filter.queue ? ` ${visible(filter.queue)}` : ""}</button></div>
            <${Loaded} from=${page} show=${(data) => html`<${Letters} jobs=${data.items} none=${none_of(data, "No dead letter is like that.")} picked=${picked} set_picked=${set_picked} />`} />
            ${page.pager}
        </section>`;
}
