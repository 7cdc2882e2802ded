// SPDX-License-Identifier: PostgreSQL
//
// Schedules: when each fires next, and what it made last. They are made, changed and removed here, too.

import { html, useState } from "/core/html.js";
import { ask, now_ms } from "/core/store.js";
import { act, get, path } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { link } from "/core/route.js";
import { exact, relative } from "/core/format.js";
import { Badge } from "/parts/badge.js";
import { Loaded } from "/parts/trouble.js";
import { ScheduleForm } from "/parts/schedule_form.js";
import { Table } from "/parts/table.js";
import { Time } from "/parts/time.js";
import { visible } from "/parts/payload.js";

const EVERY_MS = 10000;

async function run({ name, shard }, done)
{
    await act("POST", path("schedules", name, "run"), undefined, (answer) => `${visible(name)} has enqueued job ${answer.id}.`, { shard });
    done();
}

async function set_active({ name, shard }, active, done)
{
    await act("POST", path("schedules", name, active ? "enable" : "disable"), undefined, () => `${visible(name)} is ${active ? "on" : "off"}.`, { shard });
    done();
}

async function remove({ name, shard }, done)
{
    const sure = await ask({
        title: `Remove ${visible(name)}?`, danger: true, action: "Remove the schedule",
        text: `This removes the schedule ${visible(name)} for good. Jobs that it has enqueued stay. To stop it for a while, disable it.`,
    });

    if (sure) {
        await act("DELETE", path("schedules", name), undefined, () => `${visible(name)} is gone.`, { shard });
        done();
    }
}

function Next({ times })
{
    return times.length === 0 ? html`<span class="muted">never</span>` : html`<${Time} at=${times[0]} />
        ${times.length > 1 && html`<small class="muted wide"><br />${times.slice(1).map((at, i) => html`${i > 0 && ", "}<span title=${exact(Date.parse(at))}>${relative(Date.parse(at), now_ms())}</span>`)}</small>`}`;
}

const columns = (done, edit) => [
    { name: "Schedule", show: (s) => visible(s.name) },
    { name: "State", show: (s) => html`<${Badge} word=${s.active ? "active" : "off"} />` },
    { name: "Cron", show: (s) => html`<code>${s.cron}</code> <small class="muted">${s.timezone}</small>` },
    { name: "Job", wide: true, show: (s) => html`${visible(s.kind)} <span class="muted">in</span> <a class="inline" href=${link("queues", s.queue)}>${visible(s.queue)}</a>` },
    { name: "Next", number: true, show: (s) => html`<${Next} times=${s.next || []} />` },
    { name: "Last", number: true, wide: true, show: (s) => html`<${Time} at=${s.last_at} />${s.last_job_id && html` <a class="id" href=${link("jobs", String(s.last_job_id))}>${String(s.last_job_id)}</a>`}
        ${s.last_error && html`<br /><span class="bad-text">${visible(s.last_error)}</span>`}` },
    { name: "Do", head: html`<span class="unseen">Actions</span>`, show: (s) => html`<span class="row-actions">
        <button type="button" aria-label=${"Run now: " + visible(s.name)} onClick=${() => run(s, done)}>Run now</button>
        <button type="button" aria-label=${(s.active ? "Disable: " : "Enable: ") + visible(s.name)} onClick=${() => set_active(s, !s.active, done)}>${s.active ? "Disable" : "Enable"}</button>
        <button type="button" aria-label=${"Edit: " + visible(s.name)} onClick=${() => edit(s.name)}>Edit</button>
        <button type="button" class="danger" aria-label=${"Remove: " + visible(s.name)} onClick=${() => remove(s, done)}>Remove</button></span>` },
];

export function Schedules()
{
    const list = useLoad("", (signal) => get("/schedules", null, { signal }), EVERY_MS);

    const [editing, set_editing] = useState(undefined); // undefined: nothing, null: a new one, or a name
    const close = () => set_editing(undefined);

    return html`<div class="head"><h1>Schedules</h1>
            <button type="button" class="primary" aria-expanded=${editing === null ? "true" : "false"} onClick=${() => set_editing(editing === null ? undefined : null)}>New schedule</button></div>
        ${editing !== undefined && html`<${ScheduleForm} key=${"edit|" + editing} name=${editing} close=${close} done=${() => { close(); list.reload(); }} />`}
        <${Loaded} from=${list} show=${(data) => html`<${Table} stack caption="Schedules" rows=${data.schedules} id=${(s) => [s.shard, s.name].join()} columns=${columns(list.reload, set_editing)}
            none="No schedule yet." />`} />`;
}
