// SPDX-License-Identifier: PostgreSQL
//
// The filters of a list, kept in the address. fields: [{name, label, options, list, number}].
// What is typed counts when it is sent, what is chosen at once.

import { html, useState } from "/core/html.js";
import { change_query } from "/core/route.js";
import { useStore } from "/core/store.js";

function Field({ field, value, change })
{
    const id = "filter-" + field.name;
    const on_change = (event) => change(field.name, event.target.value, Boolean(field.options));

    return html`<div class="field"><label for=${id}>${field.label}</label>
        ${field.options
            ? html`<select id=${id} value=${value} onChange=${on_change}>
                <option value="">any</option>${field.options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}
            </select>`
            : html`<input id=${id} value=${value} onInput=${on_change} list=${field.list} inputmode=${field.number ? "numeric" : undefined}
                pattern=${field.number ? "[0-9]*" : undefined} autocomplete="off" spellcheck="false" maxlength="2000" />`}
    </div>`;
}

export function KnownQueues()
{
    const overview = useStore((state) => state.overview);

    return html`<datalist id="known-queues">${(overview?.queues || []).map((queue) => html`<option key=${queue.queue} value=${queue.queue} />`)}</datalist>`;
}

function Form({ route, fields })
{
    const [form, set_form] = useState(chosen(route.query, fields));
    const apply = (values) => change_query(route, Object.fromEntries(Object.entries(values).map(([name, value]) => [name, value.trim()])));
    const change = (name, value, at_once) => {
        set_form({ ...form, [name]: value });
        if (at_once) {
            apply({ ...form, [name]: value });
        }
    };

    return html`<form class="filters panel" role="search" onSubmit=${(event) => { event.preventDefault(); apply(form); }}>
        ${fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${form[field.name] || ""} change=${change} />`)}
        <div class="field buttons"><button type="submit" class="primary">Search</button>
            <button type="button" onClick=${() => change_query(route, {})}>Clear</button></div>
        <${KnownQueues} />
    </form>`;
}

// Begins anew when the address does.
export function Filters({ route, fields })
{
    return html`<${Form} key=${route.text} route=${route} fields=${fields} />`;
}

// Of a query, what is a filter.
export function chosen(query, fields)
{
    return Object.fromEntries(fields.map((field) => [field.name, query[field.name]]).filter(([, value]) => value));
}
