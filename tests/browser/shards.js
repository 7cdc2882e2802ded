// SPDX-License-Identifier: PostgreSQL
//
// The switch between shards: figures of all or of one, what is down, the address that keeps it.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { until, visit } from "./lib/visit.js";

const names = process.env.MR_DATABASES.split(" ");

function on(database, text)
{
    return execFileSync("psql", ["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-d", database, "-c", text], { encoding: "utf8" }).trim();
}

const paused = () => names.map((name) => on(name, "select paused from millrace.queues where queue = 'mail'")).join("");

await visit(async ({ page, go, see, press, row, tile }) => {
    const choose = (label) => page.getByLabel("Shard", { exact: true }).selectOption({ label });

    await see("Live");
    await until(async () => await tile("Available") === "6", "the jobs of all shards");
    assert.equal(await tile("Dead letters"), "3");

    await press("15 min");
    await until(async () => await page.getByRole("button", { name: "15 min", pressed: true }).count() === 1, "the history of all");
    await press("Live");

    await choose("Shard 2");
    await until(async () => await tile("Available") === "3", "the jobs of shard 2");
    assert.match(page.url(), /shard=2/);
    await page.getByRole("link", { name: "Jobs", exact: true }).click();
    await until(async () => await page.getByRole("row").count() === 5, "the four jobs of shard 2");
    assert.match(page.url(), /shard=2/);

    await choose("All shards");
    await until(async () => await page.getByRole("row").count() === 10, "the nine jobs of all");
    assert.doesNotMatch(page.url(), /shard=/);

    await go("#/queues/mail");
    await press("Pause");
    await see(/is paused/);
    assert.equal(paused(), "ttt");
    await choose("Shard 1");
    await press("Resume");
    await see(/goes on/);
    assert.equal(paused(), "tft");
    await choose("All shards");

    await go("#/system");
    const shards = page.getByRole("table", { name: "Shards" });
    await until(async () => await shards.getByRole("row").count() === 4, "a row for each shard");
    await page.getByRole("link", { name: "Shard 0" }).click();
    await see("Settings of the server");
    assert.match(page.url(), /shard=0/);
    await choose("All shards");
    await until(async () => await shards.getByRole("row").count() === 4, "all of them again");

    on(names[2], "select millrace.batch_begin(label => 'nightly')");
    await go("#/batches");
    await until(async () => await page.getByRole("row").count() === 2, "the batch of shard 2");
    await page.getByRole("table", { name: "Batches" }).getByRole("link").click();
    await see(/nightly/);
    assert.doesNotMatch(page.url(), /shard=/);

    await go("#/dead");
    await until(async () => await page.getByRole("checkbox", { name: /^Select job/ }).count() === 3, "the dead letters of all");
    await page.getByRole("checkbox", { name: "Select all on this page" }).check();
    await press("Replay selected (3)");
    await see("3 dead letters put back.");

    on("postgres", `alter database ${names[1]} allow_connections false`);
    on("postgres", `select pg_terminate_backend(pid) from pg_stat_activity where datname = '${names[1]}'`);
    await see(/^\s*Shard 1 is down/);
    await go("#/system");
    await until(async () => /down/.test(await shards.getByRole("row", { name: "Shard 1" }).innerText()), "the row of the shard that is down");
    await go("#/");
    await until(async () => await tile("Available") === "6", "the jobs of two shards"); // 1 + 3 in mail, 2 put back
    await choose("Shard 1 (down)");
    await see(/^\s*shard 1 cannot be reached/);
    on("postgres", `alter database ${names[1]} allow_connections true`);
    await until(async () => await tile("Available").catch(() => "") === "3", "shard 1 again");
    await choose("All shards");
    await until(async () => await tile("Available") === "9", "all of them");
}, { allow: /503/ });

// The address chooses; a shard that is not there is forgotten.
await visit(async ({ page, see, tile, press }) => {
    await page.getByLabel("Token").fill("admin-token");
    await press("Sign in");
    await see("Live");
    await until(async () => await tile("Available") === "4", "shard 2");
}, { fragment: "#/?shard=2" });

await visit(async ({ page, see, tile, press }) => {
    await page.getByLabel("Token").fill("admin-token");
    await press("Sign in");
    await until(async () => await tile("Available").catch(() => "") === "9", "all of them");
    assert.doesNotMatch(page.url(), /shard=/);
}, { fragment: "#/?shard=9", allow: /404/ });
