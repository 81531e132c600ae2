#include "agent/outbox.h"

#include "base/err.h"
#include "base/full.h"
#include "base/json.h"
#include "base/log.h"
#include "base/map.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEAD_BYTES = 21,             /* twenty digits and a newline */
    FILE_MAX = 32 * 1024 * 1024, /* a larger one is none of ours */
    WINDOW = 64,                 /* how far a server's events are looked at while some are away */
    COMPLAIN_EVERY = 1000,       /* writes that fail, between two lines about it */
    REWRITE_BYTES = 1024 * 1024, /* a file that is longer is written anew */
    PARTS = 4,                   /* of a line, behind its number */
    SPARE_FILES = 4,
    FOLDER_MODE = S_IRWXU, /* keys and tokens are in there */
    FILE_MODE = S_IRUSR | S_IWUSR,
};

struct outbox_server {
    int64_t id;
    int64_t last_seq;
    struct list events;
    size_t n;
    bool over;
    bool torn; /* its file lacks what could not be written, or ends in half a line */
    size_t file_bytes;
};

struct outbox {
    int folder;
    struct map servers; /* id -> struct outbox_server */
    size_t n;
    size_t bytes;
    int n_spares;
    size_t n_torn; /* servers */
    uint64_t failed_writes;
};

static bool is_last(const char *verb)
{
    return strcmp(verb, "exited") == 0 || strcmp(verb, "failed") == 0;
}

/* Nothing of the server may be under way together with it. */
static bool stands_alone(const struct outbox_event *e)
{
    return is_last(e->verb) || strcmp(e->verb, "inited") == 0;
}

/* ── files ─────────────────────────────────────────────────────────────────────────────────── */

static void file_name(int64_t server, char ret[32])
{
    snprintf(ret, 32, "%" PRId64, server);
}

static void head_of(const struct outbox_server *s, char ret[HEAD_BYTES + 1])
{
    snprintf(ret, HEAD_BYTES + 1, "%020" PRId64 "\n", s->last_seq);
}

static void complain(struct outbox *o, int64_t server)
{
    if (o->failed_writes++ % COMPLAIN_EVERY == 0)
        log_line(LOG_ERROR, "what the control plane is to be told cannot be kept on disk",
                 "server=%" PRId64 " reason=\"%s\"", server, full_reason(errno));
}

/* What was to be written is in memory, and is written with everything else when that works again.
 */
static void set_torn(struct outbox *o, struct outbox_server *s, bool torn)
{
    if (torn)
        complain(o, s->id);
    if (torn != s->torn)
        o->n_torn += torn ? 1 : (size_t)-1;
    s->torn = torn;
}

/* errno is set when a disk that is full took only some of it, too. */
static bool write_whole(int fd, const void *data, size_t n)
{
    ssize_t done = write(fd, data, n);
    if (done >= 0 && (size_t)done < n)
        errno = ENOSPC;
    return done == (ssize_t)n;
}

/* Nothing is left of it but its number, or nothing at all. */
static void file_empty(struct outbox *o, struct outbox_server *s)
{
    char name[32];
    file_name(s->id, name);
    if (s->over) {
        (void)unlinkat(o->folder, name, 0);
        return;
    }
    int fd = openat(o->folder, name, O_WRONLY | O_CLOEXEC);
    if (fd < 0 || ftruncate(fd, HEAD_BYTES) != 0)
        set_torn(o, s, true);
    if (fd >= 0)
        close(fd);
    s->file_bytes = 0;
}

/* "+seq \t verb \t key as JSON \t id as JSON \t event \n": JSON holds neither tabs nor newlines. */
static void put_line(struct buf *out, const struct outbox_event *e)
{
    char number[64];
    int n = snprintf(number, sizeof(number), "+%" PRId64 "\t%s\t", e->seq, e->verb);
    buf_append(out, number, (size_t)n);
    json_text(&(struct json_writer){.out = out}, str_of(e->key));
    buf_append(out, "\t", 1);
    buf_append(out, e->id, strlen(e->id));
    buf_append(out, "\t", 1);
    buf_append(out, e->text, strlen(e->text));
    buf_append(out, "\n", 1);
}

