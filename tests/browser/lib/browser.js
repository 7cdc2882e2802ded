// SPDX-License-Identifier: PostgreSQL
//
// One browser for all tests of a file, until SIGTERM: to start one for each visit takes longer than most visits.
// Prints its address, which lib/visit.js takes from MR_BROWSER.

import { chromium, chromium_options } from "./visit.js";

console.log((await chromium.launchServer(chromium_options)).wsEndpoint());
