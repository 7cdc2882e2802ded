// SPDX-License-Identifier: PostgreSQL
//
// A reader sees everything and is told what it may not do.

import assert from "node:assert/strict";
import { job_of, sql, visit } from "./lib/visit.js";

await visit(async ({ page, go, see, press }) => {
    await see("Live");
    await go("#/queues/mail");
    await press("Pause");
    await see(/^Not allowed: .*admin/);
    assert.equal(sql("select paused from millrace.queues where queue = 'mail'"), "f");
    await press("Dismiss");
    await go("#/jobs/" + job_of("scheduled"));
    await press("Run now");
    await see(/^Not allowed: /);
    await press("Dismiss");
    await go("#/schedules");
    await press("Remove: off");
    await press("Remove the schedule");
    await see(/^Not allowed: /);
    assert.equal(sql("select count(*) from millrace.schedules where name = 'off'"), "1");
}, { role: "reader", allow: /403/ });
