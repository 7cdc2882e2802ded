// SPDX-License-Identifier: PostgreSQL
//
// What the functions call: a service with the troubles of a real one, which remembers every step
// that it was asked for. It listens on a free port of the loopback and says which.
//
//   POST /ok        200
//   POST /flaky     500 the first two times, then 200
//   POST /limited   429 with Retry-After: 1 the first time, then 200
//   POST /later     the same with Retry-After: 20
//   POST /slow      200 after 200 ms
//   POST /crawl     200 after 800 ms
//   POST /hang      no answer for five seconds the first time, then 200
//   POST /broken    500
//   POST /gone      404
//   GET  /stats     {"requests", "effects", "repeated", "failed", "bytes"}, the last of all bodies
//
// A step is known by its Idempotency-Key, UUID/STEP, where the last twelve digits of the UUID are
// the number of the invocation. Done the first time it is an effect, later it is repeated: answered
// in the same way, and nothing else happens.
//
//   service INVOCATIONS

#include <arpa/inet.h>
#include <microhttpd.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { STEPS = 2, INVOCATIONS_MAX = 100000000, CONNECTION_TIMEOUT_S = 60 };

struct step {
    unsigned char asked; // saturates
    unsigned char done;
};

struct service {
    pthread_mutex_t mutex;
    size_t invocations;
    struct step *steps; // STEPS of each invocation
    long long requests, effects, repeated, failed, bytes;
};

struct behaviour {
    const char *path;
    unsigned bad_status; // 0: it does not fail
    unsigned bad_times;  // the first so many times
    long bad_after_ms;
    long good_after_ms;
    const char *retry_after; // NULL: it does not say
};

static const struct behaviour behaviours[] = {
    {"/ok", 0, 0, 0, 0, NULL},        {"/flaky", 500, 2, 0, 0, NULL},
    {"/limited", 429, 1, 0, 0, "1"},  {"/later", 429, 1, 0, 0, "20"},
    {"/slow", 0, 0, 0, 200, NULL},    {"/crawl", 0, 0, 0, 800, NULL},
    {"/hang", 500, 1, 5000, 0, NULL}, {"/broken", 500, 255, 0, 0, NULL},
    {"/gone", 404, 255, 0, 0, NULL},
};

static void sleep_ms(long ms)
{
    struct timespec time = {ms / 1000, ms % 1000 * 1000000};

    nanosleep(&time, NULL);
}

// The step of a key, NULL: it is none.
static struct step *step_of(struct service *service, const char *key)
{
    char *end;
    unsigned long long number;

    if (key == NULL || strlen(key) != 38 || key[36] != '/' || key[37] < '1' ||
        key[37] > '0' + STEPS) {
        return NULL;
    }
    number = strtoull(key + 24, &end, 16);
    return end == key + 36 && number < service->invocations
               ? service->steps + number * STEPS + (key[37] - '1')
               : NULL;
}

// What a step is answered with. An effect is counted before it is answered: whoever does not get
// the answer asks again.
static unsigned step_ask(struct service *service, struct step *step, const struct behaviour *how)
{
    unsigned status;

    pthread_mutex_lock(&service->mutex);
    status = how->bad_times == 255 || step->asked < how->bad_times ? how->bad_status : 200;
    service->requests++;
    step->asked += step->asked < 255;
    if (status != 200) {
        service->failed++;
    } else if (step->done) {
        service->repeated++;
    } else {
        step->done = 1;
        service->effects++;
    }
    pthread_mutex_unlock(&service->mutex);
    return status;
}

static enum MHD_Result answer(struct MHD_Connection *connection, unsigned status, const char *text,
                              const char *retry_after)
{
    struct MHD_Response *response =
        MHD_create_response_from_buffer(strlen(text), (void *)text, MHD_RESPMEM_MUST_COPY);
    enum MHD_Result result;

    MHD_add_response_header(response, "Content-Type", "application/json");
    if (status == 429 && retry_after != NULL) {
        MHD_add_response_header(response, "Retry-After", retry_after);
    }
    result = MHD_queue_response(connection, status, response);
    MHD_destroy_response(response);
    return result;
}

static enum MHD_Result answer_stats(struct service *service, struct MHD_Connection *connection)
{
    char text[256];

