// SPDX-License-Identifier: PostgreSQL
//
// Figures for people: each with its unit, the same thing always in the same form.

const whole = new Intl.NumberFormat("en-US", { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat("en-US", { maximumFractionDigits: 1, minimumFractionDigits: 1 });
const short = new Intl.NumberFormat("en-US", { notation: "compact", maximumFractionDigits: 1 });

const known = (value) => typeof value === "number" && Number.isFinite(value);

export const NONE = "–";

export function count(n)
{
    return known(n) ? whole.format(n) : NONE;
}

export function compact(n)
{
    return !known(n) ? NONE : Math.abs(n) < 10000 ? whole.format(n) : short.format(n);
}

// "1 job", "2 jobs"
export function many(n, noun, nouns)
{
    return `${count(n)} ${n === 1 ? noun : nouns || noun + "s"}`;
}

export function rate(n)
{
    return !known(n) ? NONE : (n === 0 ? "0" : n < 10 ? tenths.format(n) : compact(n)) + "/s";
}

// Seconds.
export function duration(s)
{
    if (!known(s)) {
        return NONE;
    }
    if (s < 0.001) {
        return s <= 0 ? "0 s" : Math.max(1, Math.round(s * 1e6)) + " µs";
    }
    if (s < 1) {
        return (s < 0.01 ? (s * 1000).toFixed(1) : Math.round(s * 1000)) + " ms";
    }
    if (s < 60) {
        return (s < 10 ? s.toFixed(1) : Math.round(s)) + " s";
    }
    return coarse(s);
}

// The two largest units of a minute or more.
function coarse(s)
{
    const units = [["d", 86400], ["h", 3600], ["min", 60], ["s", 1]];
    const first = units.findIndex(([, size]) => s >= size);
    const [name, size] = units[first];
    const next = units[first + 1];
    const high = Math.floor(s / size);
    const low = next ? Math.floor((s - high * size) / next[1]) : 0;

    return `${high} ${name}` + (low && high < 10 ? ` ${low} ${next[0]}` : "");
}

export function bytes(n)
{
    if (!known(n)) {
        return NONE;
    }
    const units = ["B", "KB", "MB", "GB", "TB", "PB"];
    let i = 0;

    while (n >= 1000 && i < units.length - 1) {
        n /= 1000;
        i++;
    }
    return (i && n < 100 ? n.toFixed(1) : Math.round(n)) + " " + units[i];
}

// "3 s ago", "in 2 h"
export function relative(ms, now_ms)
{
    const s = (now_ms - ms) / 1000;

    if (Math.abs(s) < 1) {
        return "now";
    }
    const text = Math.abs(s) < 60 ? Math.floor(Math.abs(s)) + " s" : coarse(Math.abs(s));
    return s > 0 ? text + " ago" : "in " + text;
}

const pad = (n, width = 2) => String(n).padStart(width, "0");

// In the user's own zone, with its offset.
export function exact(ms)
{
    const t = new Date(ms);
    const offset = -t.getTimezoneOffset();
    const zone = (offset < 0 ? "-" : "+") + pad(Math.floor(Math.abs(offset) / 60)) + ":" + pad(Math.abs(offset) % 60);

    return `${t.getFullYear()}-${pad(t.getMonth() + 1)}-${pad(t.getDate())} ` +
        `${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}.${pad(t.getMilliseconds(), 3)} ${zone}`;
}

export function clock(ms)
{
    const t = new Date(ms);

    return `${pad(t.getHours())}:${pad(t.getMinutes())}:${pad(t.getSeconds())}`;
}

// The first characters of a long text, never half of a pair.
export function cut(text, length)
{
    const all = String(text);

    return all.length <= length ? all : Array.from(all.slice(0, length)).slice(0, -1).join("") + "…";
}
