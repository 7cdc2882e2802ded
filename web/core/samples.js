// SPDX-License-Identifier: PostgreSQL
//
// The last minutes of overviews, for charts that move: what history() knows of before is put in
// front of them.

const KEPT_S = 300;
// A rate is taken over so many seconds, and not over fewer than so many: the ledger counts about once a second.
const RATE_S = 5;
const RATE_LEAST_S = 2;

const GAUGES = ["available", "running", "retrying", "dead"];
const TOTALS = ["enqueued_total", "completed_total", "failed_total"];

let samples = []; // {t, all: figures, queues: Map of name to figures}

export function forget_samples()
{
    samples = [];
}

function figures_of(face)
{
    const figures = {};

    for (const name of [...GAUGES, ...TOTALS]) {
        figures[name] = face[name] ?? null;
    }
    figures.wait = face.wait || null;
    figures.run = face.run || null;
    return figures;
}

export function add_sample(overview)
{
    const t = Date.parse(overview.at) / 1000;
    const all = figures_of(overview.totals);

    samples = samples.filter((sample) => sample.t > t - KEPT_S && sample.t < t);
    samples.push({ t, all, queues: new Map(overview.queues.map((queue) => [queue.queue, figures_of(queue)])) });
}

const pick = (sample, queue) => (queue === null ? sample.all : sample.queues.get(queue));

function rate_at(list, i, name)
{
    let j = i;

    while (j > 0 && list[i].t - list[j - 1].t <= RATE_S + 0.5) {
        j--;
    }
    const seconds = list[i].t - list[j].t;
    const rise = list[i].figures[name] - list[j].figures[name];
    return seconds < RATE_LEAST_S || rise < 0 ? null : rise / seconds;
}

function empty()
{
    const columns = { x: [], enqueued: [], completed: [], failed: [] };

    for (const name of GAUGES) {
        columns[name] = [];
    }
    for (const what of ["wait", "run"]) {
        for (const p of ["p50", "p95", "p99"]) {
            columns[what + "_" + p] = [];
        }
    }
    return columns;
}

// The points of history() as columns.
export function history_columns(history, until = Infinity)
{
    const columns = empty();

    for (const point of history?.points || []) {
        const t = Date.parse(point.at) / 1000;
        if (t >= until) {
            break;
        }
        for (const name of Object.keys(columns)) {
            columns[name].push(point[name] ?? null);
        }
        columns.x[columns.x.length - 1] = t;
        for (const what of ["wait", "run"]) {
            for (const p of ["p50", "p95", "p99"]) {
                columns[what + "_" + p][columns.x.length - 1] = point[what]?.[p] ?? null;
            }
        }
    }
    return columns;
}

// The samples of a queue, or of all with null, behind what history knows of the time before them.
export function live_columns(queue, history)
{
    const list = samples.map((sample) => ({ t: sample.t, figures: pick(sample, queue) })).filter((entry) => entry.figures);
    const columns = history_columns(history, list.length ? list[0].t : Infinity);

    list.forEach((entry, i) => {
        columns.x.push(entry.t);
        columns.enqueued.push(rate_at(list, i, "enqueued_total"));
        columns.completed.push(rate_at(list, i, "completed_total"));
        columns.failed.push(rate_at(list, i, "failed_total"));
        for (const name of GAUGES) {
            columns[name].push(entry.figures[name]);
        }
        for (const what of ["wait", "run"]) {
            for (const p of ["p50", "p95", "p99"]) {
                columns[what + "_" + p].push(entry.figures[what]?.[p] ?? null);
            }
        }
    });
    return columns;
}

// What comes in and goes out right now, jobs a second; null where that is not known yet.
export function rates_now(queue)
{
    const list = samples.slice(-(RATE_S + 2)).map((sample) => ({ t: sample.t, figures: pick(sample, queue) })).filter((entry) => entry.figures);
    const at = (name) => (list.length ? rate_at(list, list.length - 1, name) : null);

    return { enqueued: at("enqueued_total"), completed: at("completed_total"), failed: at("failed_total") };
}

// The last figures of a queue, oldest first.
export function trend(queue, name)
{
    return samples.map((sample) => pick(sample, queue)?.[name]).filter((value) => value !== undefined && value !== null);
}
