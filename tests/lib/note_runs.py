# SPDX-License-Identifier: PostgreSQL
#
# A handler for exec that takes a while: note_runs.py FILE SECONDS writes "ID ATTEMPT" of each job to
# the file when it begins it, and answers after so many seconds.
import json
import os
import sys
import time

runs = os.open(sys.argv[1], os.O_WRONLY | os.O_APPEND)
seconds = float(sys.argv[2])
for line in sys.stdin:
    job = json.loads(line)
    os.write(runs, b"%d %d\n" % (job["id"], job["attempt"]))
    time.sleep(seconds)
    print(json.dumps({"id": job["id"]}), flush=True)
