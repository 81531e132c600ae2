#include "cli/kubeconfig.h"

#include "base/err.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <yaml.h>

enum { FILE_MAX = 1024 * 1024, TEXTS_MAX = 8, WHY_MAX = 256 };

struct kubeconfig {
    char *texts[TEXTS_MAX]; /* what was given away */
    size_t n_texts;
    int files[TEXTS_MAX]; /* in memory */
    size_t n_files;
};

/* While it is read. */
struct reading {
    struct kubeconfig *k;
    yaml_document_t document;
    const char *file;
    char *why;
};

void kubeconfig_done(struct kubeconfig *k)
{
    if (!k)
        return;
    for (size_t i = 0; i < k->n_texts; i++)
        free(k->texts[i]);
    for (size_t i = 0; i < k->n_files; i++)
        close(k->files[i]);
    free(k);
}

/* ── YAML ──────────────────────────────────────────────────────────────────────────────────── */

static yaml_node_t *member(struct reading *r, yaml_node_t *node, const char *key)
{
    if (!node || node->type != YAML_MAPPING_NODE)
        return NULL;
    for (yaml_node_pair_t *pair = node->data.mapping.pairs.start;
         pair < node->data.mapping.pairs.top; pair++) {
        yaml_node_t *name = yaml_document_get_node(&r->document, pair->key);
        if (name->type == YAML_SCALAR_NODE && strcmp((char *)name->data.scalar.value, key) == 0)
            return yaml_document_get_node(&r->document, pair->value);
    }
    return NULL;
}

/* "" when there is none. */
static const char *text(struct reading *r, yaml_node_t *node, const char *key)
{
    yaml_node_t *v = member(r, node, key);
    return v && v->type == YAML_SCALAR_NODE ? (const char *)v->data.scalar.value : "";
}

/* In the list `in`, what the entry of that name holds under `under`. */
static yaml_node_t *entry(struct reading *r, const char *in, const char *name, const char *under)
{
    yaml_node_t *list = member(r, yaml_document_get_root_node(&r->document), in);
    if (!list || list->type != YAML_SEQUENCE_NODE)
        return NULL;
    for (yaml_node_item_t *item = list->data.sequence.items.start;
         item < list->data.sequence.items.top; item++) {
        yaml_node_t *v = yaml_document_get_node(&r->document, *item);
        if (strcmp(text(r, v, "name"), name) == 0)
            return member(r, v, under);
    }
    return NULL;
}

/* ── what is given away ────────────────────────────────────────────────────────────────────── */

static const char *keep(struct kubeconfig *k, const char *value)
{
    assert(k->n_texts < TEXTS_MAX);
    return k->texts[k->n_texts++] = xstrdup(value);
}

/* A path in the file is relative to the file. */
static const char *keep_path(struct reading *r, const char *path)
{
    char full[4096];
    const char *slash = strrchr(r->file, '/');
    int folder = slash && path[0] != '/' ? (int)(slash - r->file) + 1 : 0;
    snprintf(full, sizeof(full), "%.*s%s", folder, r->file, path);
    return keep(r->k, full);
}

/* The name of a file in memory with that content; NULL when there can be none. */
static const char *keep_content(struct reading *r, const void *data, size_t n)
{
    char path[64];
    int fd = memfd_create("kubeconfig", MFD_CLOEXEC);
    assert(r->k->n_files < TEXTS_MAX);
    if (fd < 0)
        return NULL;
    r->k->files[r->k->n_files++] = fd;
    if (write(fd, data, n) != (ssize_t)n)
        return NULL;
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return keep(r->k, path);
}

/* Under `key` a path, or under `key`-data the content itself. "" when neither is there, NULL with a
 * sentence when it cannot be used. */
static const char *file_or_data(struct reading *r, yaml_node_t *node, const char *key)
{
    char data_key[64];
    snprintf(data_key, sizeof(data_key), "%s-data", key);
    const char *data = text(r, node, data_key);
    const char *path = text(r, node, key);
    if (!*data)
        return *path ? keep_path(r, path) : "";
    size_t n = strlen(data);
    size_t len = 0;
    uint8_t *bytes = xmalloc(n + 1);
    int bad =
        sodium_base642bin(bytes, n, data, n, " \r\n\t", &len, NULL, sodium_base64_VARIANT_ORIGINAL);
    const char *name = bad || len == 0 ? NULL : keep_content(r, bytes, len);
    explicit_bzero(bytes, n);
    free(bytes);
    if (!name)
        snprintf(r->why, WHY_MAX, "%.100s: %s is no base64.", r->file, data_key);
    return name;
}

/* ── the context ───────────────────────────────────────────────────────────────────────────── */

static int refuse(struct reading *r, const char *what, const char *name)
{
    snprintf(r->why, WHY_MAX, "%.100s: %s '%.80s' is not there.", r->file, what, name);
    return ERR_FORMAT;
}

