// SPDX-License-Identifier: PostgreSQL
//
// Work on a thread of its own: see errand.h.

#include "client/errand.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

struct errand_list {
    struct errand *first, **end;
};

struct errands {
    pthread_mutex_t lock;
    pthread_cond_t more;
    pthread_t thread;
    bool running; // there is a thread
    bool ending;
    struct errand_list waiting, ran; // under the lock, like `ending`
    void (*wake)(void *arg);
    void *arg;
};

static void list_init(struct errand_list *list)
{
    list->first = NULL;
    list->end = &list->first;
}

static void list_add(struct errand_list *list, struct errand *errand)
{
    errand->next = NULL;
    *list->end = errand;
    list->end = &errand->next;
}

static struct errand *list_pop(struct errand_list *list)
{
    struct errand *errand = list->first;

    if (errand) {
        list->first = errand->next;
        list->end = list->first ? list->end : &list->first;
    }
    return errand;
}

struct errands *errands_new(void (*wake)(void *arg), void *arg)
{
    struct errands *errands = calloc(1, sizeof(*errands));

    if (errands) {
        pthread_mutex_init(&errands->lock, NULL);
        pthread_cond_init(&errands->more, NULL);
        list_init(&errands->waiting);
        list_init(&errands->ran);
        errands->wake = wake;
        errands->arg = arg;
    }
    return errands;
}

static struct errand *next_errand(struct errands *errands)
{
    pthread_mutex_lock(&errands->lock);
    while (!errands->waiting.first && !errands->ending) {
        pthread_cond_wait(&errands->more, &errands->lock);
    }
    struct errand *errand = errands->ending ? NULL : list_pop(&errands->waiting);
    pthread_mutex_unlock(&errands->lock);
    return errand;
}

static void *run(void *arg)
{
    struct errands *errands = arg;
    struct errand *errand;

    while ((errand = next_errand(errands))) {
        errand->run(errand);
        pthread_mutex_lock(&errands->lock);
        list_add(&errands->ran, errand);
        pthread_mutex_unlock(&errands->lock);
        errands->wake(errands->arg);
    }
    return NULL;
}

// Signals are for the threads of the program.
static bool start(struct errands *errands)
{
    sigset_t all, before;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    errands->running = pthread_create(&errands->thread, NULL, run, errands) == 0;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return errands->running;
}

bool errands_add(struct errands *errands, struct errand *errand)
{
    if (!errands->running && !start(errands)) {
        return false;
    }
    pthread_mutex_lock(&errands->lock);
    list_add(&errands->waiting, errand);
    pthread_cond_signal(&errands->more);
    pthread_mutex_unlock(&errands->lock);
    return true;
}

void errands_collect(struct errands *errands)
{
    struct errand *errand;

    do {
        pthread_mutex_lock(&errands->lock);
        errand = list_pop(&errands->ran);
        pthread_mutex_unlock(&errands->lock);
        if (errand) {
            errand->done(errand);
        }
    } while (errand);
}

void errands_free(struct errands *errands)
{
    struct errand *errand;

    if (!errands) {
        return;
    }
    pthread_mutex_lock(&errands->lock);
    errands->ending = true;
    pthread_cond_signal(&errands->more);
    pthread_mutex_unlock(&errands->lock);
    if (errands->running) {
        pthread_join(errands->thread, NULL);
    }
    while ((errand = list_pop(&errands->waiting)) || (errand = list_pop(&errands->ran))) {
        errand->drop(errand);
    }
    pthread_cond_destroy(&errands->more);
    pthread_mutex_destroy(&errands->lock);
    free(errands);
}
