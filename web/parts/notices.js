// SPDX-License-Identifier: PostgreSQL
//
// What became of an action, in a corner.

import { html } from "/core/html.js";
import { dismiss, useStore } from "/core/store.js";

export function Notices()
{
    const notices = useStore((state) => state.notices);

    return html`<div class="notices" role="status" aria-live="polite">
        ${notices.map((notice) => html`<div key=${notice.id} class=${"notice " + notice.kind}>
            <p><strong>${notice.text}</strong>${notice.hint && html`<br />${notice.hint}`}</p>
            <button type="button" class="plain" aria-label="Dismiss" onClick=${() => dismiss(notice.id)}>×</button>
        </div>`)}
    </div>`;
}
