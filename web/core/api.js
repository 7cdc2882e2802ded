// SPDX-License-Identifier: PostgreSQL
//
// Requests of the public API: the page can do nothing that another client could not.

import { state, set, notify } from "/core/store.js";

const PREFIX = "/api/v1";
const TIMEOUT_MS = 30000;

export class ApiError extends Error {
    constructor(status, code, message, hint)
    {
        super(message);
        this.status = status;
        this.code = code;
        this.hint = hint;
    }
}

// A number that a double cannot hold, as it was written.
export class ExactNumber {
    constructor(text)
    {
        this.text = text;
    }
}

function keep_exact(key, value, context)
{
    const text = typeof value === "number" && context ? context.source : undefined;

    return text && /^-?[0-9.]+$/.test(text) && String(value) !== text ? new ExactNumber(text) : value;
}

function address(path, query)
{
    const given = Object.entries(query || {}).filter(([, value]) => value !== null && value !== undefined && value !== "");

    return PREFIX + path + (given.length ? "?" + new URLSearchParams(given) : "");
}

// The names of a path, each as one part of it.
export function path(...parts)
{
    return "/" + parts.map((part) => encodeURIComponent(part)).join("/");
}

export function sign_out(reason)
{
    set({ token: null, reason: reason || null, overview: null, shards: null, trouble: null, link: "off" });
}

async function refusal(response)
{
    let error = {};

    try {
        error = (await response.json()).error || {};
    } catch {
        // not one of ours: a proxy's page, say
    }
    return new ApiError(response.status, error.code || "internal",
        error.message || `The server answered ${response.status}.`, error.hint);
}

function unreachable(error, timed_out)
{
    return timed_out
        ? new ApiError(0, "unavailable", "The daemon did not answer in time.", "It is tried again.")
        : new ApiError(0, "unavailable", "The daemon cannot be reached.", "Is it running? It is tried again.");
}

export function headers(more)
{
    return { Authorization: "Bearer " + state.token, ...more };
}

// body: what becomes JSON, or a text that is. Resolves to the answer, rejects with an ApiError; with an AbortError when `signal` says so.
export async function request(method, route, { query, body, signal, exact } = {})
{
    const control = new AbortController();
    const token = state.token;
    let timed_out = false;
    const timer = setTimeout(() => { timed_out = true; control.abort(); }, TIMEOUT_MS);
    const stop = () => control.abort();

    signal?.addEventListener("abort", stop);
    try {
        const response = await fetch(address(route, state.shard === null ? query : { shard: state.shard, ...query }), {
            method,
            headers: headers({ Accept: "application/json", ...(body === undefined ? {} : { "Content-Type": "application/json" }) }),
            body: body === undefined || typeof body === "string" ? body : JSON.stringify(body),
            signal: control.signal,
            cache: "no-store",
        });
        if (response.ok) {
            return JSON.parse(await response.text(), exact ? keep_exact : undefined);
        }
        throw await refusal(response);
    } catch (error) {
        if (signal?.aborted) {
            throw new DOMException("left", "AbortError");
        }
        if (error.status === 401 && token === state.token) {
            sign_out(error.message);
        }
        throw error instanceof ApiError ? error : unreachable(error, timed_out);
    } finally {
        clearTimeout(timer);
        signal?.removeEventListener("abort", stop);
    }
}

export function get(route, query, options)
{
    return request("GET", route, { query, ...options });
}

// Does something, and tells how it went. `said` makes the good news out of the answer. `query`: what it
// is about besides the path. Resolves to the answer, or to null.
export async function act(method, route, body, said, query)
{
    try {
        const answer = await request(method, route, { body, query });
        notify("good", said(answer));
        return answer;
    } catch (error) {
        notify("bad", (error.status === 403 ? "Not allowed: " : "") + error.message, error.hint);
        return null;
    }
}
