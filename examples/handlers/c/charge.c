// SPDX-License-Identifier: PostgreSQL
//
// A handler as a C function in a shared object:
//
//   cc -shared -fPIC -o charge.so charge.c $(pkg-config --cflags millrace) -ljansson
//   millrace work payments --plugin ./charge.so --concurrency 4
//
// Runs on threads of the worker, several at once. Nobody can end it from outside: a job that is
// over its timeout goes on, and the log says so.

#include <jansson.h>
#include <millrace/millrace.h>
#include <stdio.h>
#include <time.h>

mr_handler millrace_handler;

static void sleep_for(double seconds)
{
    struct timespec time = {.tv_sec = (time_t)seconds};

    time.tv_nsec = (long)((seconds - (double)time.tv_sec) * 1e9);
    nanosleep(&time, NULL);
}

// The amount goes into the result; what is not positive fails and is tried again later.
static int charge(double amount, mr_outcome *outcome)
{
    char text[100];

    if (amount <= 0) {
        snprintf(text, sizeof(text), "amount must be positive, not %g", amount);
        return mr_outcome_fail(outcome, text, 0, 0);
    }
    snprintf(text, sizeof(text), "{\"charged\": %g}", amount);
    return mr_outcome_complete(outcome, text);
}

int millrace_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    json_t *args = json_loads(job->args, 0, NULL);
    int status;

    (void)arg;
    if (json_object_get(args, "wait_once") && !job->state) {
        // not yet: again in a second, this attempt not counted, and then with a state
        mr_outcome_snooze(outcome, 1000);
        status = mr_outcome_state(outcome, "waited", 6);
    } else {
        sleep_for(json_number_value(json_object_get(args, "sleep")));
        status = charge(json_number_value(json_object_get(args, "amount")), outcome);
    }
    json_decref(args);
    return status;
}
