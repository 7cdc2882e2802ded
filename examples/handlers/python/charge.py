#!/usr/bin/env python3
# SPDX-License-Identifier: PostgreSQL
#
# A handler as a child that stays:
#
#   millrace work payments --exec ./charge.py --concurrency 4 --timeout 30s
#
# Reads a job a line, writes an answer a line; several of it run at once. Standard output is for
# answers alone: what people should read goes to standard error, which is logged with the job's id.

import base64
import json
import sys
import time


def charge(job):
    args = job["args"]
    if args.get("wait_once") and "state" not in job:
        # Not yet: again in a second, this attempt not counted, and then with a state.
        return {"outcome": "snoozed", "delay": 1, "state": base64.b64encode(b"waited").decode()}
    # Longer than the timeout: the child is ended, its job tried again, and a new child started.
    time.sleep(args.get("sleep", 0))
    if args["amount"] <= 0:
        raise ValueError(f"amount must be positive, not {args['amount']}")
    return {"result": {"charged": args["amount"]}}


def answer(job):
    try:
        return charge(job)
    except Exception as error:  # a failure of one job is no reason to leave
        return {"error": f"{type(error).__name__}: {error}"}


for line in sys.stdin:
    job = json.loads(line)
    print(json.dumps({"id": job["id"], **answer(job)}), flush=True)