/* What was set elsewhere stays. */
static void set(const char **field, const char *value)
{
    if (!*field || !**field)
        *field = value;
}

static int take_cluster(struct reading *r, yaml_node_t *cluster, struct agones_config *config)
{
    const char *url = text(r, cluster, "server");
    const char *ca = file_or_data(r, cluster, "certificate-authority");
    if (!ca)
        return ERR_FORMAT;
    if (!*url)
        return refuse(r, "of the cluster", "server");
    if (strcmp(text(r, cluster, "insecure-skip-tls-verify"), "true") == 0) {
        snprintf(r->why, WHY_MAX,
                 "%.100s: insecure-skip-tls-verify is not supported: name the "
                 "certificate-authority.",
                 r->file);
        return ERR_FORMAT;
    }
    set(&config->url, keep(r->k, url));
    set(&config->ca_file, ca);
    return 0;
}

static int take_user(struct reading *r, yaml_node_t *user, struct agones_config *config)
{
    const char *token = text(r, user, "token");
    const char *token_file = text(r, user, "tokenFile");
    const char *certificate = file_or_data(r, user, "client-certificate");
    const char *key = certificate ? file_or_data(r, user, "client-key") : NULL;
    if (!key)
        return ERR_FORMAT;
    if (!*token && !*token_file && !*certificate) {
        snprintf(r->why, WHY_MAX,
                 "%.100s: its user has no token, tokenFile or client-certificate; other ways to "
                 "log in are not supported.",
                 r->file);
        return ERR_FORMAT;
    }
    const char *shown = *token_file ? keep_path(r, token_file) : "";
    if (!*token_file && *token && !(shown = keep_content(r, token, strlen(token)))) {
        snprintf(r->why, WHY_MAX, "Cannot keep the token of %.100s in memory.", r->file);
        return ERR_IO;
    }
    set(&config->token_file, shown);
    set(&config->certificate, certificate);
    set(&config->key, key);
    return 0;
}

static int take(struct reading *r, struct agones_config *config)
{
    const char *current = text(r, yaml_document_get_root_node(&r->document), "current-context");
    yaml_node_t *context = entry(r, "contexts", current, "context");
    if (!context)
        return refuse(r, "the context", current);
    yaml_node_t *cluster = entry(r, "clusters", text(r, context, "cluster"), "cluster");
    yaml_node_t *user = entry(r, "users", text(r, context, "user"), "user");
    if (!cluster)
        return refuse(r, "the cluster", text(r, context, "cluster"));
    if (!user)
        return refuse(r, "the user", text(r, context, "user"));
    int err = take_cluster(r, cluster, config);
    return err ? err : take_user(r, user, config);
}

/* ── the file ──────────────────────────────────────────────────────────────────────────────── */

static int read_file(const char *file, struct buf *ret, char why[WHY_MAX])
{
    int fd = open(file, O_RDONLY | O_CLOEXEC);
    ssize_t got = fd < 0 ? -1 : 1;
    while (got > 0 && ret->len <= FILE_MAX) {
        char piece[8192];
        got = read(fd, piece, sizeof(piece));
        buf_append(ret, piece, got > 0 ? (size_t)got : 0);
    }
    if (got < 0)
        snprintf(why, WHY_MAX, "Cannot read %.150s: %s.", file, strerror(errno));
    else if (ret->len > FILE_MAX)
        snprintf(why, WHY_MAX, "%.150s is too long to be a kubeconfig.", file);
    if (fd >= 0)
        close(fd);
    return got < 0 || ret->len > FILE_MAX ? ERR_IO : 0;
}

static int parse(struct reading *r, const struct buf *content, struct agones_config *config)
{
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser))
        abort(); /* out of memory, as in xcalloc */
    yaml_parser_set_input_string(&parser, content->data ? content->data : (const uint8_t *)"",
                                 content->len);
    int err = ERR_FORMAT;
    if (!yaml_parser_load(&parser, &r->document)) {
        snprintf(r->why, WHY_MAX, "%.100s, line %zu: %.80s.", r->file, parser.problem_mark.line + 1,
                 parser.problem ? parser.problem : "no YAML");
    } else {
        err = take(r, config);
        yaml_document_delete(&r->document);
    }
    yaml_parser_delete(&parser);
    return err;
}

int kubeconfig_open(const char *file, struct agones_config *config, struct kubeconfig **ret,
                    char why[WHY_MAX])
{
    struct buf content = {0};
    struct reading r = {.k = xcalloc(1, sizeof(*r.k)), .file = file, .why = why};
    struct agones_config filled = *config;
    int err = read_file(file, &content, why);
    if (!err)
        err = parse(&r, &content, &filled);
    if (content.data)
        explicit_bzero(content.data, content.cap);
    buf_done(&content);
    if (err) {
        kubeconfig_done(r.k);
        return err;
    }
    *config = filled;
    *ret = r.k;
    return 0;
}
