// SPDX-License-Identifier: PostgreSQL
//
// The settings of a queue as a form. Only what was changed is sent; an empty field is the default. saved: its promise is kept when the page has what was
// set; close: the form is left.

import { html, useState } from "/core/html.js";
import { request, path } from "/core/api.js";
import { notify } from "/core/store.js";
import { Trouble } from "/parts/trouble.js";
import { visible } from "/parts/payload.js";

const says = {
    lease: "how long a claim holds its jobs without a heartbeat", parts: "lanes per priority",
    max_attempts: "attempts before a job becomes a dead letter", poison_limit: "workers a job may lose in a row",
    retention: "how long finished jobs are kept", dead_retention: "how long dead letters are kept", dead_max: "dead letters kept at most",
    dead_max_bytes: "bytes of dead letters kept at most", max_args: "bytes of the largest args", max_state: "bytes of the largest state",
    max_blob: "bytes of the largest blob", warn_depth: "waiting jobs from which the queue is WARNING",
    critical_depth: "waiting jobs from which it is CRITICAL", durability: "strict or relaxed", depth_limit: "refuse jobs above this depth",
    overflow: "the queue that takes what depth_limit refuses", concurrency: "jobs running at once", rate: "jobs started per time, as 100/s",
    ordered: "one job at a time per ordering key", on_failure: "hold or skip", fair: "serve tenants in turn",
    route: "the queue that takes jobs of some tenants", route_share: "percent of the tenants whose jobs go to route",
    route_tenants: "tenants whose jobs go to route, as a,b,c", transport: "direct, or redis by way of a relay",
    compress: "compress payload parts of more bytes than this",
    offload: "payload parts of more bytes than this go to the blob store",
    offload_delay: "payloads of jobs delayed for longer wait in the blob store", offload_dead: "payloads of dead letters are moved to the blob store",
};

const shown = (value) => (value === null ? "" : String(value));

// What differs, as the API wants it: null for the default, true and false and numbers as such.
export function changed(settings, form)
{
    const changes = {};

    for (const [name, text] of Object.entries(form)) {
        if (text.trim() !== shown(settings[name])) {
            const number = typeof settings[name] === "number" || /^-?[0-9]+$/.test(text.trim());
            changes[name] = text.trim() === "" ? null : typeof settings[name] === "boolean" ? text.trim() === "true"
                : number && Number.isSafeInteger(Number(text)) ? Number(text) : text.trim();
        }
    }
    return changes;
}

function Setting({ name, value, form, set_form })
{
    const id = "setting-" + name;
    const change = (event) => set_form({ ...form, [name]: event.target.value });

    return html`<div class="field"><label for=${id}>${name}</label>
        ${typeof value === "boolean"
            ? html`<select id=${id} value=${form[name]} onChange=${change} aria-describedby=${id + "-says"}><option value="false">false</option><option value="true">true</option></select>`
            : html`<input id=${id} value=${form[name]} placeholder=${value === null ? "off" : "default"} onInput=${change} autocomplete="off" spellcheck="false" aria-describedby=${id + "-says"} />`}
        <small id=${id + "-says"} class="muted">${says[name] || ""}</small>
    </div>`;
}

export function Settings({ queue, settings, saved, close })
{
    const [before] = useState(settings);
    const [form, set_form] = useState(Object.fromEntries(Object.entries(settings).map(([name, value]) => [name, shown(value)])));
    const [error, set_error] = useState(null);
    const changes = changed(before, form);
    const names = Object.keys(changes).sort();
    const save = async (event) => {
        event.preventDefault();
        try {
            await request("PATCH", path("queues", queue), { body: { settings: changes } });
            await saved();
            notify("good", `${visible(queue)}: ${names.join(", ")} set.`);
            close();
        } catch (fault) {
            set_error(fault);
        }
    };

    return html`<form class="panel settings" onSubmit=${save} aria-label=${"Settings of " + visible(queue)}>
        <h2>Settings</h2>
        <${Trouble} error=${error} />
        <div class="fields">${Object.keys(before).sort().map((name) => html`<${Setting} key=${name} name=${name} value=${before[name]} form=${form} set_form=${set_form} />`)}</div>
        <div class="actions"><button type="submit" class="primary" disabled=${names.length === 0}>Save${names.length ? ` ${names.join(", ")}` : ""}</button>
            <button type="button" onClick=${close}>Cancel</button></div>
    </form>`;
}
