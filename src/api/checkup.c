#include "api/checkup.h"

#include "base/err.h"
#include "base/lasted.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum {
    MS_PER_S = 1000,
    COMMIT_HANGS_MS = 2000,
    COMMIT_STUCK_MS = 5000,
    COMMITS_ENOUGH = 10, /* to say how long they take */
    COMMIT_SLOW_MS = 50, /* half of them: an answer costs two */
    COMMIT_CRAWLS_MS = 500,
    COMMIT_OUTLIER_MS = 1000, /* one in a hundred */
    FOLD_LATE_MS = 30 * 1000,
    FOLD_LOST_MS = 600 * 1000,
    RESULTS_MANY = 1000,
    QUEUE_LONG_MS = 60 * 1000,
    UNSERVED_FEW = 5,     /* fewer say nothing, whatever their share */
    UNSERVED_PERCENT = 3, /* of all */
    UNSERVED_CRITICAL = 50,
    OFFLINE_FEW = 3,
    OFFLINE_PERCENT = 20,
    CERTIFICATE_SOON_S = 14 * 24 * 3600,
    CERTIFICATE_NOW_S = 2 * 24 * 3600,
    NAMED_MAX = 3, /* hosts in one sentence */
};

static const int64_t disk_little_bytes = 1LL << 30;
static const int64_t disk_nothing_bytes = 100LL << 20;

/* ── words ─────────────────────────────────────────────────────────────────────────────────── */

/* Text that is put together; what does not fit is cut. */
struct line {
    char *at;
    size_t cap;
    size_t len;
};

__attribute__((format(printf, 2, 3))) static void say(struct line *l, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int n = vsnprintf(l->at + l->len, l->cap - l->len, format, arguments);
    va_end(arguments);
    if (n > 0)
        l->len += (size_t)n;
    if (l->len >= l->cap)
        l->len = l->cap - 1;
}

static const char *bytes(char dst[LASTED_MAX], int64_t n)
{
    if (n >= 1LL << 30)
        snprintf(dst, LASTED_MAX, "%.1f GiB", (double)n / (double)(1LL << 30));
    else
        snprintf(dst, LASTED_MAX, "%" PRId64 " MiB", n >> 20);
    return dst;
}

static const char *many(int64_t n, const char *one, const char *more)
{
    return n == 1 ? one : more;
}

/* Where the next finding stands; one that has no place any more is written aside. */
static struct checkup_finding *find(struct checkup *c, enum checkup_severity severity,
                                    const char *code, const char *advice)
{
    struct checkup_finding *f = &c->spare;
    if (severity == CHECKUP_HINT && c->n_hints < CHECKUP_HINTS_MAX)
        f = &c->hints[c->n_hints++];
    else if (severity != CHECKUP_HINT && c->n_findings < CHECKUP_FINDINGS_MAX)
        f = &c->findings[c->n_findings++];
    else if (severity != CHECKUP_HINT)
        c->n_more++;
    if (c->worst < severity)
        c->worst = severity;
    *f = (struct checkup_finding){.code = code, .severity = severity, .advice = advice};
    return f;
}

static struct line sentence_of(struct checkup_finding *f)
{
    return (struct line){f->sentence, sizeof(f->sentence), 0};
}

__attribute__((format(printf, 2, 3))) static void command(struct checkup_finding *f,
                                                          const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    (void)vsnprintf(f->command, sizeof(f->command), format, arguments);
    va_end(arguments);
}

static void page(struct checkup_finding *f, const char *at)
{
    snprintf(f->page, sizeof(f->page), "%s", at);
}

/* ── the store ─────────────────────────────────────────────────────────────────────────────── */

static struct checkup_finding *store_finding(struct checkup *c, enum checkup_severity severity,
                                             const char *code, const char *advice,
                                             const char *sentence)
{
    struct checkup_finding *f = find(c, severity, code, advice);
    snprintf(f->sentence, sizeof(f->sentence), "%s", sentence);
    command(f, "muster status");
    page(f, "#/");
    return f;
}

