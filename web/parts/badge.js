// SPDX-License-Identifier: PostgreSQL
//
// A word with a colour: the status of a job, a queue, a batch, a check. The word alone says it.

import { html } from "/core/html.js";

const tones = {
    OK: "good", WARNING: "warn", CRITICAL: "bad",
    moved: "calm", scheduled: "calm", paused: "warn", waiting: "calm", available: "info", running: "live", completed: "good",
    cancelled: "calm", expired: "warn", dead: "bad", failed: "bad", lost: "bad", released: "calm", requeued: "calm",
    open: "info", closed: "calm", sealed: "calm", leaving: "calm",
    ok: "good", note: "calm", warning: "warn", critical: "bad",
    active: "good", off: "calm", joining: "calm", draining: "warn", down: "bad",
};

export function Badge({ word })
{
    return html`<span class=${"badge " + (tones[word] || "calm")}>${word}</span>`;
}
