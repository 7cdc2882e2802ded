// SPDX-License-Identifier: PostgreSQL
//
// One job's story in every status, and everything that can be done with it.

import assert from "node:assert/strict";
import { job_of, sql, until, visit } from "./lib/visit.js";

const status_of = (ref) => sql(`select status from millrace.jobs where ref = '${ref}'`);

await visit(async ({ page, go, see, press, shot }) => {
    const open = async (id, status) => {
        await go("#/jobs/" + id);
        await page.getByRole("heading", { name: "Jobs / " + id }).waitFor();
        await page.locator(".health .badge").filter({ hasText: status }).waitFor();
    };
    const buttons = () => page.locator("main .actions button").allInnerTexts();

    await open(job_of("available"), "available");
    await see('"n": 12345678901234567890'); // as it was given, not as a double
    assert.deepEqual(await buttons(), ["Pause", "Cancel"]);

    await open(job_of("scheduled"), "scheduled");
    assert.deepEqual(await buttons(), ["Run now", "Pause", "Cancel"]);
    await open(job_of("runs"), "scheduled");
    await press("Run now");
    await until(() => status_of("runs") === "available", "run now");
    await open(job_of("pauses"), "scheduled");
    await press("Pause");
    await page.locator(".health .badge").filter({ hasText: "paused" }).waitFor();
    await press("Resume");
    await until(() => status_of("pauses") !== "paused", "resume");
    await open(job_of("cancels"), "scheduled");
    await press("Cancel");
    await press("Cancel the job");
    await until(() => status_of("cancels") === "cancelled", "cancel");

    await open(job_of("cancelled"), "cancelled");
    await see("not wanted any more");
    await open(job_of("waiting"), "waiting");
    await page.getByRole("link", { name: job_of("first"), exact: true }).waitFor();
    await open(job_of("expired"), "expired");

    await open(job_of("running"), "running");
    await see("42.5 %");
    await see("page 170 of <b>400</b>");
    await page.locator(".timeline").getByText("busy-1").waitFor();
    await shot("job-running");
    await open(job_of("retrying"), "scheduled");
    await see("Attempt 2 is due");
    await page.locator(".timeline pre").getByText("bank is closed").waitFor();

    const completed = sql("select min(id) from millrace.jobs where queue = 'pay' and status = 'completed'");
    await open(completed, "completed");
    await see('"charged": true');
    assert.deepEqual(await buttons(), []);

    const dead = sql("select min(id) from millrace.dead_letters where queue = 'pay'");
    await open(dead, "dead");
    await page.locator(".timeline pre").getByText("card declined").waitFor();
    await shot("job-dead");
    await press("Replay");
    await until(() => sql(`select status from millrace.jobs where id = ${dead}`) === "available", "replay");
    await page.locator(".health .badge").filter({ hasText: "available" }).waitFor();

    const part = (title) => page.getByLabel(title, { exact: true });
    await open(job_of("parts"), "available");
    assert.equal(await part("State").innerText(), '{\n  "<b>": null,\n  "step": 12345678901234567890\n}');
    await see("43 B, json");
    assert.match(await part("Blob").innerText(), /^000000  00 ff 41 00 ff 41 00 ff 41 00 ff 41 00 ff 41 00 \.\.A/);
    await see("30.0 KB, hex");
    await see("The first 16.4 KB of 30.0 KB are shown.");
    await shot("job-parts");
    await open(job_of("texts"), "available");
    assert.equal(await part("State").innerText(), "<script>window.hacked=1</script> naïve");
    await see("The first 16.4 KB of 50.0 KB are shown.");

    await open(job_of("large"), "available");
    assert.ok((await page.locator("pre").last().innerText()).length <= 20000);
    await press("Show all");
    await until(async () => (await page.locator("pre").last().innerText()).length > 60000, "all of it");
});

for (const [id, allow] of [["999999999", /404/], ["nonsense", /400/]]) {
    await visit(async ({ page, go }) => {
        await go("#/jobs/" + id);
        await page.getByRole("alert").waitFor();
    }, { allow });
}
