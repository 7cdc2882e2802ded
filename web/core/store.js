// SPDX-License-Identifier: PostgreSQL
//
// What the whole page knows. Kept in memory alone: the token, too, is gone with the page.

import { useEffect, useReducer, useRef } from "/core/html.js";

export const state = {
    token: null,       // null: nobody is signed in
    reason: null,      // why the sign-in form is shown
    link: "off",       // of the live events: off, connecting, live, reconnecting
    trouble: null,     // what the daemon says when it cannot reach the database
    overview: null,    // the newest
    shards: null,      // how each does: [{shard, address, status, error}]; null: there is one database
    shard: null,       // the one that is looked at; null: all
    beat: 0,           // counts the overviews
    skew_ms: 0,        // the server's clock minus ours
    theme: null,       // null: as the system has it; "light", "dark"
    range: "live",     // of the charts: live, or minutes
    notices: [],       // {id, kind, text, hint}
    question: null,    // {title, text, action, danger, options, answer}
};

const listeners = new Set();

export function set(patch)
{
    Object.assign(state, patch);
    for (const listener of [...listeners]) {
        listener();
    }
}

export function subscribe(listener)
{
    listeners.add(listener);
    return () => listeners.delete(listener);
}

// A part of the state; draws the component again when it is another value.
export function useStore(pick)
{
    const [, again] = useReducer((n) => n + 1, 0);
    const value = pick(state);
    const last = useRef(value);

    last.current = value;
    useEffect(() => subscribe(() => {
        if (pick(state) !== last.current) {
            again();
        }
    }), []);
    return value;
}

// The server's idea of now, in milliseconds.
export function now_ms()
{
    return Date.now() + state.skew_ms;
}

let ticking = null;
const tickers = new Set();

// Draws the component again every second; all share one timer.
export function useTick()
{
    const [, again] = useReducer((n) => n + 1, 0);

    useEffect(() => {
        tickers.add(again);
        ticking = ticking || setInterval(() => tickers.forEach((draw) => draw()), 1000);
        return () => {
            tickers.delete(again);
            if (tickers.size === 0) {
                clearInterval(ticking);
                ticking = null;
            }
        };
    }, []);
}

// ---- notices and questions ----

let notice_id = 0;
const NOTICE_MS = 6000;

export function dismiss(id)
{
    set({ notices: state.notices.filter((notice) => notice.id !== id) });
}

// Good news leaves by itself, bad news stays until it is read.
export function notify(kind, text, hint)
{
    const id = ++notice_id;

    set({ notices: [...state.notices.slice(-3), { id, kind, text, hint }] });
    if (kind !== "bad") {
        setTimeout(() => dismiss(id), NOTICE_MS);
    }
}

// Asks the user; resolves to false, or to true, or to the option that was chosen.
export function ask(question)
{
    return new Promise((resolve) => {
        set({ question: { ...question, answer: (value) => {
            set({ question: null });
            resolve(value);
        } } });
    });
}
