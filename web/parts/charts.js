// SPDX-License-Identifier: PostgreSQL
//
// The charts of a queue, or of all with queue null, and how far back they look.

import { html } from "/core/html.js";
import { set, useStore } from "/core/store.js";
import { useLoad } from "/core/load.js";
import { get } from "/core/api.js";
import { compact, duration, rate } from "/core/format.js";
import { history_columns, live_columns } from "/core/samples.js";
import { Chart } from "/parts/chart.js";

const ranges = [["live", "Live"], [15, "15 min"], [60, "1 h"], [360, "6 h"]];
const HISTORY_MS = 10000;

export function Ranges()
{
    const range = useStore((state) => state.range);

    return html`<div class="segmented" role="group" aria-label="Time range of the charts">
        ${ranges.map(([value, label]) => html`
            <button key=${value} type="button" aria-pressed=${range === value ? "true" : "false"} onClick=${() => set({ range: value })}>${label}</button>`)}
    </div>`;
}

function percentiles(columns, what)
{
    const colours = ["--series-1", "--series-3", "--series-4"];

    return ["p50", "p95", "p99"].map((p, i) => ({ label: p, colour: colours[i], values: columns[`${what}_${p}`] }));
}

export function Charts({ queue })
{
    const range = useStore((state) => state.range);
    const live = range === "live";
    useStore((state) => (live ? state.beat : 0));
    const loaded = useLoad(`${queue}|${range}`, (signal) => get("/history", { queue, minutes: live ? 5 : range }, { signal }), live ? null : HISTORY_MS);
    const columns = live ? live_columns(queue, loaded.data) : history_columns(loaded.data);
    const line = (label, colour, name, fill) => ({ label, colour, values: columns[name], fill });

    return html`<div class="charts">
        <${Chart} title="Jobs a second" x=${columns.x} format=${rate}
            lines=${[line("in", "--series-1", "enqueued", true), line("out", "--series-2", "completed")]} />
        <${Chart} title="Depth" x=${columns.x} format=${compact}
            lines=${[line("available", "--series-1", "available", true), line("running", "--series-2", "running"), line("retrying", "--series-3", "retrying")]} />
        <${Chart} title="Wait" x=${columns.x} format=${duration} is_time lines=${percentiles(columns, "wait")} />
        <${Chart} title="Run" x=${columns.x} format=${duration} is_time lines=${percentiles(columns, "run")} />
        <${Chart} title="Failures" x=${columns.x} format=${rate} lines=${[line("failed", "--series-4", "failed", true)]} />
    </div>`;
}
