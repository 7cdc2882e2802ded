// SPDX-License-Identifier: PostgreSQL
//
// The handler: one step of one invocation of a function, which is a request to a service.
//
//   args  {"method": "POST", "url": "/ok", "headers": {"X-Team": "7"}, "steps": 2}
//   blob  the body of the request
//   state {"step": 1, "tries": 0, "stack": "..."}, the function between its steps and its tries
//
// A good answer goes into the state and the next step comes with another claim, until the last one
// completes the job. A bad one goes into the state, too, and is tried again: after what the service
// says (429), with the backoff of the kind (5xx, nobody there, no answer in time), or never (any
// other). With "kills" in its args an invocation takes its worker along.
//
// Environment: CYCLOTRON_SERVICE, the service's address.

#include <curl/curl.h>
#include <jansson.h>
#include <millrace/millrace.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ANSWER_MAX_BYTES = 4096, URL_MAX_BYTES = 2048, STEPS_MAX = 9 };
static const long answer_ms = 3000; // for one request

struct answer {
    long status; // 0: none
    curl_off_t retry_after_s;
    size_t size;
    char text[ANSWER_MAX_BYTES + 1];
};

mr_handler millrace_handler;

// ---- the request ------------------------------------------------------------------------------

static pthread_key_t handle_key;
static pthread_once_t handle_once = PTHREAD_ONCE_INIT;

static void handle_free(void *curl)
{
    curl_easy_cleanup(curl);
}

static void handle_init(void)
{
    curl_global_init(CURL_GLOBAL_DEFAULT);
    if (pthread_key_create(&handle_key, handle_free) != 0) {
        abort();
    }
}

// The thread's own, so that its connection is kept. NULL: out of memory.
static CURL *handle_mine(void)
{
    CURL *curl;

    pthread_once(&handle_once, handle_init);
    curl = pthread_getspecific(handle_key);
    if (curl == NULL) {
        curl = curl_easy_init();
        if (curl != NULL && pthread_setspecific(handle_key, curl) != 0) {
            curl_easy_cleanup(curl);
            curl = NULL;
        }
    } else {
        curl_easy_reset(curl);
    }
    return curl;
}

static size_t answer_add(const char *data, size_t size, size_t count, void *arg)
{
    struct answer *answer = arg;
    size_t all = size * count;
    size_t room = ANSWER_MAX_BYTES - answer->size;

    memcpy(answer->text + answer->size, data, all < room ? all : room);
    answer->size += all < room ? all : room;
    return all;
}

static struct curl_slist *header_add(struct curl_slist *headers, const char *name,
                                     const char *value)
{
    char line[512];
    struct curl_slist *longer;

    snprintf(line, sizeof(line), "%s: %s", name, value);
    longer = curl_slist_append(headers, line);
    return longer != NULL ? longer : headers;
}

// Those of the args, and the key by which the service knows a step that it has done before.
static struct curl_slist *headers_of(const mr_claimed_job *job, json_t *args, int step)
{
    struct curl_slist *headers = NULL;
    const char *name;
    json_t *value;
    char key[128];

    json_object_foreach(json_object_get(args, "headers"), name, value)
    {
        headers = header_add(headers, name, json_string_value(value));
    }
    snprintf(key, sizeof(key), "%s/%d", job->ref != NULL ? job->ref : "", step);
    return header_add(headers, "Idempotency-Key", key);
}

static int fetch(const mr_claimed_job *job, json_t *args, int step, struct answer *answer)
{
    const char *base = getenv("CYCLOTRON_SERVICE");
    const char *path = json_string_value(json_object_get(args, "url"));
    const char *method = json_string_value(json_object_get(args, "method"));
    struct curl_slist *headers = headers_of(job, args, step);
    CURL *curl = handle_mine();
    char url[URL_MAX_BYTES];

    if (curl == NULL || base == NULL || path == NULL) {
        curl_slist_free_all(headers);
        return -1;
    }
    snprintf(url, sizeof(url), "%s%s", base, path);
    curl_easy_setopt(curl, CURLOPT_URL, url);
    curl_easy_setopt(curl, CURLOPT_CUSTOMREQUEST, method != NULL ? method : "POST");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDS, job->blob != NULL ? job->blob : "");
    curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE, (long)job->blob_size);
    curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers);
    curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, answer_ms);
    curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L);
    curl_easy_setopt(curl, CURLOPT_NOPROXY, "*");
    curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, answer_add);
    curl_easy_setopt(curl, CURLOPT_WRITEDATA, answer);
    if (curl_easy_perform(curl) == CURLE_OK) {
        curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &answer->status);
        curl_easy_getinfo(curl, CURLINFO_RETRY_AFTER, &answer->retry_after_s);
    }
    answer->text[answer->size] = '\0';
    curl_slist_free_all(headers);
    return 0;
}

// ---- the function -----------------------------------------------------------------------------

static int state_say(mr_outcome *outcome, json_t *state)
{
    char *text = json_dumps(state, JSON_COMPACT);
    int status = text != NULL ? mr_outcome_state(outcome, text, strlen(text)) : MR_ENOMEM;

    free(text);
    return status;
}

static int step_done(mr_outcome *outcome, json_t *state, int step, int steps,
                     const struct answer *answer)
{
    json_object_set_new(state, "response", json_string(answer->text));
    if (step >= steps) {
        return mr_outcome_complete(outcome, NULL);
    }
    json_object_set_new(state, "step", json_integer(step + 1));
    mr_outcome_requeue(outcome, "{}");
    return state_say(outcome, state);
}

static int step_failed(mr_outcome *outcome, json_t *state, const struct answer *answer)
{
    int for_good = answer->status >= 300 && answer->status < 500 && answer->status != 429;
    char why[64] = "the service gave no answer";

    if (answer->status != 0) {
        snprintf(why, sizeof(why), "the service answered %ld", answer->status);
    }
    json_object_set_new(state, "tries",
                        json_integer(json_integer_value(json_object_get(state, "tries")) + 1));
    json_object_set_new(state, "status", json_integer(answer->status));
    mr_outcome_fail(outcome, why, answer->retry_after_s * 1000, for_good);
    return state_say(outcome, state);
}

static int invoke(const mr_claimed_job *job, mr_outcome *outcome, json_t *args, json_t *state)
{
    struct answer answer = {0};
    int step = (int)json_integer_value(json_object_get(state, "step"));
    int steps = (int)json_integer_value(json_object_get(args, "steps"));

    if (json_is_true(json_object_get(args, "kills"))) {
        raise(SIGKILL);
    }
    if (step < 1 || step > STEPS_MAX || fetch(job, args, step, &answer) != 0) {
        return mr_outcome_fail(outcome, "no function: url or step is missing", 0, 1);
    }
    if (answer.status >= 200 && answer.status < 300) {
        return step_done(outcome, state, step, steps, &answer);
    }
    return step_failed(outcome, state, &answer);
}

int millrace_handler(const mr_claimed_job *job, mr_outcome *outcome, void *arg)
{
    json_t *args = json_loads(job->args, 0, NULL);
    json_t *state = json_loadb(job->state != NULL ? job->state : "", job->state_size, 0, NULL);
    int status;

    (void)arg;
    status = invoke(job, outcome, args, state);
    json_decref(args);
    json_decref(state);
    return status;
}
