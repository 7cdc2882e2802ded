// SPDX-License-Identifier: PostgreSQL
//
// A table of rows. columns: [{name, show(row), number, wide}]; wide ones give way on a phone.

import { html } from "/core/html.js";

const look = (column) => [column.number && "number", column.wide && "wide", column.look].filter(Boolean).join(" ");

export function Table({ caption, columns, rows, id, none })
{
    return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0"><table>
        <caption class="unseen">${caption}</caption>
        <thead><tr>${columns.map((column) => html`<th key=${column.name} scope="col" class=${look(column)}>${column.head || column.name}</th>`)}</tr></thead>
        <tbody>
            ${rows.map((row, i) => html`<tr key=${id ? id(row) : i}>
                ${columns.map((column, at) => (at === 0 && !column.plain
                    ? html`<th key=${column.name} scope="row" class=${look(column)}>${column.show(row)}</th>`
                    : html`<td key=${column.name} class=${look(column)}>${column.show(row)}</td>`))}
            </tr>`)}
            ${rows.length === 0 && html`<tr><td class="muted" colspan=${columns.length}>${none || "None."}</td></tr>`}
        </tbody>
    </table></div>`;
}
