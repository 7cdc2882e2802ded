/* SPDX-License-Identifier: PostgreSQL */
/*
 * The accounts of the jobs, by id. Any thread writes at any time.
 *
 * `held` of a job is attempt * 2 + 1 while a lease that we know of holds it, attempt * 2 after its
 * holder began to give it back. Hence:
 *   - a delivery of an attempt that is held says that two live leases hold it;
 *   - a delivery of a larger attempt says that the older lease was rescued: a write under it must
 * fail from then on;
 *   - a delivery of a smaller attempt is one whose news came late, after a rescue.
 * At the end deliveries = final one + failures + returns + losses, and losses are what the attempt
 * tells.
 */
#include "stress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum fate { FATE_NONE, FATE_COMMITTED, FATE_ROLLED_BACK, FATE_UNKNOWN };

struct account {
    atomic_uint held;
    atomic_ushort deliveries;
    atomic_ushort failures;
    atomic_ushort returns;
    atomic_uchar fate;
    atomic_uchar completed;
    atomic_uchar dead;
    atomic_uchar unclear; /* a finish whose answer was lost */
    atomic_uchar unknown; /* transactions with this id whose commit got no answer */
};

struct group {
    struct group *next;
    int n;
    int64_t ids[];
};

static struct account *accounts;
static atomic_long top_id;
static struct group *unknown_groups;
static pthread_mutex_t group_lock = PTHREAD_MUTEX_INITIALIZER;
atomic_long ledger_committed_n, ledger_completed_n, ledger_dead_n, ledger_rolled_back_n,
    ledger_unknown_n;

