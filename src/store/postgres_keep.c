#include "store/postgres_keep.h"

#include "base/clock.h"
#include "base/err.h"
#include "store/cell_lease.h"
#include "store/cell_link.h"

#include <stdio.h>
#include <string.h>

enum {
    SAY_MS = 1000,
    RETRY_MS = 50,
    /* Standbys hear of the first of several batches at once, and of the others together. */
    WAKE_MS = 10,
};

/* In a transaction of its own: whoever notifies holds a lock of the whole server's until he has
 * committed, and a batch commits when it is on the disk. This one writes nothing and waits for
 * nothing. */
static const char wake_sql[] = "SELECT pg_notify(current_schema()::text, '')";

static void disconnect(struct keeper *k, const struct why *why)
{
    if (!k->bell.stop)
        complain(&k->complaint, "the cell cannot be reached", why->text);
    pg_close(k->pg);
    k->pg = NULL;
    k->try_ms = clock_boot_ms() + RETRY_MS;
}

/* Whatever does not answer is given up early enough to try another host while the lease holds. */
static bool connected(struct keeper *k)
{
    if (k->pg)
        return true;
    if (clock_boot_ms() < k->try_ms)
        return false;
    struct why why = {""};
    char schema[CELL_SCHEMA_SIZE];
    struct pg_wish wish = {
        .url = k->cell->url,
        .schema = cell_schema(k->cell->cell, schema),
        .name = "muster keeper",
        .connect_ms = k->cell->lease_ms / 4,
        .answer_ms = k->cell->lease_ms / 4,
        .stop = &k->bell.stop,
    };
    int err = pg_connect(&wish, &k->pg, &why);
    if (err == 0)
        err = cell_lease_prepare(k->pg, &why);
    if (err == 0)
        err = pg_prepare(k->pg, "wake", wake_sql, &why);
    if (err == 0)
        return true;
    disconnect(k, &why);
    return false;
}

static int renew(struct keeper *k, struct why *why)
{
    bool ours = false;
    int64_t sent_ms = clock_boot_ms();
    int err = cell_lease_renew(k->pg, k->tenure->node, k->tenure->epoch, &ours, why);
    if (err != 0)
        return err;
    if (!ours) {
        lease_lost(&k->lease);
        tenure_end(k->tenure, "another node leads the cell");
        return 0;
    }
    lease_renewed(&k->lease, sent_ms);
    tenure_prolong(k->tenure, k->lease.until_ms);
    complaint_settle(&k->complaint, "lease");
    k->renew_ms = sent_ms + lease_renew_ms(&k->lease);
    return 0;
}

static int say(struct keeper *k, struct why *why)
{
    struct cell_seen_node nodes[CELL_NODES_MAX];
    size_t n = 0;
    k->say_ms = clock_boot_ms() + SAY_MS;
    int err = cell_node_say(k->pg, &k->cell->self, *k->last_seq, true, why);
    if (err == 0)
        err = cell_nodes_read(k->pg, nodes, CELL_NODES_MAX, &n, why);
    if (err != 0)
        return err;
    pthread_mutex_lock(&k->view_lock);
    memcpy(k->nodes, nodes, n * sizeof(nodes[0]));
    k->n_nodes = n;
    pthread_mutex_unlock(&k->view_lock);
    return 0;
}

static int wake(struct keeper *k, struct why *why)
{
    k->wake_ms = clock_boot_ms() + WAKE_MS;
    k->news = false;
    return pg_run(k->pg, "wake", NULL, NULL, why);
}

/* Whatever is due, the lease first. */
static void keep(struct keeper *k)
{
    struct why why = {""};
    int err = connected(k) ? 0 : ERR_IO;
    if (err != 0)
        return;
    if (clock_boot_ms() >= k->renew_ms)
        err = renew(k, &why);
    if (err == 0 && k->news && clock_boot_ms() >= k->wake_ms)
        err = wake(k, &why);
    if (err == 0 && clock_boot_ms() >= k->say_ms)
        err = say(k, &why);
    if (err == 0)
        return;
    disconnect(k, &why);
}

static int64_t pause_ms(const struct keeper *k)
{
    int64_t next_ms = k->renew_ms < k->say_ms ? k->renew_ms : k->say_ms;
    if (k->news && k->wake_ms < next_ms)
        next_ms = k->wake_ms;
    if (!k->pg)
        next_ms = k->try_ms;
    int64_t wait_ms = next_ms - clock_boot_ms();
    return wait_ms > 0 ? wait_ms : 0;
}

static void give_back(struct keeper *k)
{
    struct why why = {""};
    k->try_ms = 0;
    if (!connected(k))
        return;
    int err = cell_lease_give_back(k->pg, k->tenure->node, k->tenure->epoch, &why);
    if (err == 0)
        err = cell_node_leave(k->pg, k->tenure->node, &why);
    if (err != 0)
        complain(&k->complaint, "the lease cannot be given back", why.text);
}

static void *keep_run(void *arg)
{
    struct keeper *k = arg;
    do {
        keep(k);
    } while (bell_wait(&k->bell, pause_ms(k), false) && tenure_holds(k->tenure));
    if (k->giving_back)
        give_back(k);
    pg_close(k->pg);
    k->pg = NULL;
    return NULL;
}

int keeper_start(struct keeper *k, const struct cell_config *cell, const struct cell_term *term,
                 struct tenure *tenure, const _Atomic int64_t *last_seq)
{
    *k = (struct keeper){.cell = cell, .tenure = tenure, .last_seq = last_seq};
    k->lease = term->lease;
    bell_init(&k->bell);
    pthread_mutex_init(&k->view_lock, NULL);
    k->started = pthread_create(&k->thread, NULL, keep_run, k) == 0;
    if (k->started)
        (void)pthread_setname_np(k->thread, "lease");
    return k->started ? 0 : ERR_NO_MEMORY;
}

void keeper_give_back(struct keeper *k)
{
    if (!k->started)
        return;
    k->giving_back = true;
    tenure_end(k->tenure, NULL);
    bell_ring(&k->bell);
    pthread_join(k->thread, NULL);
    k->started = false;
}

void keeper_close(struct keeper *k)
{
    if (k->started) {
        bell_stop(&k->bell);
        pthread_join(k->thread, NULL);
    }
    pthread_mutex_destroy(&k->view_lock);
    bell_done(&k->bell);
}

void keeper_notice(struct keeper *k)
{
    if (!atomic_exchange(&k->news, true))
        bell_ring(&k->bell);
}

void keeper_view(struct keeper *k, struct cell_view *ret)
{
    *ret = (struct cell_view){.epoch = k->tenure->epoch,
                              .seq = *k->last_seq,
                              .lease_ms = k->cell->lease_ms,
                              .leader = k->cell->self};
    snprintf(ret->cell, sizeof(ret->cell), "%s", k->cell->cell);
    if (tenure_holds(k->tenure))
        ret->left_ms = k->tenure->until_ms - clock_boot_ms();
    else
        ret->leader = (struct cell_node){0};
    pthread_mutex_lock(&k->view_lock);
    ret->n_nodes = k->n_nodes;
    memcpy(ret->nodes, k->nodes, k->n_nodes * sizeof(k->nodes[0]));
    pthread_mutex_unlock(&k->view_lock);
}
