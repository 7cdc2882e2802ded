// SPDX-License-Identifier: PostgreSQL
//
// The overview: figures that are those of the database, and that move by themselves.

import assert from "node:assert/strict";
import { sql, until, visit } from "./lib/visit.js";

await visit(async ({ page, see, row, tile, shot, press }) => {
    await until(async () => await tile("Available").catch(() => "") === sql("select sum(available) from millrace.stats()"), "available");
    assert.equal(await tile("Dead letters"), "54");
    assert.equal(await tile("Running"), "1");
    await page.getByRole("list", { name: "Health" }).getByText("mail").waitFor();
    await row("mail").getByText("WARNING").waitFor();

    const before = Number(await tile("Available"));
    sql("select count(*) from millrace.enqueue_many('move', array['{}', '{}', '{}']::jsonb[], 'moving')");
    await until(async () => Number(await tile("Available")) === before + 3, "three more");
    await row("moving").waitFor();

    // Percentiles over all queues: what ended in the last minute, from the pulse that upkeep takes.
    sql("select millrace.complete(c.lease) from millrace.claim('moving', 'mover', 3) c limit 1");
    await until(async () => /[0-9]/.test(await tile("Run p95")) && /[0-9]/.test(await tile("Wait p95")), "percentiles of all queues");
    assert.equal(await page.locator(".chart canvas").count(), 5);
    await press("15 min");
    await until(async () => /p95 [0-9]/.test(await page.getByRole("img", { name: /^Wait/ }).getAttribute("aria-label")), "percentiles over time");
    for (const range of ["15 min", "1 h", "6 h", "Live"]) {
        await press(range);
        assert.equal(await page.getByRole("button", { name: range, exact: true }).getAttribute("aria-pressed"), "true");
    }
    await until(async () => /available [0-9]/.test(await page.getByRole("img", { name: /^Depth: now/ }).getAttribute("aria-label")), "live charts");
    await shot("overview");
    await page.getByRole("link", { name: "mail" }).first().click();
    await page.getByRole("heading", { name: "Queues / mail" }).waitFor();
    await see("Oldest that wait");
});
