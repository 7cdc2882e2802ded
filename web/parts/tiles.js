// SPDX-License-Identifier: PostgreSQL
//
// Figures in a row. tiles: [{name, value, href, tone, title}].

import { html } from "/core/html.js";

export function Tiles({ tiles })
{
    return html`<dl class="tiles">
        ${tiles.map((tile) => html`<div key=${tile.name} class=${"tile panel " + (tile.tone || "")} title=${tile.title}>
            <dt>${tile.href ? html`<a href=${tile.href}>${tile.name}</a>` : tile.name}</dt>
            <dd>${tile.value}</dd>
        </div>`)}
    </dl>`;
}

// Facts as a list of names and values; what is null is left out.
export function Facts({ facts })
{
    return html`<dl class="facts">
        ${facts.filter(([, value]) => value !== null && value !== undefined && value !== "").map(([name, value]) => html`<div key=${name}><dt>${name}</dt><dd>${value}</dd></div>`)}
    </dl>`;
}
