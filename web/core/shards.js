// SPDX-License-Identifier: PostgreSQL
//
// Which of several shards the page is about: all, or the one in the address, #/jobs?shard=1. A daemon
// with one database says nothing of shards, and there is nothing to choose.

import { set, state } from "/core/store.js";
import { link, parse } from "/core/route.js";
import { start_events } from "/core/events.js";

const number_of = (text) => (/^[0-9]{1,2}$/.test(text || "") ? Number(text) : null);

function write(shard)
{
    const route = parse(location.hash);

    history.replaceState(null, "", link(...route.parts, { ...route.query, shard }));
}

// null: all of them.
export function choose_shard(shard)
{
    write(shard);
    set({ shard, overview: null, trouble: null });
    window.dispatchEvent(new HashChangeEvent("hashchange"));
    start_events();
}

// The address says which, or, on the way to another page, keeps it.
export function follow_shard()
{
    const asked = number_of(parse(location.hash).query.shard);

    if (asked === state.shard || location.hash.startsWith("#token=")) {
        return;
    }
    if (asked === null) {
        write(state.shard);
    } else {
        set({ shard: asked, overview: null, trouble: null });
        if (state.token) {
            start_events();
        }
    }
}
