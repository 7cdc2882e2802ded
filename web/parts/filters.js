// SPDX-License-Identifier: PostgreSQL
//
// The filters of a list, kept in the address. fields: [{name, label, options, list, number}].

import { html } from "/core/html.js";
import { change_query } from "/core/route.js";
import { useStore } from "/core/store.js";

function Field({ field, value, apply })
{
    const id = "filter-" + field.name;

    return html`<div class="field"><label for=${id}>${field.label}</label>
        ${field.options
            ? html`<select id=${id} name=${field.name} value=${value} onChange=${apply}>
                <option value="">any</option>${field.options.map((option) => html`<option key=${option} value=${option}>${option}</option>`)}
            </select>`
            : html`<input id=${id} name=${field.name} value=${value} list=${field.list} inputmode=${field.number ? "numeric" : undefined}
                pattern=${field.number ? "[0-9]*" : undefined} autocomplete="off" spellcheck="false" maxlength="2000" />`}
    </div>`;
}

export function Filters({ route, fields })
{
    const overview = useStore((state) => state.overview);
    const apply = (event) => {
        event.preventDefault();
        const form = event.target.form || event.target;
        if (form.reportValidity()) {
            change_query(route, Object.fromEntries([...new FormData(form)].map(([name, value]) => [name, value.trim()])));
        }
    };

    return html`<form key=${route.text} class="filters panel" role="search" onSubmit=${apply}>
        ${fields.map((field) => html`<${Field} key=${field.name} field=${field} value=${route.query[field.name] || ""} apply=${apply} />`)}
        <div class="field buttons"><button type="submit" class="primary">Search</button>
            <button type="button" onClick=${() => change_query(route, {})}>Clear</button></div>
        <datalist id="known-queues">${(overview?.queues || []).map((queue) => html`<option key=${queue.queue} value=${queue.queue} />`)}</datalist>
    </form>`;
}

// Of a query, what is a filter.
export function chosen(query, fields)
{
    return Object.fromEntries(fields.map((field) => [field.name, query[field.name]]).filter(([, value]) => value));
}