static void check_commits(const struct checkup_facts *facts, struct checkup *c)
{
    char text[CHECKUP_SENTENCE_MAX], last[LASTED_MAX];
    if (facts->read_only)
        store_finding(
            c, CHECKUP_CRITICAL, "store_read_only",
            facts->cell ? "Look at the log and at PostgreSQL: it does not answer, or its disk is "
                          "full. Muster tries again every second."
                        : "Look at the log and at the disk of the data folder: it is full, broken "
                          "or not writable. Muster tries again every second.",
            "The store is read-only: commits fail, so nobody can be placed and nothing "
            "can be changed.");
    if (facts->commit_under_way_ms >= COMMIT_HANGS_MS) {
        snprintf(text, sizeof(text),
                 "The %s hangs: a commit has been under way for %s, and every "
                 "answer waits for it.",
                 facts->cell ? "database" : "disk", lasted(last, facts->commit_under_way_ms));
        store_finding(
            c, facts->commit_under_way_ms >= COMMIT_STUCK_MS ? CHECKUP_CRITICAL : CHECKUP_WARNING,
            "store_hangs",
            facts->cell ? "Look at PostgreSQL and at the replica that its commits wait for."
                        : "Look at the disk of the data folder: who else writes to it?",
            text);
    }
    bool slow = facts->commit_p50_ms >= COMMIT_SLOW_MS || facts->commit_p99_ms >= COMMIT_OUTLIER_MS;
    if (facts->commits >= COMMITS_ENOUGH && slow) {
        snprintf(text, sizeof(text),
                 "Commits are slow: half of them take %.0f ms or more, one in "
                 "a hundred %.0f ms; an answer waits for two.",
                 facts->commit_p50_ms, facts->commit_p99_ms);
        store_finding(
            c, facts->commit_p50_ms >= COMMIT_CRAWLS_MS ? CHECKUP_CRITICAL : CHECKUP_WARNING,
            "commits_slow",
            facts->cell ? "Look at PostgreSQL's disk and at the way to it: muster doctor measures "
                          "the round trip."
                        : "Put the data folder on a disk that syncs fast, or find out who else "
                          "writes to it.",
            text);
    }
}

static void check_disk(const struct checkup_facts *facts, struct checkup *c)
{
    char text[CHECKUP_SENTENCE_MAX], last[LASTED_MAX], all[LASTED_MAX];
    if (facts->fold_lag_ms >= FOLD_LATE_MS) {
        snprintf(text, sizeof(text),
                 "The readable tables are %s behind the journal: %" PRId64
                 " batches wait, and a start takes longer with each.",
                 lasted(last, facts->fold_lag_ms), facts->fold_lag);
        store_finding(c, facts->fold_lag_ms >= FOLD_LOST_MS ? CHECKUP_CRITICAL : CHECKUP_WARNING,
                      "fold_behind", "Look at the log for why the journal cannot be folded.", text);
    }
    if (facts->disk_bytes > 0 && facts->disk_free_bytes < disk_little_bytes &&
        facts->disk_free_bytes < facts->disk_bytes / 2) {
        snprintf(text, sizeof(text),
                 "The disk of the data folder is nearly full: %s of %s are "
                 "left. When it is full nothing can be stored.",
                 bytes(last, facts->disk_free_bytes), bytes(all, facts->disk_bytes));
        store_finding(
            c, facts->disk_free_bytes < disk_nothing_bytes ? CHECKUP_CRITICAL : CHECKUP_WARNING,
            "disk_full", "Make room on the disk of the data folder.", text);
    }
}

/* Nobody is served worse without it; but what happens meanwhile is never known again. */
static void check_history(const struct checkup_facts *facts, struct checkup *c)
{
    char text[CHECKUP_SENTENCE_MAX];
    if (!facts->history_failing)
        return;
    snprintf(text, sizeof(text),
             "The history cannot be written: %" PRId64 " line%s of what happened %s lost since "
             "Muster started. Players are served all the same.",
             facts->history_lost, many(facts->history_lost, "", "s"),
             many(facts->history_lost, "is", "are"));
    struct checkup_finding *f = store_finding(
        c, CHECKUP_WARNING, "history_failing",
        "Look at the folder history in the data folder: Muster must be able to write there, and "
        "the disk needs more than 64 MiB free. The log says why. Muster tries again with the next "
        "line.",
        text);
    command(f, "muster changes");
}

