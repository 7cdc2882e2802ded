// SPDX-License-Identifier: PostgreSQL
//
// Which shard is looked at, and which of them are down.

import { html } from "/core/html.js";
import { state, useStore } from "/core/store.js";
import { choose_shard } from "/core/shards.js";

const name_of = (entry) => (entry.shard === null ? `Address ${entry.address}` : `Shard ${entry.shard}`);
const label_of = (entry) => name_of(entry) + (entry.status === "active" ? "" : ` (${entry.status})`);

// Draws again when one of them changes, not once a second.
function useShards()
{
    useStore((all) => JSON.stringify(all.shards));
    return state.shards;
}

export function ShardSwitch()
{
    const shards = useShards();
    const chosen = useStore((all) => all.shard);
    const choose = (event) => choose_shard(event.target.value === "" ? null : Number(event.target.value));

    return shards && html`<select class="shards" aria-label="Shard" value=${chosen ?? ""} onChange=${choose}>
        <option value="">All shards</option>
        ${shards.map((entry) => html`<option key=${entry.address} value=${entry.shard ?? ""} disabled=${entry.shard === null}>${label_of(entry)}</option>`)}
    </select>`;
}

// What is missing in the figures of all.
export function ShardAlert()
{
    const shards = useShards();
    const chosen = useStore((all) => all.shard);
    const down = (shards || []).filter((entry) => entry.status === "down");

    return chosen === null && down.length > 0 && down.length < shards.length && html`<div class="alert warn" role="alert">
        ${down.map(name_of).join(", ")} ${down.length === 1 ? "is" : "are"} down: what is there is not in these figures and lists.</div>`;
}
