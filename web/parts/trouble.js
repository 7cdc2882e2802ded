// SPDX-License-Identifier: PostgreSQL
//
// What a page shows while it has nothing to show yet, or cannot have it.

import { html } from "/core/html.js";

export function Trouble({ error })
{
    if (!error) {
        return null;
    }
    const lead = error.status === 403 ? "Not allowed: " : "";
    return html`<div class="trouble" role="alert"><strong>${lead}${error.message}</strong>${error.hint && html` <span>${error.hint}</span>`}</div>`;
}

// Around a page's content: `show` draws it from the data.
export function Loaded({ from, show })
{
    return html`<div class="loaded">
        <${Trouble} error=${from.error} />
        ${from.data ? show(from.data) : from.loading && html`<p class="muted" role="status">Loading …</p>`}
    </div>`;
}