static void check_standbys(const struct checkup_facts *facts, struct checkup *c)
{
    if (!facts->cell || facts->standbys_ready > 0)
        return;
    struct checkup_finding *f =
        find(c, CHECKUP_WARNING, "no_standby",
             facts->standbys > 0
                 ? "Ask a standby what it waits for: GET /readyz of its HTTP port says so."
                 : "Start Muster on a second machine, with the same database, cell and secret.");
    struct line l = sentence_of(f);
    if (facts->standbys > 0)
        say(&l, "%s of cell %s %s ready",
            many(facts->standbys, "The standby", "None of the standbys"), facts->cell,
            many(facts->standbys, "is not", "is"));
    else
        say(&l, "Cell %s has no standby", facts->cell);
    say(&l, ": when this node fails, nobody takes over.");
    command(f, "muster cluster status");
    page(f, "#/?show=nodes");
}

static void check_archives(const struct checkup_facts *facts, struct checkup *c)
{
    if (!facts->archives_missing[0])
        return;
    struct checkup_finding *f =
        find(c, CHECKUP_WARNING, "archives_missing",
             "Start the node that has them, or upload them again. A host that fetched them before "
             "needs nothing.");
    snprintf(f->sentence, sizeof(f->sentence), "%s", facts->archives_missing);
    command(f, "muster deployments");
    page(f, "#/deployments");
}

/* ── brokers and clusters ──────────────────────────────────────────────────────────────────── */

static void check_brokers(const struct checkup_facts *facts, struct checkup *c)
{
    for (size_t i = 0; i < facts->n_brokers; i++) {
        const struct checkup_broker *b = &facts->brokers[i];
        if (b->connected)
            continue;
        struct checkup_finding *f =
            find(c, CHECKUP_CRITICAL, "broker_away",
                 "Check that the broker runs and can be reached from here; Muster connects by "
                 "itself.");
        struct line l = sentence_of(f);
        say(&l, "The broker %s is away: nobody can ask for a place through it", b->name);
        if (b->unsent > 0)
            say(&l, ", and %" PRId64 " result%s for it", b->unsent,
                many(b->unsent, " waits", "s wait"));
        say(&l, ".");
        command(f, "muster status");
        page(f, "#/");
    }
    if (facts->results_owed < RESULTS_MANY)
        return;
    struct checkup_finding *f = find(c, CHECKUP_WARNING, "results_owed",
                                     "Look at the broker: it takes results slower than they come.");
    struct line l = sentence_of(f);
    say(&l, "%d results have not been confirmed by a broker yet.", facts->results_owed);
    command(f, "muster allocations");
    page(f, "#/tickets");
}

static void check_cluster(const struct checkup_facts *facts, struct checkup *c)
{
    if (!facts->cluster_away)
        return;
    struct checkup_finding *f =
        find(c, CHECKUP_CRITICAL, "cluster_away",
             "Check the address, the token and the network to the Kubernetes API server.");
    struct line l = sentence_of(f);
    say(&l, "Kubernetes is out of sight, so nothing is placed there: %s.", facts->cluster_away);
    command(f, "muster hosts");
    page(f, "#/hosts");
}

/* ── requests ──────────────────────────────────────────────────────────────────────────────── */

static void check_refusals(const struct checkup_facts *facts, struct checkup *c)
{
    if (facts->unserved < UNSERVED_FEW ||
        facts->unserved * 100 < facts->answered * UNSERVED_PERCENT)
        return;
    bool most = facts->unserved * 100 >= facts->answered * UNSERVED_CRITICAL;
    struct checkup_finding *f =
        find(c, most ? CHECKUP_CRITICAL : CHECKUP_WARNING, "refusals",
             "See why one of them was refused: muster why TICKET shows who was tried.");
    struct line l = sentence_of(f);
    say(&l,
        "%" PRId64 " of %" PRId64 " requests of the last minute could not be served (%" PRId64
        " %%), mostly because: %s (%" PRId64 " times).",
        facts->unserved, facts->answered, facts->unserved * 100 / facts->answered,
        err_sentence(facts->worst_err), facts->worst_count);
    command(f, "muster tickets --state failed");
    page(f, "#/tickets");
}

