// SPDX-License-Identifier: PostgreSQL
//
// What happened to a job, in order: attempts that the log still has, and the history of failures,
// which knows those of before, too.

import { html } from "/core/html.js";
import { duration } from "/core/format.js";
import { Badge } from "/parts/badge.js";
import { Time } from "/parts/time.js";
import { visible } from "/parts/payload.js";

const SAME_MS = 2000;
const ERROR_SHOWN = 4000;

// A failure of the history that is an attempt of the list.
function is_told(entry, attempts)
{
    return attempts.some((attempt) => attempt.attempt === entry.attempt && attempt.finished_at &&
        Math.abs(Date.parse(attempt.finished_at) - Date.parse(entry.at)) < SAME_MS);
}

// [{at, word, title, error, took_s, progress}], oldest first.
export function events_of(job)
{
    const attempts = (job.attempts || []).filter((attempt) => attempt.outcome !== "waiting");
    const events = [{ at: job.created_at, word: "created", title: "Enqueued" }];

    for (const entry of job.history || []) {
        if (!is_told(entry, attempts)) {
            events.push({ at: entry.at, word: entry.outcome || "failed", title: `Attempt ${entry.attempt}`, worker: entry.worker, error: entry.error });
        }
    }
    for (const attempt of attempts) {
        events.push({
            at: attempt.claimed_at || attempt.finished_at, until: attempt.finished_at, word: attempt.outcome, title: `Attempt ${attempt.attempt}`,
            worker: attempt.worker, error: attempt.error,
            took_s: attempt.claimed_at && attempt.finished_at ? (Date.parse(attempt.finished_at) - Date.parse(attempt.claimed_at)) / 1000 : null,
        });
    }
    if (job.status === "scheduled") {
        events.push({ at: job.run_at, word: "scheduled", title: job.attempt > 1 ? `Attempt ${job.attempt} is due` : "Due" });
    }
    return events.filter((event) => event.at).sort((a, b) => Date.parse(a.at) - Date.parse(b.at));
}

export function Timeline({ job })
{
    return html`<ol class="timeline">
        ${events_of(job).map((event, i) => html`<li key=${i} class=${event.word}>
            <div><b>${event.title}</b> ${event.word !== "created" && html`<${Badge} word=${event.word} />`} <span class="muted"><${Time} at=${event.at} /></span></div>
            <div class="muted">${event.worker && html`by ${visible(event.worker)}`}${event.took_s !== null && event.took_s !== undefined && ` took ${duration(event.took_s)}`}</div>
            ${event.error && html`<pre class="error">${visible(event.error.slice(0, ERROR_SHOWN))}${event.error.length > ERROR_SHOWN && "…"}</pre>`}
        </li>`)}
    </ol>`;
}
