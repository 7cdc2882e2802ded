// SPDX-License-Identifier: PostgreSQL
//
// What a page asks for: again at times, after a failure, and when the daemon is back. An answer
// that nobody waits for any more is never taken.

import { useEffect, useReducer, useRef } from "/core/html.js";
import { subscribe, state } from "/core/store.js";

const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 10000;

// load: (signal, show) -> promise; what it shows on the way is there until the rest comes, where nothing was. what: what it depends on, as text, beside the shard. every_ms: null for once. patient: what
// failed is not asked for sooner than that.
// Returns {data, error, loading, reload}; data of the last success stays while that does. reload asks now, also while an answer is under way, which may
// be older than what made it necessary; its promise is kept when the answer is there.
export function useLoad(what, load, every_ms, patient)
{
    const key = state.shard + "|" + what;
    const [, again] = useReducer((n) => n + 1, 0);
    const self = useRef({ key: undefined }).current;

    if (self.key !== key) {
        Object.assign(self, { key, data: null, error: null, loading: true });
    }
    self.load = load;
    useEffect(() => {
        const control = new AbortController();
        let timer = null;
        let retry_ms = RETRY_MIN_MS;
        let asking = null;

        const plan = (ms) => {
            clearTimeout(timer);
            timer = ms && !control.signal.aborted ? setTimeout(ask, ms) : null;
        };
        const run = async () => {
            if (document.hidden && self.data) {
                plan(every_ms);
                return;
            }
            const empty = !self.data;
            const show = (data) => {
                if (empty && !control.signal.aborted) {
                    Object.assign(self, { data, error: null, loading: false });
                    again();
                }
            };
            try {
                const data = await self.load(control.signal, show);
                if (!control.signal.aborted) {
                    Object.assign(self, { data, error: null, loading: false });
                    retry_ms = RETRY_MIN_MS;
                    plan(every_ms);
                }
            } catch (error) {
                if (!control.signal.aborted) {
                    Object.assign(self, { error, loading: false });
                    const lasting = error.status >= 400 && error.status < 500 && error.status !== 429;
                    plan(lasting || patient ? every_ms : retry_ms);
                    retry_ms = Math.min(retry_ms * 2, RETRY_MAX_MS);
                }
            }
            if (!control.signal.aborted) {
                again();
            }
        };
        const ask = () => (asking ??= run().finally(() => { asking = null; }));
        let was = state.link + state.trouble;
        const leave = subscribe(() => {
            const is = state.link + state.trouble;
            if (is !== was && state.link === "live" && !state.trouble && self.error) {
                retry_ms = RETRY_MIN_MS;
                ask();
            }
            was = is;
        });
        self.reload = async () => {
            await asking;
            await ask();
        };
        ask();
        return () => {
            leave();
            control.abort();
            clearTimeout(timer);
        };
    }, [key, every_ms]);
    return { data: self.data, error: self.error, loading: self.loading, reload: () => self.reload?.() };
}