void ledger_init(void)
{
    accounts = mmap(NULL, IDS_MAX * sizeof(*accounts), PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (accounts == MAP_FAILED)
        fatal("no memory for the ledger");
}

static struct account *account_of(int64_t id)
{
    long top = atomic_load(&top_id);

    if (id <= 0 || id >= IDS_MAX)
        fatal("job id %lld is out of range", (long long)id);
    while (id > top && !atomic_compare_exchange_weak(&top_id, &top, id))
        ;
    return &accounts[id];
}

static void set_fate(const int64_t *ids, int n, enum fate fate)
{
    for (int i = 0; i < n; i++)
        if (atomic_exchange(&account_of(ids[i])->fate, fate) != FATE_NONE)
            fatal("job id %lld was given out twice by enqueue", (long long)ids[i]);
}

void ledger_commit(const int64_t *ids, int n)
{
    set_fate(ids, n, FATE_COMMITTED);
    atomic_fetch_add(&ledger_committed_n, n);
}

void ledger_roll_back(const int64_t *ids, int n)
{
    /* A position may be given out again after a crash of the server, when its transaction left no
     * trace. */
    if (!course.opt.faults)
        set_fate(ids, n, FATE_ROLLED_BACK);
    atomic_fetch_add(&ledger_rolled_back_n, n);
}

/* The connection broke between the commit and its answer: all of these or none. */
void ledger_unknown(const int64_t *ids, int n)
{
    struct group *group = malloc(sizeof(*group) + (size_t)n * sizeof(*ids));

    if (!group)
        fatal("out of memory");
    group->n = n;
    memcpy(group->ids, ids, (size_t)n * sizeof(*ids));
    for (int i = 0; i < n; i++)
        atomic_fetch_add(&account_of(ids[i])->unknown, 1);
    pthread_mutex_lock(&group_lock);
    group->next = unknown_groups;
    unknown_groups = group;
    pthread_mutex_unlock(&group_lock);
    atomic_fetch_add(&ledger_unknown_n, n);
}

void ledger_deliver(int64_t id, int attempt, const char *lease)
{
    struct account *account = account_of(id);
    unsigned old = atomic_load(&account->held), fresh = (unsigned)attempt * 2 + 1;

    atomic_fetch_add(&account->deliveries, 1);
    do {
        if ((int)(old >> 1) > attempt)
            return;
        if (old == fresh)
            fatal("two live leases hold attempt %d of job %lld; the second is %s", attempt,
                  (long long)id, lease);
        if (atomic_load(&account->completed) || atomic_load(&account->dead))
            fatal("job %lld was delivered (attempt %d, lease %s) after it had ended", (long long)id,
                  attempt, lease);
    } while (!atomic_compare_exchange_weak(&account->held, &old, fresh));
}

/* Whether a later attempt was delivered: the lease of this one is void for sure. */
bool ledger_is_void(int64_t id, int attempt)
{
    return (int)(atomic_load(&account_of(id)->held) >> 1) > attempt;
}

/* Called before the server is asked to take the job back: its next delivery may come before our
 * answer. */
void ledger_give_up(int64_t id, int attempt)
{
    unsigned old = (unsigned)attempt * 2 + 1;

    atomic_compare_exchange_strong(&account_of(id)->held, &old, (unsigned)attempt * 2);
}

/* The call did not happen after all. */
void ledger_take_back(int64_t id, int attempt)
{
    unsigned old = (unsigned)attempt * 2;

    atomic_compare_exchange_strong(&account_of(id)->held, &old, (unsigned)attempt * 2 + 1);
}

void ledger_completed(int64_t id, int attempt)
{
    struct account *account = account_of(id);

    if (atomic_fetch_add(&account->completed, 1) != 0)
        fatal("job %lld was completed twice, now in attempt %d", (long long)id, attempt);
    if (ledger_is_void(id, attempt))
        fatal("job %lld was completed in attempt %d under a void lease", (long long)id, attempt);
    atomic_fetch_add(&ledger_completed_n, 1);
}

void ledger_dead(int64_t id, int attempt)
{
    struct account *account = account_of(id);

    if (atomic_fetch_add(&account->dead, 1) != 0 || atomic_load(&account->completed))
        fatal("job %lld died after it had ended, in attempt %d", (long long)id, attempt);
    atomic_fetch_add(&ledger_dead_n, 1);
}

void ledger_failed(int64_t id)
{
    atomic_fetch_add(&account_of(id)->failures, 1);
}

void ledger_returned(int64_t id)
{
    atomic_fetch_add(&account_of(id)->returns, 1);
}

void ledger_unclear(int64_t id)
{
    atomic_store(&account_of(id)->unclear, 1);
}

static bool account_open(const struct account *account)
{
    return atomic_load(&account->fate) == FATE_COMMITTED && !atomic_load(&account->completed) &&
           !atomic_load(&account->dead) && !atomic_load(&account->unclear);
}

/* The number of committed jobs that have not ended, as far as we know; some of their ids in ids. */
long ledger_open(int64_t *ids, int max)
{
    long n = 0, top = atomic_load(&top_id);

    for (long id = 1; id <= top; id++)
        if (account_open(&accounts[id]) && n++ < max)
            ids[n - 1] = id;
    return n;
}

static void check_account(long id, const struct account *account)
{
    unsigned attempt = atomic_load(&account->held) >> 1;
    unsigned ends = (unsigned)atomic_load(&account->completed) + atomic_load(&account->dead);
    unsigned losses, expected;

    if (ends != 1)
        fatal("job %ld ended %u times; delivered %u times, last attempt %u", id, ends,
              atomic_load(&account->deliveries), attempt);
    losses = attempt - 1 - (atomic_load(&account->failures) - atomic_load(&account->dead));
    expected = 1 + (unsigned)(atomic_load(&account->failures) - atomic_load(&account->dead)) +
               atomic_load(&account->returns) + losses;
    if (atomic_load(&account->deliveries) != expected)
        fatal(
            "job %ld was delivered %u times, but its story accounts for %u: %u failures, %u returns, %u losses",
            id, atomic_load(&account->deliveries), expected, atomic_load(&account->failures),
            atomic_load(&account->returns), losses);
}

/*
 * A transaction is there as a whole or not at all. Positions that left no trace before a crash are
 * given out again: of a group whose ids were used by somebody else too nothing can be told.
 */
static void check_groups(void)
{
    for (struct group *group = unknown_groups; group; group = group->next) {
        int seen = 0;
        bool reused = false;

        for (int i = 0; i < group->n; i++) {
            struct account *account = account_of(group->ids[i]);

            seen += atomic_load(&account->deliveries) > 0;
            reused = reused || atomic_load(&account->fate) != FATE_NONE ||
                     atomic_load(&account->unknown) > 1;
        }
        if (!reused && seen != 0 && seen != group->n)
            fatal(
                "a transaction was half committed: %d of its %d jobs were delivered, the first is %lld",
                seen, group->n, (long long)group->ids[0]);
    }
}

/* Everything has been drained: is every account settled? */
void ledger_check(void)
{
    long top = atomic_load(&top_id);

    for (long id = 1; id <= top; id++) {
        struct account *account = &accounts[id];
        enum fate fate = atomic_load(&account->fate);

        if (fate == FATE_COMMITTED && account_open(account))
            fatal("job %ld was committed and never ended; delivered %u times", id,
                  atomic_load(&account->deliveries));
        if (fate == FATE_ROLLED_BACK && atomic_load(&account->deliveries))
            fatal("job %ld was rolled back and delivered", id);
        if (!course.opt.faults) {
            if (fate == FATE_NONE && atomic_load(&account->deliveries))
                fatal("job %ld was delivered, but nobody enqueued it", id);
            if (fate == FATE_COMMITTED)
                check_account(id, account);
        }
    }
    check_groups();
}
