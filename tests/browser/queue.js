// SPDX-License-Identifier: PostgreSQL
//
// A queue: pause and resume, settings with good and bad values, purge with its question, drop.

import assert from "node:assert/strict";
import { sql, until, visit } from "./lib/visit.js";

await visit(async ({ page, go, see, press, row, shot }) => {
    await go("#/queues");
    await row("mail").waitFor();
    await page.getByRole("searchbox").fill("pa");
    await until(async () => await row("mail").count() === 0 && await row("pay").count() === 1, "the filter");

    await go("#/queues/mail");
    await press("Pause");
    await see("mail is paused");
    assert.equal(sql("select paused from millrace.queues where queue = 'mail'"), "t");
    await press("Resume");
    await see("mail goes on");
    assert.equal(sql("select paused from millrace.queues where queue = 'mail'"), "f");
    await shot("queue");

    await press("Edit settings");
    await page.getByLabel("warn_depth", { exact: true }).fill("77");
    await page.getByLabel("concurrency", { exact: true }).fill("9");
    await press("Save concurrency, warn_depth");
    await see("set.");
    assert.equal(sql("select settings ->> 'warn_depth', settings ->> 'concurrency' from millrace.queues where queue = 'mail'"), "77|9");
    await press("Edit settings");
    assert.equal(await page.getByLabel("concurrency", { exact: true }).inputValue(), "9", "the form has what was set");
    await page.getByLabel("concurrency", { exact: true }).fill("");
    await page.getByLabel("lease", { exact: true }).fill("soon");
    await press("Save concurrency, lease");
    await page.getByRole("form").getByRole("alert").getByText("setting lease does not accept").waitFor();
    await page.getByLabel("lease", { exact: true }).fill("45 seconds");
    await press("Save concurrency, lease");
    await until(() => sql("select settings ->> 'lease' from millrace.queues where queue = 'mail'") === "00:00:45", "the lease");
    assert.equal(sql("select coalesce(settings ->> 'concurrency', 'off') from millrace.queues where queue = 'mail'"), "off");

    await press("Purge");
    const question = page.getByRole("dialog");
    await question.getByText("This removes 120 waiting jobs of mail for good").waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor({ state: "detached" });
    assert.equal(sql("select millrace.depth('mail')"), "120");
    await press("Purge");
    await press("Remove them");
    await see("120 jobs removed from mail");
    assert.equal(sql("select millrace.depth('mail')"), "0");

    await go("#/queues/idle");
    await press("Drop");
    await press("Drop the queue");
    await page.getByRole("heading", { name: "Queues", exact: true }).waitFor();
    assert.equal(sql("select count(*) from millrace.queues where queue = 'idle'"), "0");
}, { allow: /400/ });

await visit(async ({ page, go }) => {
    await go("#/queues/nowhere");
    await page.getByRole("alert").getByText("nowhere").waitFor();
}, { allow: /404/ });
