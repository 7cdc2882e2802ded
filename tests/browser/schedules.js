// SPDX-License-Identifier: PostgreSQL
//
// Schedules, batches, workers, system.

import assert from "node:assert/strict";
import { sql, until, visit } from "./lib/visit.js";

const doctor = sql("select to_regproc('millrace.doctor') is not null") === "t";

await visit(async ({ page, go, see, press, row, shot }) => {
    await go("#/schedules");
    await row("nightly").getByText("Europe/Berlin").waitFor();
    await shot("schedules");
    await press("Run now: nightly");
    await see("nightly has enqueued job");
    assert.equal(sql("select count(*) from millrace.jobs where queue = 'reports' and kind = 'report'"), "1");
    await press("Disable: nightly");
    await see("nightly is off.");
    assert.equal(sql("select active from millrace.schedules where name = 'nightly'"), "f");
    await press("Enable: nightly");
    await see("nightly is on.");
    assert.equal(sql("select active from millrace.schedules where name = 'nightly'"), "t");
    await press("Remove: gone-soon");
    await press("Remove the schedule");
    await see("gone-soon is gone.");
    assert.equal(sql("select count(*) from millrace.schedules where name = 'gone-soon'"), "0");

    await go("#/batches");
    await until(async () => /2/.test(await row("invoices of October").innerText()), "the batch");
    await row("invoices of October").getByRole("link").first().click();
    await see("1 of 2");
    await go("#/batches?label=October&status=running");
    await until(async () => await page.locator("tbody tr").count() === 1, "one batch");
    await go("#/batches?status=failed");
    await see("No batch is like that.");

    await go("#/workers");
    await row("busy-1").getByText("busy", { exact: true }).waitFor();
    await shot("workers");

    await go("#/system");
    await see("PostgreSQL");
    await row("open").first().waitFor();
    await until(async () => await page.getByRole("table", { name: "Upkeep" }).locator("tbody tr").count() > 5, "the duties");
    await see("synchronous_commit");
    await see("Disk free");
    if (doctor) {
        await page.locator("summary").getByText(/checks are ok/).click();
        await page.getByRole("table", { name: "What is ok" }).getByRole("row").nth(1).waitFor();
    }
    await page.waitForTimeout(1000);
    await shot("system");
    await go("#/nowhere");
    await see("No such page");
}, { allow: doctor ? undefined : /api\/v1\/doctor/ });
