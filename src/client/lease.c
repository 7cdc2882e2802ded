// SPDX-License-Identifier: PostgreSQL
//
// A lease in a worker's hands: see lease.h.

#include "client/lease.h"

#include <stdlib.h>

#include "client/batch.h"
#include "client/delivery.h"

void entry_list_init(struct entry_list *list)
{
    list->first = NULL;
    list->end = &list->first;
    list->count = 0;
}

void entry_list_add(struct entry_list *list, struct entry *entry)
{
    entry->next = NULL;
    *list->end = entry;
    list->end = &entry->next;
    list->count++;
}

void entry_list_append(struct entry_list *list, struct entry_list *from)
{
    if (from->first) {
        *list->end = from->first;
        list->end = from->end;
        list->count += from->count;
        entry_list_init(from);
    }
}

struct entry *entry_list_pop(struct entry_list *list)
{
    struct entry *entry = list->first;

    if (entry) {
        list->first = entry->next;
        list->count--;
        if (!list->first) {
            list->end = &list->first;
        }
    }
    return entry;
}

void entry_free(struct entry *entry)
{
    outcome_done(&entry->outcome);
    free(entry);
}

void entry_list_done(struct entry_list *list)
{
    struct entry *entry;

    while ((entry = entry_list_pop(list))) {
        entry_free(entry);
    }
}

bool entry_list_plain(const struct entry_list *list)
{
    for (const struct entry *entry = list->first; entry; entry = entry->next) {
        if (entry->outcome.kind != OUTCOME_COMPLETED || entry->outcome.members.len > 0) {
            return false;
        }
    }
    return true;
}

struct lease *lease_new(mr_batch *batch, int64_t length_ms, int64_t now_ms,
                        struct delivery *delivery)
{
    int count = (int)mr_batch_count(batch);
    struct lease *lease = calloc(1, sizeof(*lease));
    struct held_job *helds = calloc((size_t)count + 1, sizeof(*helds));

    if (!lease || !helds) {
        free(lease);
        free(helds);
        mr_batch_free(batch);
        delivery_free(delivery);
        return NULL;
    }
    *lease = (struct lease){
        .batch = batch,
        .delivery = delivery,
        .text = batch_lease(batch),
        .helds = helds,
        .count = count,
        .open = count,
        .length_ms = length_ms,
        .beat_at_ms = now_ms + length_ms / 3,
    };
    entry_list_init(&lease->ready);
    entry_list_init(&lease->sent);
    entry_list_init(&lease->unclear);
    for (int i = 0; i < count; i++) {
        helds[i] = (struct held_job){.job = mr_batch_job(batch, (size_t)i), .lease = lease};
    }
    return lease;
}

void lease_free(struct lease *lease)
{
    entry_list_done(&lease->ready);
    entry_list_done(&lease->sent);
    entry_list_done(&lease->unclear);
    mr_batch_free(lease->batch);
    delivery_free(lease->delivery);
    free(lease->helds);
    free(lease);
}

bool lease_over(const struct lease *lease)
{
    return lease->open == 0 && lease->ready.count == 0 && lease->sent.count == 0 &&
           lease->unclear.count == 0 && lease->shipping == 0 && !lease->writing && !lease->beating;
}