static void check_queue(const struct checkup_facts *facts, struct checkup *c)
{
    char last[LASTED_MAX];
    if (facts->queue == 0 || facts->queue_oldest_ms < QUEUE_LONG_MS)
        return;
    struct checkup_finding *f = find(c, CHECKUP_WARNING, "queue_long",
                                     "Add hosts or servers, or see for whom seats are held.");
    struct line l = sentence_of(f);
    if (facts->queue == 1)
        say(&l, "One request waits in line for %s.", lasted(last, facts->queue_oldest_ms));
    else
        say(&l, "%d requests wait in line, the oldest for %s.", facts->queue,
            lasted(last, facts->queue_oldest_ms));
    command(f, "muster queue");
    page(f, "#/queue");
}

/* ── servers that register ─────────────────────────────────────────────────────────────────── */

static int32_t servers_in(const struct view_group *g)
{
    int32_t n = 0;
    for (int i = 0; i < 4; i++)
        n += g->servers[i];
    return n;
}

static int32_t useless_in(const struct view_group *g)
{
    int32_t n = 0;
    for (int i = PASSED_NOT + 1; i < PASSED_REASONS; i++)
        n += g->passed[i];
    return n;
}

/* ": 3 full, 1 draining." */
static void say_passed(struct line *l, const struct view_group *g)
{
    const char *before = ": ";
    for (int i = PASSED_NOT + 1; i < PASSED_REASONS; i++) {
        if (g->passed[i] == 0)
            continue;
        say(l, "%s%d %s", before, g->passed[i], passed_over_name((enum passed_over)i));
        before = ", ";
    }
    say(l, ".");
}

static struct view_group sum_of(const struct checkup_fleet *fleet)
{
    struct view_group sum = {0};
    for (size_t i = 0; i < fleet->n_places; i++) {
        for (int k = 0; k < 4; k++)
            sum.servers[k] += fleet->places[i].group.servers[k];
        for (int k = 0; k < PASSED_REASONS; k++)
            sum.passed[k] += fleet->places[i].group.passed[k];
    }
    return sum;
}

static void no_server(struct checkup *c, const struct checkup_fleet *fleet, const char *region,
                      const struct view_group *g)
{
    struct checkup_finding *f =
        find(c, region ? CHECKUP_WARNING : CHECKUP_CRITICAL, region ? "region_full" : "fleet_full",
             "Start more servers; undrain those that may work again; see why others are passed "
             "over.");
    struct line l = sentence_of(f);
    say(&l, "No server of %s%s%s can take a match", fleet->name, region ? " in " : "",
        region ? region : "");
    say_passed(&l, g);
    if (region)
        command(f, "muster servers --fleet %s --region %s", fleet->name, region);
    else
        command(f, "muster servers --fleet %s", fleet->name);
    page(f, "#/servers");
}

static void many_offline(struct checkup *c, const struct checkup_fleet *fleet,
                         const struct view_group *g)
{
    int32_t offline = g->servers[SERVER_OFFLINE], all = servers_in(g);
    if (offline < OFFLINE_FEW || offline * 100 < all * OFFLINE_PERCENT)
        return;
    struct checkup_finding *f = find(c, CHECKUP_WARNING, "servers_offline",
                                     "Look at the machines or the network they have in common.");
    struct line l = sentence_of(f);
    say(&l, "%d of %d servers of %s are offline.", offline, all, fleet->name);
    command(f, "muster servers --fleet %s --status offline", fleet->name);
    page(f, "#/servers");
}

