#include "agent/process_parts.h"
#include "base/err.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    TEXT_MAX = 128 * 1024,   /* of one, with its NUL: Linux refuses more */
    TEXTS_MAX = 1024 * 1024, /* of all; Linux gives them a quarter of the stack */
    COUNT_MAX = 4096,
    TEXTS_BEFORE = 3, /* home, folder, cgroup */
    ENDPOINT = 1,     /* in argv */
    ARGUMENTS = 3,    /* from here on in argv */
};

static const char scheme[] = "ipc://";

/* Where the texts of a job are; NULL when it is no job. */
static const char **find_texts(const struct shim_job *job, size_t size)
{
    if (size < sizeof(*job) || job->version != SHIM_VERSION || job->size > size ||
        job->n_argv < ARGUMENTS || job->n_argv > COUNT_MAX || job->n_env > COUNT_MAX ||
        job->n_ports > SHIM_PORTS_MAX)
        return NULL;
    size_t n = TEXTS_BEFORE + job->n_argv + job->n_env;
    const char **texts = xcalloc(n + 2, sizeof(*texts));
    const char *at = (const char *)(job + 1);
    const char *end = (const char *)job + size;
    size_t to = 0;
    for (size_t i = 0; i < n; i++) {
        size_t len = strnlen(at, (size_t)(end - at));
        if (at + len == end) {
            free(texts);
            return NULL;
        }
        to += i == TEXTS_BEFORE + job->n_argv; /* a NULL between command line and environment */
        texts[to++] = at;
        at += len + 1;
    }
    return texts;
}

bool process_job_take(struct process *p, struct shim_job *job, size_t size)
{
    const char **texts = find_texts(job, size);
    if (!texts)
        return false;
    free(p->job);
    free(p->texts);
    p->job = job;
    p->texts = texts;
    const char *const *argv = texts + TEXTS_BEFORE;
    size_t skip = job->endpoint_uri ? strlen(scheme) : 0;
    p->endpoint = strlen(argv[ENDPOINT]) > skip ? argv[ENDPOINT] + skip : "";
    p->spec = (struct process_spec){.server = job->server,
                                    .session = job->session,
                                    .binary = argv[0],
                                    .folder = job->own_folder ? NULL : texts[1],
                                    .endpoint_uri = job->endpoint_uri != 0,
                                    .n_ports = job->n_ports,
                                    .arguments = argv + ARGUMENTS,
                                    .env = argv + job->n_argv + 1,
                                    .spawn_timeout_ms = job->spawn_timeout_ms,
                                    .status_period_ms = job->status_period_ms};
    return true;
}

static int put(struct buf *b, const char *text, const char *what, char why[PROCESS_WHY_MAX])
{
    size_t len = strlen(text) + 1;
    if (len > TEXT_MAX || b->len + len > TEXTS_MAX)
        return process_refuse(why, ERR_TOO_LARGE, "%s is too large: %.*s… has %zu bytes", what,
                              (int)strcspn(text, "=") < 60 ? (int)strcspn(text, "=") : 60, text,
                              len);
    buf_append(b, text, len);
    return 0;
}

static int put_all(struct buf *b, const char *const *texts, uint32_t *ret_n, const char *what,
                   char why[PROCESS_WHY_MAX])
{
    int err = 0;
    for (; err == 0 && texts && *texts; texts++) {
        err = put(b, *texts, what, why);
        if (++*ret_n > COUNT_MAX && err == 0)
            err = process_refuse(why, ERR_TOO_LARGE, "%s is too large: more than %d", what,
                                 COUNT_MAX);
    }
    return err;
}

static struct shim_job describe(const struct process *p, const struct process_spec *spec,
                                const struct sandbox_place *place, const uint16_t *ports)
{
    const struct process_limits *limits = &p->owner->limits;
    bool own = place->uid != (uid_t)-1;
    struct shim_job job = {.version = SHIM_VERSION,
                           .server = spec->server,
                           .session = spec->session,
                           .spawn_timeout_ms = spec->spawn_timeout_ms,
                           .status_period_ms = spec->status_period_ms,
                           .log_bytes = limits->log_bytes,
                           .log_files = (uint32_t)limits->log_files,
                           .files = limits->files,
                           /* Counted per uid: of a shared one it would be the wrong number. */
                           .processes = own ? limits->processes : 0,
                           .file_bytes = limits->file_bytes,
                           .uid = own ? place->uid : SHIM_STAY,
                           .slot = (uint32_t)p->slot,
                           .endpoint_uri = spec->endpoint_uri,
                           .own_folder = spec->folder == NULL,
                           .n_ports = (uint16_t)spec->n_ports};
    for (int i = 0; i < spec->n_ports; i++)
        job.ports[i] = ports[i];
    return job;
}

static int put_texts(struct buf *b, const struct process *p, const struct process_spec *spec,
                     const struct sandbox_place *place, struct shim_job *job,
                     char why[PROCESS_WHY_MAX])
{
    char home[PATH_MAX];
    char endpoint[sizeof(scheme) + SANDBOX_SOCKET_MAX];
    char list[48];
    int n = 0;
    process_home(p->owner, spec->server, home);
    snprintf(endpoint, sizeof(endpoint), "%s%s", spec->endpoint_uri ? scheme : "", place->endpoint);
    for (int i = 0; i < spec->n_ports; i++)
        n += snprintf(list + n, sizeof(list) - (size_t)n, "%s%d", i ? "," : "", job->ports[i]);
    const char *first[] = {home, spec->folder ? spec->folder : place->scratch, place->cgroup, NULL};
    const char *argv[] = {spec->binary, endpoint, list, NULL};
    uint32_t n_first = 0;
    int err = put_all(b, first, &n_first, "a path", why);
    if (err == 0)
        err = put_all(b, argv, &job->n_argv, "the command line", why);
    if (err == 0)
        err = put_all(b, spec->arguments, &job->n_argv, "the command line", why);
    if (err == 0)
        err = put_all(b, spec->env, &job->n_env, "the environment", why);
    return err;
}

int process_job_make(struct process *p, const struct process_spec *spec,
                     const struct sandbox_place *place, const uint16_t *ports,
                     char why[PROCESS_WHY_MAX])
{
    struct buf b = {.data = NULL};
    struct shim_job job = describe(p, spec, place, ports);
    buf_append(&b, &job, sizeof(job));
    int err = put_texts(&b, p, spec, place, &job, why);
    if (err != 0) {
        buf_done(&b);
        return err;
    }
    job.size = (uint32_t)b.len;
    memcpy(b.data, &job, sizeof(job));
    if (!process_job_take(p, (struct shim_job *)(void *)b.data, b.len)) {
        buf_done(&b);
        return process_refuse(why, ERR_INTERNAL, "the job is not well formed");
    }
    return 0;
}

int process_job_file(const struct process *p)
{
    int fd = memfd_create("muster-job", MFD_CLOEXEC);
    if (fd >= 0 && write(fd, p->job, p->job->size) != (ssize_t)p->job->size) {
        close(fd);
        return -1;
    }
    return fd;
}
