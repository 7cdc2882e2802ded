// SPDX-License-Identifier: PostgreSQL
//
// A schedule as a form, a new one or one that is there. While it is filled in, the server says when its
// expression would fire, or what is wrong with it; what it refuses stays in the form with the reason.

import { html, useEffect, useRef, useState } from "/core/html.js";
import { get, path, request } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { notify } from "/core/store.js";
import { KnownQueues } from "/parts/filters.js";
import { Loaded, Trouble } from "/parts/trouble.js";
import { Time } from "/parts/time.js";
import { exact } from "/core/format.js";
import { pretty, visible } from "/parts/payload.js";

const TYPING_MS = 300;
const fresh = { name: "", cron: "0 2 * * *", timezone: "UTC", kind: "", args: {}, queue: "default", priority: 50, catch_up: "last", active: true };

const fields = [
    { name: "name", label: "Name", required: true, says: "what it is called; it cannot be changed later" },
    { name: "cron", label: "Cron", required: true, says: "minute, hour, day of the month, month, day of the week; with six fields the second first; or @hourly, @daily ..." },
    { name: "timezone", label: "Time zone", list: "known-zones", says: "whose clock is meant" },
    { name: "kind", label: "Kind", required: true, says: "of the job that it enqueues" },
    { name: "queue", label: "Queue", list: "known-queues", says: "where the job goes; one that is not there is made" },
    { name: "priority", label: "Priority", number: true, says: "0 to 99, lower runs first" },
    { name: "catch_up", label: "Catch up", options: ["none", "last", "all"], says: "what was missed while nobody looked: nothing, one job for all, a job for each" },
    { name: "active", label: "Active", options: ["true", "false"], says: "one that is not waits until it is enabled" },
];

// The value a while after it was typed last.
function useSettled(value)
{
    const [settled, set_settled] = useState(value);

    useEffect(() => {
        const timer = setTimeout(() => set_settled(value), TYPING_MS);
        return () => clearTimeout(timer);
    }, [value]);
    return settled;
}

// When the expression would fire, as the server says.
function Preview({ cron, timezone })
{
    const [expression, zone] = JSON.parse(useSettled(JSON.stringify([cron, timezone])));
    const times = useLoad(JSON.stringify([expression, zone]), (signal) => get("/cron/next", { cron: expression, timezone: zone }, { signal }));

    return html`<div class="preview" role="status" aria-label="Next times">
        <h3>Would run</h3>
        ${expression.trim() === "" ? html`<p class="muted">An expression says when.</p>` : html`<${Loaded} from=${times} show=${(data) => html`
            <ol>${data.next.map((at) => html`<li key=${at}>${exact(Date.parse(at))} <span class="muted"><${Time} at=${at} /></span></li>`)}</ol>`} />`}
    </div>`;
}

function Field({ field, value, change, fixed })
{
    const id = "schedule-" + field.name;
    const on_change = (event) => change(field.name, event.target.value);

    return html`<div class="field"><label for=${id}>${field.label}</label>
        ${field.options
            ? html`<select id=${id} value=${value} onChange=${on_change} aria-describedby=${id + "-says"}>
                ${field.options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}</select>`
            : html`<input id=${id} value=${value} onInput=${on_change} list=${field.list} required=${field.required} disabled=${fixed}
                inputmode=${field.number ? "numeric" : undefined} autocomplete="off" spellcheck="false" aria-describedby=${id + "-says"} />`}
        <small id=${id + "-says"} class="muted">${field.says}</small>
    </div>`;
}

function Zones()
{
    return html`<datalist id="known-zones">${["UTC", ...Intl.supportedValuesOf("timeZone")].map((zone) => html`<option key=${zone} value=${zone} />`)}</datalist>`;
}

// The body of the request. args go as they were typed: a number that a double cannot hold stays what it is.
function body_of(form)
{
    const { name, args, priority, active, ...rest } = form;
    const json = args.trim() === "" ? "{}" : args;
    const number = priority.trim() === "" ? {} : { priority: /^-?[0-9]+$/.test(priority.trim()) ? Number(priority) : priority };
    const others = Object.fromEntries(Object.entries(rest).map(([key, value]) => [key, value.trim()]).filter(([, value]) => value !== ""));

    JSON.parse(json);
    return JSON.stringify({ ...others, ...number, active: active === "true" }).replace(/}$/, () => `,"args":${json}}`);
}

function Form({ schedule, is_new, done, close })
{
    const [form, set_form] = useState({ ...Object.fromEntries(fields.map((field) => [field.name, String(schedule[field.name])])), args: pretty(schedule.args) });
    const [error, set_error] = useState(null);
    const [busy, set_busy] = useState(false);
    const first = useRef(null);
    const change = (name, value) => set_form({ ...form, [name]: value });
    const save = async (event) => {
        event.preventDefault();
        let body;
        try {
            body = body_of(form);
        } catch (fault) {
            set_error({ message: "args are not JSON: " + fault.message, hint: 'Write an object such as {"day": 1}.' });
            return;
        }
        set_busy(true);
        try {
            await request("PUT", path("schedules", form.name), { body });
            notify("good", `${visible(form.name)} is ${is_new ? "made" : "changed"}.`);
            done();
        } catch (fault) {
            set_error(fault);
            set_busy(false);
        }
    };

    useEffect(() => first.current.querySelector("input:not(:disabled)").focus(), []);
    return html`<form ref=${first} class="panel settings" onSubmit=${save} aria-label=${is_new ? "New schedule" : "Schedule " + visible(schedule.name)}>
        <h2>${is_new ? "New schedule" : visible(schedule.name)}</h2>
        <${Trouble} error=${error} />
        <div class="fields">${fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${form[field.name]} change=${change} fixed=${!is_new && field.name === "name"} />`)}
            <div class="field all"><label for="schedule-args">Args</label>
                <textarea id="schedule-args" rows="4" value=${form.args} onInput=${(event) => change("args", event.target.value)} spellcheck="false" aria-describedby="schedule-args-says"></textarea>
                <small id="schedule-args-says" class="muted">JSON, the same for each of its jobs</small></div></div>
        <${Preview} cron=${form.cron} timezone=${form.timezone} />
        <div class="actions"><button type="submit" class="primary" disabled=${busy}>${is_new ? "Make the schedule" : "Save"}</button>
            <button type="button" onClick=${close}>Cancel</button></div>
        <${KnownQueues} /><${Zones} />
    </form>`;
}

// name: null for a new one. done: it was saved; close: it was not.
export function ScheduleForm({ name, done, close })
{
    const loaded = useLoad("schedule|" + name, (signal) => (name === null ? fresh : get(path("schedules", name), null, { signal, exact: true })));

    return html`<${Loaded} from=${loaded} show=${(schedule) => html`<${Form} key=${"form|" + name} schedule=${schedule} is_new=${name === null} done=${done} close=${close} />`} />`;
}