    pthread_mutex_lock(&service->mutex);
    snprintf(text, sizeof(text),
             "{\"requests\": %lld, \"effects\": %lld, \"repeated\": %lld, \"failed\": %lld, "
             "\"bytes\": %lld}\n",
             service->requests, service->effects, service->repeated, service->failed,
             service->bytes);
    pthread_mutex_unlock(&service->mutex);
    return answer(connection, 200, text, NULL);
}

static enum MHD_Result answer_step(struct service *service, struct MHD_Connection *connection,
                                   const struct behaviour *how)
{
    const char *key = MHD_lookup_connection_value(connection, MHD_HEADER_KIND, "Idempotency-Key");
    struct step *step = step_of(service, key);
    char text[128];
    unsigned status;

    if (step == NULL) {
        return answer(connection, 400, "{\"error\": \"no Idempotency-Key of a step\"}\n", NULL);
    }
    status = step_ask(service, step, how);
    sleep_ms(status == 200 ? how->good_after_ms : how->bad_after_ms);
    snprintf(text, sizeof(text), "{\"key\": \"%s\", \"status\": %u}\n", key, status);
    return answer(connection, status, text, how->retry_after);
}

// Called for the head of a request, then for its body, then with nothing left.
static enum MHD_Result on_request(void *arg, struct MHD_Connection *connection, const char *path,
                                  const char *method, const char *version, const char *data,
                                  size_t *size, void **state)
{
    struct service *service = arg;

    (void)method;
    (void)version;
    (void)data;
    if (*state == NULL) {
        *state = service;
        return MHD_YES;
    }
    if (*size > 0) {
        pthread_mutex_lock(&service->mutex);
        service->bytes += (long long)*size;
        pthread_mutex_unlock(&service->mutex);
        *size = 0;
        return MHD_YES;
    }
    *state = NULL;
    if (strcmp(path, "/stats") == 0) {
        return answer_stats(service, connection);
    }
    for (size_t i = 0; i < sizeof(behaviours) / sizeof(behaviours[0]); i++) {
        if (strcmp(path, behaviours[i].path) == 0) {
            return answer_step(service, connection, &behaviours[i]);
        }
    }
    return answer(connection, 404, "{\"error\": \"no such page\"}\n", NULL);
}

static int serve(struct service *service)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    // A thread for each connection: one that is slow keeps nobody else waiting.
    struct MHD_Daemon *daemon = MHD_start_daemon(
        MHD_USE_INTERNAL_POLLING_THREAD | MHD_USE_THREAD_PER_CONNECTION, 0, NULL, NULL, on_request,
        service, MHD_OPTION_SOCK_ADDR, &address, MHD_OPTION_CONNECTION_TIMEOUT,
        (unsigned)CONNECTION_TIMEOUT_S, MHD_OPTION_END);
    const union MHD_DaemonInfo *port;
    sigset_t signals;
    int number;

    if (daemon == NULL) {
        fprintf(stderr, "service: cannot listen on the loopback\n");
        return 1;
    }
    port = MHD_get_daemon_info(daemon, MHD_DAEMON_INFO_BIND_PORT);
    printf("service listens on %d\n", port != NULL ? port->port : 0);
    fflush(stdout);
    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    sigwait(&signals, &number);
    MHD_stop_daemon(daemon);
    return 0;
}

// Before any thread is there, so that none of them gets one.
static void signals_block(void)
{
    sigset_t signals;

    sigemptyset(&signals);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    pthread_sigmask(SIG_BLOCK, &signals, NULL);
}

int main(int argc, char **argv)
{
    struct service service = {.mutex = PTHREAD_MUTEX_INITIALIZER};
    char *end = NULL;
    int status;

    service.invocations = argc == 2 ? strtoul(argv[1], &end, 10) : 0;
    if (end == NULL || *end != '\0' || service.invocations < 1 ||
        service.invocations > INVOCATIONS_MAX) {
        fprintf(stderr, "usage: service INVOCATIONS\n");
        return 2;
    }
    service.steps = calloc(service.invocations * STEPS, sizeof(*service.steps));
    if (service.steps == NULL) {
        fprintf(stderr, "service: out of memory\n");
        return 1;
    }
    signals_block();
    status = serve(&service);
    free(service.steps);
    return status;
}
