// SPDX-License-Identifier: PostgreSQL
//
// The machine below the queues: segments and disk, who holds old snapshots, upkeep, the doctor.

import { html } from "/core/html.js";
import { get } from "/core/api.js";
import { useLoad } from "/core/load.js";
import { link } from "/core/route.js";
import { bytes, count, cut, duration, many } from "/core/format.js";
import { Badge } from "/parts/badge.js";
import { Facts, Tiles } from "/parts/tiles.js";
import { Loaded } from "/parts/trouble.js";
import { Table } from "/parts/table.js";
import { Time } from "/parts/time.js";
import { visible } from "/parts/payload.js";

const EVERY_MS = 5000;
const DOCTOR_MS = 60000;
const verdicts = ["critical", "warning", "note"];

function Segments({ segments })
{
    return html`<section><h2>Segments</h2><${Table} caption="Segments" rows=${segments} id=${(s) => s.seg} columns=${[
        { name: "Segment", show: (s) => s.seg },
        { name: "State", show: (s) => html`<${Badge} word=${s.state} />` },
        { name: "Jobs", number: true, show: (s) => count(s.jobs) },
        { name: "Size", number: true, show: (s) => bytes(s.bytes) },
        { name: "Closed", number: true, wide: true, show: (s) => html`<${Time} at=${s.closed_at} />` },
        { name: "Pinned by", show: (s) => [].concat(s.pinned_by || []).map((queue) => visible(queue)).join(", ") },
    ]} /></section>`;
}

function Holders({ holders })
{
    return html`<section><h2>Old snapshots</h2><p class="muted">Whoever holds one keeps dead rows from being removed.</p>
        <${Table} stack caption="Old snapshots" rows=${holders} none="Nobody holds one." columns=${[
            { name: "Who", show: (h) => `${h.what || "session"} ${h.pid || ""}` },
            { name: "Age", number: true, show: (h) => duration(h.age_seconds) },
            { name: "User", wide: true, show: (h) => visible(h.user || "") },
            { name: "Application", wide: true, show: (h) => visible(h.application || "") },
            { name: "State", wide: true, show: (h) => h.state || "" },
            { name: "Query", look: "what", wide: true, show: (h) => html`<code>${visible(cut(h.query || "", 100))}</code>` },
        ]} /></section>`;
}

function Upkeep({ maintain })
{
    return html`<section><h2>Upkeep <small class="muted">last round <${Time} at=${maintain.last_at} /></small></h2>
        <${Table} caption="Upkeep" rows=${maintain.duties} id=${(d) => d.duty} none="No round yet: a daemon, or a call of maintain(), does it." columns=${[
            { name: "Duty", show: (d) => d.duty },
            { name: "Last", number: true, show: (d) => html`<${Time} at=${d.last_at} />` },
            { name: "Done", number: true, show: (d) => count(d.done) },
            { name: "Total", number: true, wide: true, show: (d) => count(d.total) },
            { name: "Took", number: true, show: (d) => duration(d.seconds) },
        ]} /></section>`;
}

function Checks({ caption, checks, of_shard })
{
    return html`<${Table} stack caption=${caption} rows=${checks} id=${(c) => [c.shard, c.topic].join()} columns=${[
        ...(of_shard ? [{ name: "Shard", show: (c) => String(c.shard) }] : []),
        { name: "Check", show: (c) => visible(c.topic) },
        { name: "Verdict", show: (c) => html`<${Badge} word=${c.verdict} />` },
        { name: "Evidence", look: "says", show: (c) => visible(c.evidence || "") },
        { name: "Remedy", look: "says", show: (c) => visible(c.remedy || "") },
    ]} />`;
}

