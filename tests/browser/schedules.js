// SPDX-License-Identifier: PostgreSQL
//
// Schedules, batches, workers, system.

import assert from "node:assert/strict";
import { sql, until, visit } from "./lib/visit.js";


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

    // A new one: what is wrong is said, when it would run is shown.
    const field = (label) => page.getByLabel(label, { exact: true });
    const times = page.getByLabel("Next times");
    await press("New schedule");
    await until(async () => await times.locator("li").count() === 5, "five times");
    await field("Name").fill("weekly / <b>report</b>");
    await field("Cron").fill("0 25 * * *");
    await times.getByText("hour '25' is wrong").waitFor();
    await field("Kind").fill("report");
    await press("Make the schedule");
    await page.locator("form > .trouble").getByText("hour '25' is wrong").waitFor();
    assert.equal(sql("select count(*) from millrace.schedules where name like 'weekly%'"), "0");
    await field("Cron").fill("0 9 * * MON");
    await field("Time zone").fill("Nowhere/Land");
    await times.getByText("time zone 'Nowhere/Land' does not exist").waitFor();
    await field("Time zone").fill("Europe/Berlin");
    await until(async () => await times.locator("li").count() === 5, "five Mondays");
    await field("Args").fill('{"n": 12345678901234567890');
    await press("Make the schedule");
    await see(/args are not JSON/);
    await field("Args").fill('{"n": 12345678901234567890}');
    await field("Priority").fill("100");
    await press("Make the schedule");
    await page.locator("form > .trouble").getByText("priority").waitFor();
    await field("Priority").fill("7");
    await field("Queue").fill("reports");
    await field("Catch up").selectOption("all");
    await shot("schedule-new");
    await press("Make the schedule");
    await see("weekly / <b>report</b> is made.");
    await row("weekly / <b>report</b>").getByText("0 9 * * MON").waitFor();
    assert.equal(sql("select concat_ws('|', cron, timezone, kind, args, queue, priority, catch_up, active) from millrace.schedules where name like 'weekly%'"),
        '0 9 * * MON|Europe/Berlin|report|{"n": 12345678901234567890}|reports|7|all|t');

    // Changed: the form has what is there, and the rest of it stays.
    await press("Edit: weekly / <b>report</b>");
    await until(async () => await field("Cron").inputValue() === "0 9 * * MON", "the form of the schedule");
    assert.ok(await field("Name").isDisabled());
    assert.match(await field("Args").inputValue(), /"n": 12345678901234567890/);
    await field("Cron").fill("@hourly");
    await field("Active").selectOption("false");
    await press("Save");
    await see("weekly / <b>report</b> is changed.");
    assert.equal(sql("select concat_ws('|', cron, timezone, kind, args, queue, priority, catch_up, active) from millrace.schedules where name like 'weekly%'"),
        '@hourly|Europe/Berlin|report|{"n": 12345678901234567890}|reports|7|all|f');
    await press("Edit: nightly");
    await until(async () => await field("Cron").inputValue() === "0 2 * * *", "another form");
    await press("Cancel");
    await until(async () => await page.locator("form").count() === 0, "no form");

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
    await page.locator("summary").getByText(/checks are ok/).click();
    await page.getByRole("table", { name: "What is ok" }).getByRole("row").nth(1).waitFor();
    await shot("system");
    await go("#/nowhere");
    await see("No such page");
}, { allow: /api\/v1\/(cron\/next|schedules\/)/ });