static void check_registered(const struct checkup_fleet *fleet, struct checkup *c)
{
    struct view_group sum = sum_of(fleet);
    if (servers_in(&sum) == 0) {
        struct checkup_finding *f =
            find(c, CHECKUP_HINT, "no_servers_yet",
                 "Make an enrolment token for its game servers and start one with it.");
        struct line l = sentence_of(f);
        say(&l, "No game server of %s is registered.", fleet->name);
        command(f, "muster token enrol --role server --fleet %s", fleet->name);
        page(f, "#/servers");
        return;
    }
    if (useless_in(&sum) >= servers_in(&sum)) {
        no_server(c, fleet, NULL, &sum);
        return;
    }
    for (size_t i = 0; i < fleet->n_places; i++) {
        const struct checkup_place *p = &fleet->places[i];
        if (useless_in(&p->group) >= servers_in(&p->group))
            no_server(c, fleet, p->region, &p->group);
    }
    many_offline(c, fleet, &sum);
}

/* ── hosts ─────────────────────────────────────────────────────────────────────────────────── */

/* The hosts of one region, or of all. */
struct hosts {
    int32_t all;
    int32_t count[HOST_PASSED_REASONS];
    const struct checkup_host *named[HOST_PASSED_REASONS][NAMED_MAX]; /* the longest silent first */
};

static bool is_worse(const struct checkup_host *a, const struct checkup_host *b)
{
    int64_t x = a->quiet_ms < 0 ? INT64_MAX : a->quiet_ms;
    int64_t y = b->quiet_ms < 0 ? INT64_MAX : b->quiet_ms;
    return x > y;
}

static void add_host(struct hosts *all, const struct checkup_host *host)
{
    const struct checkup_host **named = all->named[host->passed_over];
    all->all++;
    all->count[host->passed_over]++;
    for (int i = 0; i < NAMED_MAX && host; i++) {
        if (named[i] && !is_worse(host, named[i]))
            continue;
        const struct checkup_host *pushed = named[i];
        named[i] = host;
        host = pushed;
    }
}

static void gather(const struct checkup_facts *facts, int region, struct hosts *ret)
{
    *ret = (struct hosts){0};
    for (size_t i = 0; i < facts->n_hosts; i++) {
        if (region < 0 || facts->hosts[i].region == region)
            add_host(ret, &facts->hosts[i]);
    }
}

static void say_how(struct line *l, const struct checkup_host *h)
{
    char last[LASTED_MAX];
    if (h->passed_over == HOST_PASSED_SILENT && h->quiet_ms < 0)
        say(l, "%s since Muster started", h->name);
    else if (h->passed_over == HOST_PASSED_SILENT)
        say(l, "%s for %s", h->name, lasted(last, h->quiet_ms));
    else if (h->passed_over == HOST_PASSED_FAILING)
        say(l, "%s (%s; tried again in %s)", h->name, h->failed_why,
            lasted(last, h->backoff_left_ms));
    else
        say(l, "%s (processors %.0f %%, memory %.0f %%)", h->name, (double)h->cpu_percent,
            (double)h->memory_percent);
}

static void sick_hosts(struct checkup *c, const struct hosts *in, enum host_passed_over reason,
                       const char *code, const char *advice)
{
    int32_t n = in->count[reason];
    if (n == 0)
        return;
    const struct checkup_host *const *named = in->named[reason];
    struct checkup_finding *f = find(c, CHECKUP_WARNING, code, advice);
    struct line l = sentence_of(f);
    say(&l, "%d of %d host%s in %s %s %s: ", n, in->all, many(in->all, "", "s"),
        named[0]->region_name, many(n, "is", "are"), host_passed_over_name(reason));
    for (int i = 0; i < NAMED_MAX && i < n; i++) {
        say(&l, "%s", i ? ", " : "");
        say_how(&l, named[i]);
    }
    if (n > NAMED_MAX)
        say(&l, " and %d more", n - NAMED_MAX);
    say(&l, ".");
    if (n == 1) {
        command(f, "muster host %" PRId64, named[0]->id);
        snprintf(f->page, sizeof(f->page), "#/hosts/%" PRId64, named[0]->id);
    } else {
        command(f, "muster hosts --status %s", host_passed_over_name(reason));
        page(f, "#/hosts");
    }
}

