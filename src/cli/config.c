#include "cli/config.h"

#include "base/buf.h"
#include "base/err.h"
#include "cli/config_doc.h"
#include "cli/config_take.h"
#include "cli/yaml_words.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void config_default(struct config *ret)
{
    *ret = (struct config){
        .bind_ip = "0.0.0.0",
        .server_port = 11032,
        .manager_port = 11033,
        .client_port = 11031,
        .connections = 20000,
        .connections_per_address = 4096,
        .client_connections = 20000,
        .client_connections_per_address = 4096,
        .http_port = 9508,
        .http_connections = 2000,
        .http_connections_per_address = 128,
        .log_level = LOG_INFO,
        .log_format = LOG_LOGFMT,
        .gamespace = "1",
        .history_max_mb = 1024,
        .history_days = 14,
        .cluster = {.cell = "default", .lease_ms = 2000},
        .nats = {.request_subject = "muster.allocation.request",
                 .result_subject = "muster.allocation.result",
                 .dead_subject = "muster.allocation.dead",
                 .stream = "MUSTER",
                 .durable = "muster",
                 .max_deliver = 10,
                 .ack_wait_ms = 30 * 1000},
        .pubsub = {.pull_messages = 100, .pulls = 2},
    };
    core_config_default(&ret->core);
    ret->core.buses = 0; /* until some are configured */
}

static void launch_done(struct launch *l)
{
    for (size_t i = 0; i < l->n_versions; i++)
        free(l->versions[i].server_settings);
    free(l->server_settings);
}

void config_done(struct config *config)
{
    for (size_t i = 0; i < config->n_launches; i++)
        launch_done(&config->launches[i]);
    free(config->launches);
    config->launches = NULL;
    config->n_launches = 0;
}

const char *config_http_bind(const struct config *config)
{
    return config->http_bind_ip[0] ? config->http_bind_ip : config->bind_ip;
}

const char *config_default_region(const struct config *config)
{
    const struct core_config *core = &config->core;
    int code = core->default_region >= 0 ? core->default_region : 0;
    while (code < REGION_CODES - 1 && !core->regions[code].name[0])
        code++;
    return core->regions[code].name;
}

static void on_libcyaml_log(cyaml_log_t level, void *user, const char *format, va_list args)
{
    (void)level;
    yaml_listen(user, format, args);
}

static void refuse_yaml(struct reading *r, struct yaml_complaint *c, cyaml_err_t err)
{
    char words[YAML_WORDS_MAX];
    yaml_words(c, cyaml_strerror(err), words);
    reading_refuse(r, c->place, c->written, "%s", words);
}

/* The schema's checks stop at the first mistake, ours do not. */
static void read_document(struct reading *r)
{
    struct yaml_complaint complaint = {0};
    cyaml_config_t cyaml = {
        .log_fn = on_libcyaml_log,
        .log_ctx = &complaint,
        .mem_fn = cyaml_mem,
        .log_level = CYAML_LOG_WARNING,
        .flags = CYAML_CFG_NO_ALIAS,
    };
    struct doc *doc = NULL;
    cyaml_err_t err = cyaml_load_data((const uint8_t *)r->text, r->len, &cyaml, &config_doc_schema,
                                      (cyaml_data_t **)&doc, NULL);
    if (err != CYAML_OK)
        refuse_yaml(r, &complaint, err);
    else if (doc)
        config_take(r, doc);
    cyaml_free(&cyaml, &config_doc_schema, doc, 0);
}

static void add_mistake(struct config_mistakes *mistakes, const char *name, const char *what)
{
    if (mistakes->n++ < CONFIG_MISTAKES_MAX)
        snprintf(mistakes->sentence[mistakes->n - 1], CONFIG_WHY_MAX, "%.200s: %s", name, what);
}

/* False when the name of the file is too long for paths of its folder. */
static bool find_folder(const char *name, char ret[CONFIG_PATH_MAX])
{
    const char *slash = strrchr(name, '/');
    size_t n = slash ? (size_t)(slash - name) : 0;
    if (slash == name) /* "/muster.yaml" */
        n = 1;
    return str_copy(ret, CONFIG_PATH_MAX, (struct str){name, n});
}

int config_parse(const char *name, const char *text, size_t len, struct config *ret,
                 struct config_mistakes *mistakes)
{
    struct reading r = {
        .name = name, .text = text, .len = len, .config = ret, .mistakes = mistakes};
    char words[YAML_WORDS_MAX];
    mistakes->n = 0;
    if (len == 0)
        return 0;
    if (!find_folder(name, r.folder))
        add_mistake(mistakes, name, "the path is too long");
    else if (!yaml_is_one_document(text, len, words))
        add_mistake(mistakes, name, words);
    else
        read_document(&r);
    return mistakes->n == 0 ? 0 : ERR_INVALID_REQUEST;
}

static int cannot_read(const char *path, struct config_mistakes *mistakes)
{
    mistakes->n = 1;
    snprintf(mistakes->sentence[0], CONFIG_WHY_MAX, "Cannot read %.300s: %s", path,
             strerror(errno));
    return ERR_IO;
}

static int read_config(FILE *f, const char *name, struct config *ret,
                       struct config_mistakes *mistakes)
{
    char *text = xmalloc(CONFIG_FILE_MAX + 1);
    size_t len = fread(text, 1, CONFIG_FILE_MAX + 1, f);
    int err = 0;
    if (ferror(f)) {
        err = cannot_read(name, mistakes);
    } else if (len > CONFIG_FILE_MAX) {
        char why[80];
        snprintf(why, sizeof(why), "longer than %d bytes", CONFIG_FILE_MAX);
        mistakes->n = 0;
        add_mistake(mistakes, name, why);
        err = ERR_INVALID_REQUEST;
    } else {
        err = config_parse(name, text, len, ret, mistakes);
    }
    /* Tokens may stand in it. */
    explicit_bzero(text, len);
    free(text);
    return err;
}

int config_load(const char *path, struct config *ret, struct config_mistakes *mistakes)
{
    if (strcmp(path, "-") == 0)
        return read_config(stdin, "standard input", ret, mistakes);
    FILE *f = fopen(path, "re");
    if (!f)
        return cannot_read(path, mistakes);
    int err = read_config(f, path, ret, mistakes);
    fclose(f);
    return err;
}

void config_print_mistakes(const char *verb, const struct config_mistakes *mistakes)
{
    for (size_t i = 0; i < mistakes->n && i < CONFIG_MISTAKES_MAX; i++)
        fprintf(stderr, "muster %s: %s\n", verb, mistakes->sentence[i]);
    if (mistakes->n > CONFIG_MISTAKES_MAX)
        fprintf(stderr, "muster %s: and %zu more\n", verb, mistakes->n - CONFIG_MISTAKES_MAX);
}
