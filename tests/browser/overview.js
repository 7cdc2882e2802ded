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

    assert.equal(await page.locator(".chart canvas").count(), 5);
    for (const range of ["15 min", "1 h", "6 h", "Live"]) {
        await press(range);
        assert.equal(await page.getByRole("button", { name: range, exact: true }).getAttribute("aria-pressed"), "true");
    }
    await page.waitForTimeout(3000);
    await shot("overview");
    await page.getByRole("link", { name: "mail" }).first().click();
    await page.getByRole("heading", { name: "Queues / mail" }).waitFor();
    await see("Oldest that wait");
});
