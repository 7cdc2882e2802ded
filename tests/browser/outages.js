// SPDX-License-Identifier: PostgreSQL
//
// The daemon and the database leave and come back while the page is open.
//
// MR_DAEMON_PID is the daemon's, MR_DAEMON_CONF its configuration, with a fixed port; MR_SERVER is the
// directory of the server.

import { execFileSync, spawn } from "node:child_process";
import { sql, until, visit } from "./lib/visit.js";

const pgserver = (verb) => execFileSync(process.env.MR_ROOT + "/tools/pgserver", [verb, process.env.MR_SERVER], { stdio: "ignore" });
const alive = (pid) => {
    try {
        process.kill(pid, 0);
        return true;
    } catch {
        return false;
    }
};
let daemon = null;

await visit(async ({ page, go, see, tile, shot }) => {
    const live = page.locator(".link.good");
    await live.waitFor();

    const pid = Number(process.env.MR_DAEMON_PID);
    process.kill(pid);
    await until(() => !alive(pid), "the end of the daemon");
    await see("The daemon does not answer: reconnecting.");
    await shot("daemon-gone");
    await go("#/workers");
    await page.locator("main").getByRole("alert").waitFor();
    daemon = spawn(process.env.MR_BIN, ["serve", "-c", process.env.MR_DAEMON_CONF], { stdio: "ignore" });
    await live.waitFor();
    await page.getByRole("table", { name: "Workers" }).waitFor();
    await until(async () => await page.getByRole("alert").count() === 0, "no alarm");

    await go("#/");
    pgserver("stop");
    await see("The database cannot be reached");
    await shot("database-gone");
    await go("#/schedules");
    await page.locator("main").getByRole("alert").waitFor();
    pgserver("start");
    await page.getByRole("table", { name: "Schedules" }).waitFor();
    await until(async () => await page.getByRole("alert").count() === 0, "no alarm");
    await go("#/");
    const before = Number((await tile("Available")).replaceAll(",", ""));
    sql("select millrace.enqueue('after', queue => 'after')");
    await until(async () => Number((await tile("Available")).replaceAll(",", "")) === before + 1, "live figures");
}, { allow: /503|ERR_|api/ }).finally(() => daemon?.kill("SIGKILL"));