/* With nothing in it but what is still to be told. */
static void file_rewrite(struct outbox *o, struct outbox_server *s)
{
    char name[32];
    char head[HEAD_BYTES + 1];
    struct buf all = {0};
    file_name(s->id, name);
    head_of(s, head);
    buf_append(&all, head, HEAD_BYTES);
    LIST_EACH(&s->events, e, struct outbox_event, link)
    {
        put_line(&all, e);
    }
    int fd = openat(o->folder, "new", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    bool good = fd >= 0 && write_whole(fd, all.data, all.len) &&
                renameat(o->folder, "new", o->folder, name) == 0;
    set_torn(o, s, !good);
    if (fd >= 0)
        close(fd);
    s->file_bytes = all.len - HEAD_BYTES;
    buf_done(&all);
}

/* The number first: one that is lost with its event is no harm, one that is used twice is. */
static void file_append(struct outbox *o, struct outbox_server *s, const struct buf *line)
{
    char name[32];
    char head[HEAD_BYTES + 1];
    if (s->torn) {
        file_rewrite(o, s);
        return;
    }
    file_name(s->id, name);
    head_of(s, head);
    int fd = openat(o->folder, name, O_WRONLY | O_CREAT | O_CLOEXEC, FILE_MODE);
    bool good = fd >= 0 && pwrite(fd, head, HEAD_BYTES, 0) == HEAD_BYTES &&
                lseek(fd, 0, SEEK_END) >= 0 && write_whole(fd, line->data, line->len);
    if (!good)
        set_torn(o, s, true);
    if (fd >= 0)
        close(fd);
    s->file_bytes += line->len;
}

/* One at a time: a disk that is full is no reason to do nothing else. */
void outbox_mend(struct outbox *o)
{
    struct outbox_server *s;
    if (o->n_torn == 0)
        return;
    for (size_t at = 0; (s = map_next(&o->servers, &at));) {
        if (s->torn) {
            file_rewrite(o, s);
            return;
        }
    }
}

static void spare_name(int number, char ret[32])
{
    snprintf(ret, 32, "spare-%d", number); /* no server: see load_file */
}

/* To make a file takes a third of a millisecond in a folder that others were removed from. */
void outbox_lay_in(struct outbox *o)
{
    static const struct outbox_server nobody;
    char name[32];
    char head[HEAD_BYTES + 1];
    if (o->n_spares == SPARE_FILES)
        return;
    spare_name(o->n_spares, name);
    head_of(&nobody, head);
    int fd = openat(o->folder, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, FILE_MODE);
    if (fd < 0)
        return; /* whoever needs one says why */
    o->n_spares += write(fd, head, HEAD_BYTES) == HEAD_BYTES;
    close(fd);
}

static bool take_spare(struct outbox *o, int64_t server)
{
    char spare[32];
    char name[32];
    if (o->n_spares == 0)
        return false;
    spare_name(--o->n_spares, spare);
    file_name(server, name);
    return renameat(o->folder, spare, o->folder, name) == 0;
}

/* ── servers and events ────────────────────────────────────────────────────────────────────── */

static struct outbox_server *find_server(const struct outbox *o, int64_t server)
{
    return map_get(&o->servers, (uint64_t)server);
}

static struct outbox_server *need_server(struct outbox *o, int64_t server)
{
    struct outbox_server *s = find_server(o, server);
    if (s)
        return s;
    s = xcalloc(1, sizeof(*s));
    s->id = server;
    list_init(&s->events);
    map_put(&o->servers, (uint64_t)server, s);
    return s;
}

static struct outbox_event *event_new(struct outbox *o, struct outbox_server *s, int64_t seq,
                                      const char *verb, const char *key, const char *id)
{
    struct outbox_event *e = xcalloc(1, sizeof(*e));
    e->server = s->id;
    e->seq = seq;
    (void)str_copy(e->verb, sizeof(e->verb), str_of(verb));
    e->key = xstrdup(key);
    e->id = xstrdup(id);
    list_append(&s->events, &e->link);
    s->n++;
    o->n++;
    return e;
}

static void set_text(struct outbox *o, struct outbox_event *e, char *text)
{
    e->text = text;
    e->slow = strcmp(e->verb, "joined") == 0 && strstr(text, "\"extend_token\":");
    o->bytes += strlen(text);
}

static void event_free(struct outbox *o, struct outbox_server *s, struct outbox_event *e)
{
    list_remove(&e->link);
    s->n--;
    o->n--;
    o->bytes -= e->text ? strlen(e->text) : 0;
    free(e->key);
    free(e->id);
    free(e->text);
    free(e);
}

static void server_free(struct outbox *o, struct outbox_server *s)
{
    struct link *n;
    o->n_torn -= s->torn;
    while ((n = list_first(&s->events)))
        event_free(o, s, container_of(n, struct outbox_event, link));
    free(s);
}

static void forget_if_over(struct outbox *o, struct outbox_server *s)
{
    if (s->n > 0)
        return;
    if (s->torn && !s->over)
        file_rewrite(o, s);
    else if (s->over || s->file_bytes > 0)
        file_empty(o, s);
    if (!s->over)
        return;
    map_remove(&o->servers, (uint64_t)s->id);
    server_free(o, s);
}

/* ── what the last agent left ──────────────────────────────────────────────────────────────── */

static char *decode_text(const char *json)
{
    char why[JSON_WHY_MAX];
    struct json *v = json_parse(str_of(json), why);
    char *text = v && json_kind(v) == JSON_KIND_TEXT ? xstrdup(json_get_text(v).at) : NULL;
    json_free(v);
    return text;
}

static void load_event(struct outbox *o, struct outbox_server *s, int64_t seq, char *rest)
{
    char *part[PARTS];
    for (int i = 0; i < PARTS; i++) {
        part[i] = strsep(&rest, "\t");
        if (!part[i])
            return;
    }
    char *key = decode_text(part[1]);
    if (!key || strlen(part[0]) >= OUTBOX_VERB_MAX) {
        free(key);
        return;
    }
    set_text(o, event_new(o, s, seq, part[0], key, part[2]), xstrdup(part[3]));
    free(key);
}

static void load_line(struct outbox *o, struct outbox_server *s, char *line)
{
    char *rest = NULL;
    int64_t seq = strtoll(line + 1, &rest, 10);
    struct outbox_event *known = seq > 0 ? outbox_find(o, s->id, seq) : NULL;
    if (line[0] == '+' && seq > 0 && !known && *rest == '\t')
        load_event(o, s, seq, rest + 1);
    else if (line[0] == '-' && known)
        event_free(o, s, known);
    s->last_seq = seq > s->last_seq ? seq : s->last_seq;
}

/* A line without its end was being written when we were killed: it is none. */
static void load_lines(struct outbox *o, struct outbox_server *s, char *text)
{
    char *end = NULL;
    s->last_seq = strtoll(text, &end, 10);
    for (char *at = end; (end = strchr(at, '\n')); at = end + 1) {
        *end = '\0';
        load_line(o, s, at);
    }
}

static bool read_file(int folder, const char *name, struct buf *out)
{
    int fd = openat(folder, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0)
        return false;
    ssize_t n = 1;
    while (n > 0 && out->len < FILE_MAX) {
        uint8_t *at = buf_extend(out, 64 * 1024);
        n = read(fd, at, 64 * 1024);
        out->len -= 64 * 1024 - (size_t)(n > 0 ? n : 0);
    }
    close(fd);
    return n == 0;
}

static void load_file(struct outbox *o, const char *name)
{
    struct buf text = {0};
    char *end = NULL;
    int64_t server = strtoll(name, &end, 10);
    if (server <= 0 || *end || !read_file(o->folder, name, &text)) {
        buf_done(&text);
        return;
    }
    buf_append(&text, "", 1);
    struct outbox_server *s = need_server(o, server);
    load_lines(o, s, (char *)text.data);
    file_rewrite(o, s); /* without what was answered, and without half a line */
    buf_done(&text);
}

int outbox_open(const char *folder, struct outbox **ret, char why[OUTBOX_WHY_MAX])
{
    if (mkdir(folder, FOLDER_MODE) != 0 && errno != EEXIST) {
        snprintf(why, OUTBOX_WHY_MAX, "Cannot make the folder %.150s: %s.", folder,
                 strerror(errno));
        return ERR_IO;
    }
    DIR *files = opendir(folder);
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (!files || fd < 0) {
        snprintf(why, OUTBOX_WHY_MAX, "Cannot read the folder %.150s: %s.", folder,
                 strerror(errno));
        if (files)
            closedir(files);
        return ERR_IO;
    }
    struct outbox *o = xcalloc(1, sizeof(*o));
    o->folder = fd;
    for (struct dirent *entry; (entry = readdir(files));)
        load_file(o, entry->d_name);
    closedir(files);
    *ret = o;
    return 0;
}

void outbox_close(struct outbox *o)
{
    if (!o)
        return;
    struct outbox_server *s;
    for (size_t at = 0; (s = map_next(&o->servers, &at));)
        server_free(o, s);
    map_done(&o->servers);
    close(o->folder);
    free(o);
}

int64_t outbox_next(const struct outbox *o, size_t *at)
{
    const struct outbox_server *s = map_next(&o->servers, at);
    return s ? s->id : 0;
}

/* ── adding ────────────────────────────────────────────────────────────────────────────────── */

static char *make_text(const struct outbox_event *e, struct str members)
{
    struct buf b = {0};
    struct json_writer w = {.out = &b};
    json_open_object(&w);
    json_key_id(&w, "server", e->server);
    json_key_int(&w, "seq", e->seq);
    json_key_text(&w, "event", str_of(e->verb));
    if (members.len > 2) { /* all of it but its first bracket */
        buf_append(&b, ",", 1);
        buf_append(&b, members.at + 1, members.len - 1);
    } else {
        json_close_object(&w);
    }
    buf_append(&b, "", 1);
    return (char *)b.data;
}

void outbox_expect(struct outbox *o, int64_t server)
{
    if (find_server(o, server))
        return;
    struct outbox_server *s = need_server(o, server);
    if (!take_spare(o, server))
        file_append(o, s, &(struct buf){0});
}

struct outbox_event *outbox_add(struct outbox *o, int64_t server, const char *verb, const char *key,
                                const char *id, struct str members)
{
    struct outbox_server *s = need_server(o, server);
    bool full = s->n >= OUTBOX_EVENTS_MAX || o->bytes + members.len > OUTBOX_BYTES_MAX;
    if (full && !is_last(verb))
        return NULL;
    struct buf line = {0};
    struct outbox_event *e = event_new(o, s, ++s->last_seq, verb, key, id);
    set_text(o, e, make_text(e, members));
    put_line(&line, e);
    file_append(o, s, &line);
    buf_done(&line);
    return e;
}

struct outbox_event *outbox_find_call(const struct outbox *o, int64_t server, const char *verb,
                                      const char *key, const char *id)
{
    struct outbox_server *s = find_server(o, server);
    if (!s)
        return NULL;
    LIST_EACH(&s->events, e, struct outbox_event, link)
    {
        if (strcmp(e->id, id) == 0 && strcmp(e->verb, verb) == 0 && strcmp(e->key, key) == 0)
            return e;
    }
    return NULL;
}

struct outbox_event *outbox_find(const struct outbox *o, int64_t server, int64_t seq)
{
    struct outbox_server *s = find_server(o, server);
    if (!s)
        return NULL;
    LIST_EACH(&s->events, e, struct outbox_event, link)
    {
        if (e->seq == seq)
            return e;
    }
    return NULL;
}

struct outbox_event *outbox_find_verb(const struct outbox *o, int64_t server, const char *verb)
{
    struct outbox_server *s = find_server(o, server);
    if (!s)
        return NULL;
    LIST_EACH(&s->events, e, struct outbox_event, link)
    {
        if (strcmp(e->verb, verb) == 0)
            return e;
    }
    return NULL;
}

size_t outbox_count(const struct outbox *o)
{
    return o->n;
}

/* ── sending ───────────────────────────────────────────────────────────────────────────────── */

/* Whether nothing that stands before e keeps it back. What is under way with this batch does not:
 * a batch keeps its order. */
static bool may_follow(const struct outbox_server *s, const struct outbox_event *e, uint64_t batch)
{
    LIST_EACH(&s->events, before, const struct outbox_event, link)
    {
        if (before == e)
            return true;
        if (before->batch == batch)
            continue;
        if (stands_alone(e) || stands_alone(before) || strcmp(before->key, e->key) == 0)
            return false;
    }
    return true;
}

/* The share of one batch that has been filled. */
struct taking {
    uint64_t batch;
    size_t taken;
    size_t left; /* how many more may be */
    bool slow_too;
    struct buf *out;
};

static bool fits(const struct taking *t, const struct outbox_event *e)
{
    bool first = t->out->len == 0;
    return first || t->out->len + strlen(e->text) <= OUTBOX_BATCH_BYTES;
}

static void take_event(struct taking *t, struct outbox_event *e)
{
    if (t->out->len > 0)
        buf_append(t->out, ",", 1);
    buf_append(t->out, e->text, strlen(e->text));
    e->batch = t->batch;
    t->taken++;
    t->left = e->slow ? 0 : t->left - 1;
}

static void take_from(struct outbox_server *s, struct taking *t)
{
    size_t seen = 0;
    LIST_EACH(&s->events, e, struct outbox_event, link)
    {
        if (t->left == 0 || seen++ == WINDOW || !fits(t, e))
            return;
        bool may = !e->slow || (t->slow_too && t->out->len == 0);
        if (e->batch == 0 && may && may_follow(s, e, t->batch))
            take_event(t, e);
    }
}

size_t outbox_take(struct outbox *o, uint64_t batch, size_t max, bool slow_too, struct buf *out)
{
    struct outbox_server *s;
    struct taking t = {.batch = batch, .left = max, .slow_too = slow_too, .out = out};
    for (size_t at = 0; t.left > 0 && (s = map_next(&o->servers, &at));)
        take_from(s, &t);
    return t.taken;
}

struct outbox_event *outbox_of_batch(const struct outbox *o, uint64_t batch)
{
    struct outbox_server *s;
    for (size_t at = 0; (s = map_next(&o->servers, &at));) {
        LIST_EACH(&s->events, e, struct outbox_event, link)
        {
            if (e->batch == batch)
                return e;
        }
    }
    return NULL;
}

void outbox_return(struct outbox *o, uint64_t batch)
{
    struct outbox_server *s;
    for (size_t at = 0; (s = map_next(&o->servers, &at));) {
        LIST_EACH(&s->events, e, struct outbox_event, link)
        {
            e->batch = e->batch == batch ? 0 : e->batch;
        }
    }
}

void outbox_settle(struct outbox *o, struct outbox_event *e)
{
    struct outbox_server *s = find_server(o, e->server);
    char text[32];
    struct buf line = {0};
    int n = snprintf(text, sizeof(text), "-%" PRId64 "\n", e->seq);
    event_free(o, s, e);
    if (s->n > 0 && s->file_bytes > REWRITE_BYTES) {
        file_rewrite(o, s);
    } else if (s->n > 0) {
        buf_append(&line, text, (size_t)n);
        file_append(o, s, &line);
        buf_done(&line);
    }
    forget_if_over(o, s);
}

void outbox_end(struct outbox *o, int64_t server)
{
    struct outbox_server *s = find_server(o, server);
    if (!s)
        return;
    s->over = true;
    forget_if_over(o, s);
}
