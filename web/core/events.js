// SPDX-License-Identifier: PostgreSQL
//
// The live events. Read with fetch, because EventSource can send no token. A stream that ends or
// falls silent is opened again, at once at first, then less and less often.

import { state, set } from "/core/store.js";
import { ApiError, headers, sign_out } from "/core/api.js";
import { link, parse } from "/core/route.js";
import { add_sample, forget_samples } from "/core/samples.js";

const SILENCE_MS = 12000;
const WAIT_MIN_MS = 500;
const WAIT_MAX_MS = 8000;

let control = null;

// Cuts a stream of text into events; returns a function that takes the next piece.
export function event_reader(on_event)
{
    let rest = "";

    return (piece) => {
        const blocks = (rest + piece).replace(/\r\n?/g, "\n").split("\n\n");
        rest = blocks.pop();
        for (const block of blocks) {
            const event = { name: "message", data: [] };
            for (const line of block.split("\n")) {
                const colon = line.indexOf(":");
                const field = colon < 0 ? line : line.slice(0, colon);
                const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
                if (field === "event") {
                    event.name = value;
                } else if (field === "data") {
                    event.data.push(value);
                }
            }
            if (event.data.length) {
                on_event(event.name, event.data.join("\n"));
            }
        }
    };
}

function take_overview(overview)
{
    add_sample(overview);
    set({
        overview, shards: overview.shards || null, trouble: null, link: "live", beat: state.beat + 1,
        skew_ms: Date.parse(overview.at) - Date.now(),
    });
}

function on_event(name, data)
{
    if (name === "overview") {
        take_overview(JSON.parse(data));
    } else if (name === "trouble") {
        const said = JSON.parse(data);
        set({ trouble: said.error?.message || "The database cannot be reached.", shards: said.shards || null, link: "live" });
    }
}

async function listen(signal)
{
    const response = await fetch("/api/v1/events" + (state.shard === null ? "" : "?shard=" + state.shard), { headers: headers({ Accept: "text/event-stream" }), signal, cache: "no-store" });

    if (response.status === 401) {
        const error = await response.json().catch(() => ({}));
        throw new ApiError(401, "unauthorized", error.error?.message || "The token is not known.");
    }
    if (!response.ok) {
        if (response.status === 400 || response.status === 404) { // there is no such shard: an old address
            const route = parse(location.hash);
            history.replaceState(null, "", link(...route.parts, { ...route.query, shard: null }));
            set({ shard: null });
        }
        throw new ApiError(response.status, "unavailable", "no events");
    }
    const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
    const take = event_reader(on_event);
    for (;;) {
        let timer = null;
        const silence = new Promise((resolve, reject) => {
            timer = setTimeout(() => reject(new Error("silence")), SILENCE_MS);
        });
        const { done, value } = await Promise.race([reader.read(), silence]).finally(() => clearTimeout(timer));
        if (done) {
            return;
        }
        take(value);
    }
}

const pause = (ms, signal) => new Promise((resolve) => {
    const timer = setTimeout(resolve, ms);
    signal.addEventListener("abort", () => { clearTimeout(timer); resolve(); });
});

async function keep_listening(signal)
{
    let wait_ms = WAIT_MIN_MS;

    while (!signal.aborted) {
        const before = state.beat;
        const attempt = new AbortController();
        const stop = () => attempt.abort();
        signal.addEventListener("abort", stop);
        try {
            await listen(attempt.signal);
        } catch (error) {
            if (error.status === 401 && !signal.aborted) {
                sign_out(error.message);
                return;
            }
        }
        attempt.abort();
        signal.removeEventListener("abort", stop);
        if (signal.aborted) {
            return;
        }
        wait_ms = state.beat > before ? WAIT_MIN_MS : Math.min(wait_ms * 2, WAIT_MAX_MS);
        set({ link: "reconnecting" });
        await pause(wait_ms, signal);
    }
}

export function stop_events()
{
    control?.abort();
    control = null;
}

export function start_events()
{
    stop_events();
    forget_samples();
    control = new AbortController();
    set({ link: "connecting" });
    keep_listening(control.signal);
}
