#include "cli/doctor.h"

#include "base/err.h"
#include "cli/client.h"
#include "cli/config_files.h"
#include "cli/remote.h"
#include "cli/term.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const output_words[] = {"table", "json", NULL};

static struct {
    const char *config;
    const char *data;
    const char *output;
} set = {.data = "data", .output = "table"};

const struct arg doctor_options[] = {
    {.name = "--config",
     .kind = ARG_TEXT,
     .into = &set.config,
     .value = "FILE",
     .help = "what Muster is, or is to be, started with"},
    {.name = "--data",
     .kind = ARG_TEXT,
     .into = &set.data,
     .value = "DIR",
     .help = "its data folder (./data)"},
    {.name = "--output",
     .kind = ARG_CHOICE,
     .letter = 'o',
     .into = &set.output,
     .words = output_words,
     .value = "FORMAT",
     .help = "how to print it (table)"},
    {0},
};

void doctor_say(struct doctor *d, const char *check, enum doctor_level level, const char *format,
                ...)
{
    if (d->n == DOCTOR_FINDINGS_MAX)
        return;
    struct doctor_finding *f = &d->findings[d->n++];
    f->check = check;
    f->level = level;
    f->advice[0] = '\0';
    va_list args;
    va_start(args, format);
    (void)vsnprintf(f->seen, sizeof(f->seen), format, args);
    va_end(args);
}

void doctor_advise(struct doctor *d, const char *format, ...)
{
    struct doctor_finding *f = &d->findings[d->n - 1];
    va_list args;
    va_start(args, format);
    (void)vsnprintf(f->advice, sizeof(f->advice), format, args);
    va_end(args);
}

unsigned long doctor_number(const char *line, int place, char after, int base)
{
    char word[128];
    line += strspn(line, " ");
    for (int i = 0; i < place; i++) {
        line += strcspn(line, " \n");
        line += strspn(line, " ");
    }
    size_t len = strcspn(line, " \n");
    (void)snprintf(word, sizeof(word), "%.*s", (int)len, line);
    const char *last = after ? strrchr(word, after) : NULL;
    return strtoul(last ? last + 1 : word, NULL, base);
}

/* ── configuration, and who runs ───────────────────────────────────────────────────────────── */

static void check_configuration(struct doctor *d, struct config *config)
{
    struct config_mistakes mistakes = {0};
    config_default(config);
    if (!set.config) {
        doctor_say(d, "configuration", DOCTOR_OK, "No --config was given; the defaults are fine.");
        return;
    }
    if (config_load(set.config, config, &mistakes) == 0)
        config_check_files(config, &mistakes);
    for (size_t i = 0; i < mistakes.n && i < CONFIG_MISTAKES_MAX; i++) {
        doctor_say(d, "configuration", DOCTOR_PROBLEM, "%.500s", mistakes.sentence[i]);
        doctor_advise(d, "Mend it; 'muster config keys' lists every key.");
    }
    if (mistakes.n == 0)
        doctor_say(d, "configuration", DOCTOR_OK, "%s is fine.", set.config);
}

/* Its own word, as /v1/health has it. */
static void tell_health(struct doctor *d, const struct json *health)
{
    struct str status = json_get_text(json_member(health, "status"));
    struct str sentence = json_get_text(json_member(health, "sentence"));
    bool healthy = str_eq(status, STR("healthy"));
    doctor_say(d, "running Muster",
               healthy                           ? DOCTOR_OK
               : str_eq(status, STR("degraded")) ? DOCTOR_WARNING
                                                 : DOCTOR_PROBLEM,
               "%.*s", (int)sentence.len, sentence.at);
    if (!healthy)
        doctor_advise(d, "Do: muster status");
}