/* region NULL: nowhere. */
static void no_host(struct checkup *c, const struct hosts *in, const char *region)
{
    struct checkup_finding *f = find(
        c, region ? CHECKUP_WARNING : CHECKUP_CRITICAL, region ? "region_without_host" : "no_host",
        "Bring a host back or enable one; what runs on a silent one goes on.");
    struct line l = sentence_of(f);
    const char *before = ": ";
    say(&l, "No host%s%s can take a room", region ? " in " : "", region ? region : "");
    for (int i = HOST_PASSED_NOT + 1; i < HOST_PASSED_REASONS; i++) {
        if (in->count[i] == 0)
            continue;
        say(&l, "%s%d %s", before, in->count[i], host_passed_over_name((enum host_passed_over)i));
        before = ", ";
    }
    say(&l, ".");
    if (region)
        command(f, "muster hosts --region %s", region);
    else
        command(f, "muster hosts");
    page(f, "#/hosts");
}

static void check_region(const struct checkup_facts *facts, int region, bool others,
                         struct checkup *c)
{
    struct hosts in;
    gather(facts, region, &in);
    if (in.all == 0)
        return;
    if (others && in.count[HOST_PASSED_NOT] == 0) {
        size_t i = 0;
        while (facts->hosts[i].region != region)
            i++;
        no_host(c, &in, facts->hosts[i].region_name);
    }
    sick_hosts(c, &in, HOST_PASSED_SILENT, "hosts_silent",
               "See whether the machine and its agent run and reach Muster; what runs there goes "
               "on.");
    sick_hosts(c, &in, HOST_PASSED_FAILING, "hosts_failing",
               "Look at the agent's log and at the output of a server that did not start there.");
    sick_hosts(c, &in, HOST_PASSED_OVERLOADED, "hosts_overloaded",
               "Add hosts to the region, or give its hosts fewer slots.");
}

static void check_hosts(const struct checkup_facts *facts, struct checkup *c)
{
    struct hosts all;
    gather(facts, -1, &all);
    bool wanted = false;
    for (size_t i = 0; i < facts->n_fleets; i++)
        wanted |= facts->fleets[i].provider == PROVIDER_AGENT;
    if (wanted && all.all == 0) {
        struct checkup_finding *f =
            find(c, CHECKUP_HINT, "no_hosts_yet",
                 "Make an access token for an agent, then start 'muster agent' on a machine.");
        struct line l = sentence_of(f);
        say(&l, "No host has come yet, so no room can be started.");
        command(f, "muster token issue --account host-1 --scopes game_host");
        page(f, "#/hosts");
    }
    bool any = all.count[HOST_PASSED_NOT] > 0;
    if (all.all > 0 && !any)
        no_host(c, &all, NULL);
    for (int region = 0; region < REGION_CODES; region++)
        check_region(facts, region, any, c);
}

/* ── versions, certificates ────────────────────────────────────────────────────────────────── */

static void check_versions(const struct checkup_facts *facts, struct checkup *c)
{
    for (size_t i = 0; i < facts->n_quarantined; i++) {
        const struct checkup_version *v = &facts->quarantined[i];
        struct checkup_finding *f =
            find(c, CHECKUP_WARNING, "version_quarantined",
                 "Deploy a build that works. Muster starts one without a player from time to time, "
                 "and opens the version when that is ready.");
        struct line l = sentence_of(f);
        say(&l, "Version %s of %s is quarantined. %s", v->name, v->fleet, v->reason);
        if (l.len > 0 && l.at[l.len - 1] != '.')
            say(&l, ".");
        command(f, "muster versions %s", v->fleet);
        page(f, "#/deployments");
    }
    for (size_t i = 0; i < facts->n_fleets; i++) {
        const struct checkup_fleet *fleet = &facts->fleets[i];
        if (fleet->provider != PROVIDER_AGENT || fleet->versions == 0 ||
            fleet->versions_enabled > 0)
            continue;
        struct checkup_finding *f = find(c, CHECKUP_CRITICAL, "fleet_unplayable",
                                         "Enable a version, or deploy one that works.");
        struct line l = sentence_of(f);
        say(&l, "Nobody can play %s: each of its versions (%d) is turned off.", fleet->name,
            fleet->versions);
        command(f, "muster versions %s", fleet->name);
        page(f, "#/deployments");
    }
}

