// SPDX-License-Identifier: PostgreSQL
//
// A table of rows. columns: [{name, show(row), number, wide, plain}]; wide ones give way on a phone, a
// plain first one is not the name of its row. stack: on a phone a row is a list of its cells. Roles are
// spelled out, because browsers forget what a table is when its rows are laid out as something else.

import { html } from "/core/html.js";

const look = (column) => [column.number && "number", column.wide && "wide", column.look].filter(Boolean).join(" ");

function Cell({ column, row, named, stack })
{
    const name = column.head ? undefined : column.name;
    const value = stack ? html`<div class="value">${column.show(row)}</div>` : column.show(row);

    return named
        ? html`<th scope="row" role="rowheader" data-name=${name} class=${look(column)}>${value}</th>`
        : html`<td role="cell" data-name=${name} class=${look(column)}>${value}</td>`;
}

export function Table({ caption, columns, rows, id, none, stack })
{
    return html`<div class="scroll" role="region" aria-label=${caption} tabindex="0"><table role="table" aria-label=${caption} class=${stack ? "stack" : ""}>
        <thead role="rowgroup"><tr role="row">${columns.map((column) => html`<th key=${column.name} scope="col" role="columnheader" class=${look(column)}>${column.head || column.name}</th>`)}</tr></thead>
        <tbody role="rowgroup">
            ${rows.map((row, i) => html`<tr role="row" key=${id ? id(row) : i}>
                ${columns.map((column, at) => html`<${Cell} key=${column.name} column=${column} row=${row} named=${at === 0 && !column.plain} stack=${stack} />`)}
            </tr>`)}
            ${rows.length === 0 && html`<tr role="row"><td role="cell" class="muted" colspan=${columns.length}>${none || "None."}</td></tr>`}
        </tbody>
    </table></div>`;
}