function Findings({ checks, of_shard })
{
    const found = checks.filter((c) => c.verdict !== "ok").sort((a, b) => verdicts.indexOf(a.verdict) - verdicts.indexOf(b.verdict));
    const fine = checks.filter((c) => c.verdict === "ok");

    return html`${found.length > 0 && html`<${Checks} caption="What the doctor found" checks=${found} of_shard=${of_shard} />`}
        ${fine.length > 0 && html`<details><summary>${many(fine.length, "check")} ${fine.length === 1 ? "is" : "are"} ok</summary><${Checks} caption="What is ok" checks=${fine} of_shard=${of_shard} /></details>`}`;
}

// Of several shards each has its own.
const checks_of = (data) => (data.shards ? data.shards.flatMap((entry) => (entry.result?.checks || []).map((c) => ({ ...c, shard: entry.shard }))) : data.checks || []);

function Doctor()
{
    const checks = useLoad("", (signal) => get("/doctor", null, { signal }), DOCTOR_MS, true);

    return html`<section><h2>Doctor</h2><${Loaded} from=${checks} show=${(data) => html`<${Findings} checks=${checks_of(data)} of_shard=${data.shards} />`} /></section>`;
}

const disk_free = (disk) => (disk?.bytes ? `${Math.round(100 * disk.free_ratio)} %` : "");
const disk_title = (disk) => `${bytes(disk.free_bytes)} of ${bytes(disk.bytes)} at ${disk.path}`;

// All shards, one a row; the page of one has the rest.
function Shards({ shards })
{
    const of = (show) => (entry) => (entry.result ? show(entry.result) : "");

    return html`<section><h2>Shards</h2><${Table} caption="Shards" rows=${shards} id=${(e) => e.address} columns=${[
        { name: "Shard", show: (e) => (e.shard === null ? `address ${e.address}` : html`<a href=${link("system", { shard: e.shard })}>${`Shard ${e.shard}`}</a>`) },
        { name: "Status", show: (e) => html`<${Badge} word=${e.status} /> ${e.error && visible(e.error)}` },
        { name: "PostgreSQL", wide: true, show: of((s) => s.server_version.split(" ")[0]) },
        { name: "Jobs on disk", number: true, show: of((s) => bytes(s.millrace_bytes)) },
        { name: "Database", number: true, show: of((s) => bytes(s.database_bytes)) },
        { name: "Connections", number: true, show: of((s) => `${s.connections.used} of ${s.connections.max}`) },
        { name: "Segments", number: true, wide: true, show: of((s) => `${s.segments.length} of 16`) },
        { name: "Disk free", number: true, show: of((s) => disk_free(s.disk)) },
        { name: "Upkeep", number: true, show: of((s) => html`<${Time} at=${s.maintain.last_at} />`) },
    ]} /></section><${Doctor} />`;
}

function One({ system })
{
    return html`
        <${Tiles} tiles=${[
            { name: "Millrace", value: system.version || "?", title: "schema " + system.schema_version },
            { name: "PostgreSQL", value: system.server_version.split(" ")[0], title: system.server_version },
            { name: "Jobs on disk", value: bytes(system.millrace_bytes) },
            { name: "Database", value: bytes(system.database_bytes) },
            { name: "Connections", value: `${system.connections.used} of ${system.connections.max}` },
            { name: "Segments", value: `${system.segments.length} of 16` },
            ...(system.disk?.bytes ? [{ name: "Disk free", value: disk_free(system.disk), title: disk_title(system.disk) }] : []),
        ]} />
        <${Doctor} />
        <div class="pair"><${Segments} segments=${system.segments} /><${Upkeep} maintain=${system.maintain} /></div>
        <${Holders} holders=${system.xmin} />
        <section><h2>Settings of the server</h2><div class="panel"><${Facts} facts=${system.settings.map((s) => [s.name, s.value])} /></div></section>`;
}

export function System()
{
    const loaded = useLoad("", (signal) => get("/system", null, { signal }), EVERY_MS);

    return html`<div class="head"><h1>System</h1></div>
        <${Loaded} from=${loaded} show=${(data) => (data.shards ? html`<${Shards} shards=${data.shards} />` : html`<${One} system=${data} />`)} />`;
}
