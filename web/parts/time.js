// SPDX-License-Identifier: PostgreSQL
//
// A time: how long ago, and exactly when on hover.

import { html } from "/core/html.js";
import { now_ms, useTick } from "/core/store.js";
import { exact, relative, NONE } from "/core/format.js";

export function Time({ at })
{
    useTick();
    if (!at) {
        return html`<span class="muted">${NONE}</span>`;
    }
    const ms = Date.parse(at);
    return html`<time datetime=${at} title=${exact(ms)}>${relative(ms, now_ms())}</time>`;
}