/* One that does not answer there may have been started with other options. */
static void check_running(struct doctor *d)
{
    char url[96];
    char why[CLIENT_WHY_MAX];
    const char *ip = config_http_bind(d->config);
    bool anywhere = strcmp(ip, "0.0.0.0") == 0 || strcmp(ip, "::") == 0;
    bool tls = d->config->tls_http.certificate[0] != '\0';
    if (!d->holder || tls)
        return;
    (void)snprintf(url, sizeof(url),
                   strchr(ip, ':') && !anywhere ? "http://[%s]:%u" : "http://%s:%u",
                   anywhere ? "127.0.0.1" : ip, d->config->http_port);
    struct client *client =
        client_open(&(struct client_settings){.url = url, .data = d->data, .stop_fd = -1}, why);
    struct client_answer answer = {0};
    enum client_result result =
        client ? client_call(client, HTTP_GET, "/v1/health", NULL, CLIENT_TIMEOUT_S, &answer)
               : CLIENT_UNREACHABLE;
    if (result == CLIENT_DONE && answer.json) {
        tell_health(d, answer.json);
    } else if (result == CLIENT_REFUSED) {
        doctor_say(d, "running Muster", DOCTOR_OK, "One answers at %s.", url);
    } else {
        doctor_say(d, "running Muster", DOCTOR_WARNING, "None answers at %s, but one uses %s.", url,
                   d->data);
        doctor_advise(d, "It may have another configuration: give its --config.");
    }
    client_answer_done(&answer);
    client_close(client);
}

/* ── printing ──────────────────────────────────────────────────────────────────────────────── */

static const char *const level_words[] = {"ok", "warning", "problem"};

static void print_table(const struct doctor *d)
{
    static const enum style styles[] = {STYLE_GOOD, STYLE_WARN, STYLE_BAD};
    struct term term;
    struct buf word = {0};
    term_look(&term, STDOUT_FILENO, false);
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];
        buf_clear(&word);
        term_begin(&word, &term, styles[f->level]);
        term_printf(&word, "%-7s", level_words[f->level]);
        term_end(&word, &term, styles[f->level]);
        printf("%.*s  %-19s  ", (int)word.len, (const char *)word.data, f->check);
        args_print_wrapped(stdout, f->seen, 30);
        if (f->advice[0]) {
            printf("%30s", "");
            args_print_wrapped(stdout, f->advice, 30);
        }
    }
    buf_done(&word);
}

static void print_json(const struct doctor *d, enum doctor_level worst)
{
    struct buf out = {0};
    struct json_writer w = {.out = &out};
    json_open_object(&w);
    json_key_text(&w, "status", str_of(level_words[worst]));
    json_key(&w, "checks");
    json_open_array(&w);
    for (size_t i = 0; i < d->n; i++) {
        const struct doctor_finding *f = &d->findings[i];
        json_open_object(&w);
        json_key_text(&w, "check", str_of(f->check));
        json_key_text(&w, "status", str_of(level_words[f->level]));
        json_key_text(&w, "sentence", str_of(f->seen));
        json_key_text(&w, "advice", str_of(f->advice));
        json_close_object(&w);
    }
    json_close_array(&w);
    json_close_object(&w);
    printf("%.*s\n", (int)out.len, (const char *)out.data);
    buf_done(&out);
}

static int print(const struct doctor *d)
{
    size_t count[DOCTOR_PROBLEM + 1] = {0};
    enum doctor_level worst = DOCTOR_OK;
    for (size_t i = 0; i < d->n; i++) {
        count[d->findings[i].level]++;
        worst = d->findings[i].level > worst ? d->findings[i].level : worst;
    }
    if (strcmp(set.output, "json") == 0) {
        print_json(d, worst);
    } else {
        print_table(d);
        printf("\n%zu checks: %zu ok, %zu warning%s, %zu problem%s\n", d->n, count[DOCTOR_OK],
               count[DOCTOR_WARNING], count[DOCTOR_WARNING] == 1 ? "" : "s", count[DOCTOR_PROBLEM],
               count[DOCTOR_PROBLEM] == 1 ? "" : "s");
    }
    return worst == DOCTOR_PROBLEM ? EXIT_REFUSED : EXIT_DONE;
}

int doctor_run(int argc, char **argv)
{
    if (!args_parse(argc, argv, doctor_options))
        return EXIT_USAGE;
    struct config *config = xcalloc(1, sizeof(*config));
    struct doctor *d = xcalloc(1, sizeof(*d));
    d->config = config;
    d->data = set.data;
    check_configuration(d, config);
    doctor_check_disk(d);
    doctor_check_database(d);
    doctor_check_ports(d);
    doctor_check_tls(d);
    check_running(d);
    doctor_check_limits(d);
    doctor_check_clock(d);
    doctor_check_kernel(d);
    doctor_check_cgroups(d);
    doctor_check_programs(d);
    int code = print(d);
    config_done(config);
    free(config);
    free(d);
    return code;
}