static void check_certificates(const struct checkup_facts *facts, struct checkup *c)
{
    char last[LASTED_MAX];
    for (size_t i = 0; i < facts->n_certificates; i++) {
        const struct checkup_certificate *v = &facts->certificates[i];
        if (v->left_s >= CERTIFICATE_SOON_S)
            continue;
        struct checkup_finding *f =
            find(c, v->left_s < CERTIFICATE_NOW_S ? CHECKUP_CRITICAL : CHECKUP_WARNING,
                 "certificate_expires",
                 "Put the new certificate in place and send Muster SIGHUP: no connection is lost.");
        struct line l = sentence_of(f);
        if (v->left_s < 0)
            say(&l, "The certificate of the %s port has expired %s ago.", v->port,
                lasted(last, -v->left_s * MS_PER_S));
        else
            say(&l, "The certificate of the %s port expires in %s.", v->port,
                lasted(last, v->left_s * MS_PER_S));
        command(f, "muster config show");
        page(f, "#/");
    }
}

/* ── all of it ─────────────────────────────────────────────────────────────────────────────── */

/* The worst first; those alike stay in the order in which they were looked for. */
static void sort(struct checkup *c)
{
    for (size_t i = 1; i < c->n_findings; i++) {
        struct checkup_finding f = c->findings[i];
        size_t k = i;
        for (; k > 0 && c->findings[k - 1].severity < f.severity; k--)
            c->findings[k] = c->findings[k - 1];
        c->findings[k] = f;
    }
}

static void sum_up(const struct checkup_facts *facts, struct checkup *c)
{
    struct line l = {c->sentence, sizeof(c->sentence), 0};
    int32_t servers = 0;
    for (size_t i = 0; i < facts->n_fleets; i++) {
        struct view_group sum = sum_of(&facts->fleets[i]);
        servers += servers_in(&sum) - sum.servers[SERVER_OFFLINE];
    }
    if (c->n_findings > 0) {
        size_t more = c->n_findings - 1 + c->n_more;
        say(&l, "%s", c->findings[0].sentence);
        if (more > 0)
            say(&l, " %zu more finding%s.", more, many((int64_t)more, "", "s"));
    } else if (servers == 0 && facts->n_hosts == 0) {
        say(&l, "Nothing is wrong, and nothing has come yet: no game server and no host.");
    } else {
        say(&l, "All is well: %d game server%s registered, %zu host%s, ", servers,
            many(servers, "", "s"), facts->n_hosts, many((int64_t)facts->n_hosts, "", "s"));
        if (facts->queue == 0)
            say(&l, "nobody waits.");
        else
            say(&l, "%d %s in line.", facts->queue, many(facts->queue, "waits", "wait"));
    }
}

void checkup(const struct checkup_facts *facts, struct checkup *ret)
{
    ret->worst = CHECKUP_HINT;
    ret->n_findings = ret->n_more = ret->n_hints = 0;
    check_commits(facts, ret);
    check_disk(facts, ret);
    check_history(facts, ret);
    check_standbys(facts, ret);
    check_archives(facts, ret);
    check_brokers(facts, ret);
    check_cluster(facts, ret);
    for (size_t i = 0; i < facts->n_fleets; i++) {
        if (facts->fleets[i].provider == PROVIDER_CHAT)
            check_registered(&facts->fleets[i], ret);
    }
    check_hosts(facts, ret);
    check_versions(facts, ret);
    check_refusals(facts, ret);
    check_queue(facts, ret);
    check_certificates(facts, ret);
    sort(ret);
    sum_up(facts, ret);
}

const char *checkup_status(const struct checkup *c)
{
    static const char *const words[] = {"healthy", "degraded", "broken"};
    return words[c->worst];
}
