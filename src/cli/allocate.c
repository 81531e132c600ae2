/* `muster allocate`: a chat server in one command. It greets the manager port, asks for matches
 * (one, or one every so often), prints each answer as it comes and, when told to stay, what happens
 * to the matches afterwards. */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/chat_link.h"
#include "cli/cli.h"
#include "cli/stop.h"
#include "core/core.h"
#include "core/effect.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

const char allocate_usage[] =
    "Usage: muster allocate --lobby N --region EU [OPTIONS]\n"
    "\n"
    "Asks Muster for a game server, as a chat server does for a match all players accepted.\n"
    "\n"
    "  --lobby N            the match's number; asking again for it gives the same answer\n"
    "  --region R[,R...]    where to play, by name or number; several take turns; AUTO is the "
    "best\n"
    "                       of --regions\n"
    "  --regions R[,R...]   which regions this chat server speaks for; Muster must have them and\n"
    "                       the token allow them (those of --region)\n"
    "  --type T, --mode M   game type 0-10 and mode 0-24 (0)\n"
    "  --players N          how many will come (10)\n"
    "  --rating N           their average rating (1500)\n"
    "  --manager HOST:PORT  Muster's manager port (127.0.0.1:11033)\n"
    "  --token T            service token (none is needed where Muster runs with --dev); better "
    "in\n"
    "                       the environment variable MUSTER_ENROL_TOKEN: others see options in ps\n"
    "  --chat-server ID     who asks (cli)\n"
    "  --cancel             gives the match of that lobby up instead, wherever it is; --region is\n"
    "                       then any one that Muster lets this chat server speak for\n"
    "  --every MS           asks for the next lobby number every MS milliseconds ...\n"
    "  --count N            ... N times in all (without it, until stopped)\n"
    "  --stay               keeps the connection and prints what happens to the matches\n"
    "  --json               one JSON object per line\n"
    "\n" CHAT_TLS_USAGE "\n"
    "Exit: 0 done, 1 refused, 2 wrong usage, 3 Muster cannot be reached or does not answer.\n";

enum {
    CONNECT_MS = 5000,
    GREETING_MS = 10000,
    ANSWER_MS = 35000, /* Muster gives a ticket 30 s */
    HEARTBEAT_MS = 30000,
    OPEN_MAX = 1024, /* requests without an answer; the next one waits */
};

/* What Muster says to a greeting that belongs to another port. */
static const char OTHER_PORT[] = "came before the handshake";

struct settings {
    int64_t lobby;
    int64_t type;
    int64_t mode;
    int64_t players;
    int64_t rating;
    int64_t every_ms;
    int64_t count;
    const char *region;
    const char *regions;
    const char *manager;
    const char *token;
    const char *chat_server;
    struct chat_tls_wish tls;
    bool cancel;
    bool stay;
    bool json;
};

struct open_request {
    int32_t lobby;
    int64_t sent_us;
};

struct region_list {
    uint8_t codes[REGION_CODES];
    size_t n;
};

struct asker {
    struct settings set;
    struct region_list asked_for; /* in turns; may hold AUTO */
    struct region_list speaks_for;
    struct chat_link link;
    int stop;
    struct open_request open[OPEN_MAX]; /* oldest first */
    size_t n_open;
    int64_t asked;
    int64_t refused;
    int64_t next_ask_ms;
    int64_t next_heartbeat_ms;
};

/* Muster's text for a terminal: control characters would do things there. */
static void print_text(struct str s)
{
    for (size_t i = 0; i < s.len; i++) {
        unsigned char ch = (unsigned char)s.at[i];
        putchar(ch < 0x20 || ch == 0x7F ? '?' : ch);
    }
}

static void print_json_text(const char *before, struct str s)
{
    printf("%s\"", before);
    for (size_t i = 0; i < s.len; i++) {
        unsigned char ch = (unsigned char)s.at[i];
        if (ch == '"' || ch == '\\')
            printf("\\%c", ch);
        else if (ch < 0x20)
            printf("\\u%04x", ch);
        else
            putchar(ch);
    }
    putchar('"');
}

static void end_line(void)
{
    putchar('\n');
    fflush(stdout);
}

static void print_allocated(const struct asker *a,
                            const struct chat_mgr_server_allocation_response *m, double ms)
{
    if (a->set.json) {
        printf("{\"lobby\":%" PRId32 ",\"ok\":true,\"server\":%" PRId32, m->lobby, m->server_id);
        print_json_text(",\"ip\":", m->ip);
        printf(",\"port\":%" PRId32, m->port);
        print_json_text(",\"token\":", m->match_token);
        printf(",\"ms\":%.3f}", ms);
    } else {
        printf("lobby %" PRId32 ": server %" PRId32 " at ", m->lobby, m->server_id);
        print_text(m->ip);
        printf(":%" PRId32 " token ", m->port);
        print_text(m->match_token);
        printf(" in %.1f ms", ms);
    }
    end_line();
}

static void print_refused(const struct asker *a, int32_t lobby, struct str error, double ms)
{
    if (a->set.json) {
        printf("{\"lobby\":%" PRId32 ",\"ok\":false", lobby);
        print_json_text(",\"error\":", error);
        printf(",\"ms\":%.3f}", ms);
    } else {
        printf("lobby %" PRId32 ": refused: ", lobby);
        print_text(error);
    }
    end_line();
}

static void print_cancelled(const struct asker *a, int32_t lobby, double ms)
{
    if (a->set.json)
        printf("{\"lobby\":%" PRId32 ",\"ok\":true,\"ms\":%.3f}", lobby, ms);
    else
        printf("lobby %" PRId32 ": cancelled", lobby);
    end_line();
}

static const char *event_words(int8_t kind)
{
    switch ((enum match_event)kind) {
    case MATCH_READY:
        return "ready";
    case MATCH_LOST:
        return "server lost";
    case MATCH_ENDED:
        return "ended";
    case MATCH_BACK:
        return "server back";
    }
    return "unknown event";
}

static void print_event(const struct asker *a, const struct chat_mgr_match_event *m)
{
    const char *words = event_words(m->kind);
    if (a->set.json) {
        printf("{\"lobby\":%" PRId32 ",\"event\":\"%s\"", m->lobby, words);
        print_json_text(",\"reason\":", m->reason);
        putchar('}');
    } else {
        printf("lobby %" PRId32 ": %s", m->lobby, words);
        if (m->kind == MATCH_ENDED && m->reason.len > 0) { /* the others say all in their name */
            printf(": ");
            print_text(m->reason);
        }
    }
    end_line();
}

/* Says why the conversation cannot go on. */
static int unreachable(const char *format, ...) __attribute__((format(printf, 1, 2)));

static int unreachable(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    fflush(stdout);
    fputs("muster allocate: ", stderr);
    vfprintf(stderr, format, args);
    fputc('\n', stderr);
    va_end(args);
    return EXIT_UNREACHABLE;
}

/* The greeting was refused: a sentence for people, and for programs an object without a lobby. */
static void say_unwelcome(const struct asker *a, struct str why)
{
    bool other_port = memmem(why.at, why.len, OTHER_PORT, strlen(OTHER_PORT)) != NULL;
    fprintf(stderr, "muster allocate: %s refused us: %.*s%s\n", a->set.manager, (int)why.len,
            why.at,
            other_port ? " (is this the server port? chat servers use the manager port)" : "");
    if (!a->set.json)
        return;
    print_json_text("{\"ok\":false,\"error\":", why);
    putchar('}');
    end_line();
}

static int greet(struct asker *a)
{
    const struct region_list *regions = &a->speaks_for;
    struct chat_message hello = {
        .kind = CHAT_MGR_HANDSHAKE,
        .mgr_handshake = {.service_token = str_of(a->set.token),
                          .chat_server_id = str_of(a->set.chat_server),
                          .regions = {(uint32_t)regions->n, regions->codes, regions->n}},
    };
    (void)chat_link_send(&a->link, &hello);
    struct chat_message m;
    switch (chat_link_next(&a->link, a->stop, clock_monotonic_ms() + GREETING_MS, &m)) {
    case LINK_TIMEOUT:
        return unreachable("%s does not answer; is it Muster's manager port?", a->set.manager);
    case LINK_STOPPED:
        return EXIT_UNREACHABLE;
    case LINK_BROKEN:
        return unreachable("%s: %s", a->set.manager, a->link.error);
    case LINK_MESSAGE:
        break;
    }
    bool is_error = m.kind == CHAT_ERROR;
    if (is_error || (m.kind == CHAT_MGR_HANDSHAKE_RESPONSE && !m.mgr_handshake_response.ok)) {
        struct str why = is_error ? m.error.message : m.mgr_handshake_response.error;
        say_unwelcome(a, why);
        return EXIT_REFUSED;
    }
    if (m.kind != CHAT_MGR_HANDSHAKE_RESPONSE)
        return unreachable("%s answered with %s; is it Muster's manager port?", a->set.manager,
                           chat_name(m.kind));
    return EXIT_DONE;
}

static bool all_asked(const struct asker *a)
{
    return a->asked >= a->set.count;
}

static void ask(struct asker *a)
{
    int32_t lobby = (int32_t)(a->set.lobby + a->asked);
    struct chat_message m = {.kind = CHAT_MGR_ALLOCATION_CANCEL, .mgr_allocation_cancel = {lobby}};
    if (!a->set.cancel)
        m = (struct chat_message){
            .kind = CHAT_MGR_SERVER_ALLOCATION_REQUEST,
            .mgr_server_allocation_request =
                {
                    .lobby = lobby,
                    .game_type = (int8_t)a->set.type,
                    .game_mode = (int8_t)a->set.mode,
                    .region = (int8_t)a->asked_for.codes[(size_t)a->asked % a->asked_for.n],
                    .player_count = (int8_t)a->set.players,
                    .average_rating = (int32_t)a->set.rating,
                },
        };
    a->open[a->n_open++] = (struct open_request){lobby, clock_monotonic_us()};
    a->asked++;
    (void)chat_link_send(&a->link, &m);
}

/* Milliseconds since the lobby was asked for; negative when nothing was. */
static double take_open(struct asker *a, int32_t lobby)
{
    for (size_t i = 0; i < a->n_open; i++) {
        if (a->open[i].lobby != lobby)
            continue;
        double ms = (double)(clock_monotonic_us() - a->open[i].sent_us) / 1000;
        a->n_open--;
        memmove(&a->open[i], &a->open[i + 1], (a->n_open - i) * sizeof(a->open[0]));
        return ms;
    }
    return -1;
}

static void on_allocation(struct asker *a, const struct chat_mgr_server_allocation_response *m)
{
    double ms = take_open(a, m->lobby);
    if (ms < 0)
        return;
    if (m->ok) {
        print_allocated(a, m, ms);
    } else {
        print_refused(a, m->lobby, m->error, ms);
        a->refused++;
    }
}

static void on_cancel(struct asker *a, const struct chat_mgr_allocation_cancel_response *m)
{
    double ms = take_open(a, m->lobby);
    if (ms < 0)
        return;
    if (m->ok) {
        print_cancelled(a, m->lobby, ms);
    } else {
        print_refused(a, m->lobby, m->error, ms);
        a->refused++;
    }
}

static int on_message(struct asker *a, const struct chat_message *m)
{
    switch (m->kind) {
    case CHAT_MGR_SERVER_ALLOCATION_RESPONSE:
        on_allocation(a, &m->mgr_server_allocation_response);
        return EXIT_DONE;
    case CHAT_MGR_ALLOCATION_CANCEL_RESPONSE:
        on_cancel(a, &m->mgr_allocation_cancel_response);
        return EXIT_DONE;
    case CHAT_MGR_MATCH_EVENT:
        if (a->set.stay)
            print_event(a, &m->mgr_match_event);
        return EXIT_DONE;
    case CHAT_ERROR:
        return unreachable("%s ended the conversation: %.*s", a->set.manager,
                           (int)m->error.message.len, m->error.message.at);
    default:
        return EXIT_DONE;
    }
}

/* What the clock asks for now; returns when to look again. */
static int64_t act(struct asker *a, int64_t now)
{
    while (now >= a->next_ask_ms && !all_asked(a) && a->n_open < OPEN_MAX) {
        ask(a);
        a->next_ask_ms += a->set.every_ms;
    }
    if (now >= a->next_heartbeat_ms) {
        (void)chat_link_send(&a->link, &(struct chat_message){.kind = CHAT_MGR_HEARTBEAT});
        a->next_heartbeat_ms = now + HEARTBEAT_MS;
    }
    int64_t due = a->next_heartbeat_ms;
    if (!all_asked(a) && a->n_open < OPEN_MAX && a->next_ask_ms < due)
        due = a->next_ask_ms;
    if (a->n_open > 0 && a->open[0].sent_us / 1000 + ANSWER_MS < due)
        due = a->open[0].sent_us / 1000 + ANSWER_MS;
    return due;
}

static int converse(struct asker *a)
{
    int64_t now = clock_monotonic_ms();
    a->next_ask_ms = now;
    a->next_heartbeat_ms = now + HEARTBEAT_MS;
    for (;;) {
        int64_t due = act(a, clock_monotonic_ms());
        if (all_asked(a) && a->n_open == 0 && !a->set.stay)
            return a->refused > 0 ? EXIT_REFUSED : EXIT_DONE;
        struct chat_message m;
        enum chat_link_result r = chat_link_next(&a->link, a->stop, due, &m);
        if (r == LINK_STOPPED)
            return EXIT_DONE;
        if (r == LINK_BROKEN)
            return unreachable("%s: %s", a->set.manager, a->link.error);
        int code = r == LINK_MESSAGE ? on_message(a, &m) : EXIT_DONE;
        if (code != EXIT_DONE)
            return code;
        if (a->n_open > 0 && clock_monotonic_ms() >= a->open[0].sent_us / 1000 + ANSWER_MS)
            return unreachable("lobby %" PRId32 ": no answer from %s within %d s", a->open[0].lobby,
                               a->set.manager, ANSWER_MS / 1000);
    }
}

static bool parse_list(const char *verb, const char *option, const char *names,
                       struct region_list *ret)
{
    char text[256];
    if (!str_copy(text, sizeof(text), str_of(names)))
        return args_refuse(verb, "%s is too long", option);
    char *rest = NULL;
    for (char *name = strtok_r(text, ",", &rest); name; name = strtok_r(NULL, ",", &rest)) {
        int8_t region = args_region(name);
        if (region < 0)
            return args_refuse(verb, "there is no region '%s'; there are %s and AUTO", name,
                               args_region_names());
        if (ret->n == REGION_CODES)
            return args_refuse(verb, "%s names too many", option);
        ret->codes[ret->n++] = (uint8_t)region;
    }
    return ret->n > 0 || args_refuse(verb, "%s names none", option);
}

static bool has_region(const struct region_list *list, int8_t region)
{
    return memchr(list->codes, region, list->n) != NULL;
}

/* Muster refuses a greeting that names a region it does not have or the token does not allow, so
 * nothing is named that the command line did not. */
static bool parse_regions(const char *verb, struct asker *a)
{
    const struct settings *s = &a->set;
    if (!s->region && !(s->cancel && s->regions))
        return args_refuse(verb, "%s",
                           s->cancel ? "--cancel needs --region too: Muster asks every chat server "
                                       "which regions it speaks for, and any one of them will do"
                                     : "--region is missing");
    if (s->region && !parse_list(verb, "--region", s->region, &a->asked_for))
        return false;
    bool is_auto = has_region(&a->asked_for, REGION_AUTO);
    if (is_auto && !s->regions)
        return args_refuse(verb, "--region AUTO needs --regions, those to choose from, such as "
                                 "--regions EU,USE");
    if (!s->regions) {
        a->speaks_for = a->asked_for;
        return true;
    }
    if (!parse_list(verb, "--regions", s->regions, &a->speaks_for))
        return false;
    return !has_region(&a->speaks_for, REGION_AUTO) ||
           args_refuse(verb, "--regions names regions one by one, so AUTO is none of them");
}

static bool parse(int argc, char **argv, struct asker *a)
{
    struct settings *s = &a->set;
    const struct arg table[] = {
        {.name = "--lobby",
         .kind = ARG_NUMBER,
         .into = &s->lobby,
         .min = INT32_MIN,
         .max = INT32_MAX},
        {.name = "--region", .kind = ARG_TEXT, .into = &s->region},
        {.name = "--regions", .kind = ARG_TEXT, .into = &s->regions},
        {.name = "--type", .kind = ARG_NUMBER, .into = &s->type, .min = INT8_MIN, .max = INT8_MAX},
        {.name = "--mode", .kind = ARG_NUMBER, .into = &s->mode, .min = INT8_MIN, .max = INT8_MAX},
        {.name = "--players",
         .kind = ARG_NUMBER,
         .into = &s->players,
         .min = INT8_MIN,
         .max = INT8_MAX},
        {.name = "--rating",
         .kind = ARG_NUMBER,
         .into = &s->rating,
         .min = INT32_MIN,
         .max = INT32_MAX},
        {.name = "--manager", .kind = ARG_TEXT, .into = &s->manager},
        {.name = "--token", .kind = ARG_TEXT, .into = &s->token},
        {.name = "--chat-server", .kind = ARG_TEXT, .into = &s->chat_server},
        {.name = "--cancel", .kind = ARG_FLAG, .into = &s->cancel},
        {.name = "--every", .kind = ARG_NUMBER, .into = &s->every_ms, .min = 0, .max = 86400000},
        {.name = "--count", .kind = ARG_NUMBER, .into = &s->count, .min = 1, .max = INT32_MAX},
        {.name = "--stay", .kind = ARG_FLAG, .into = &s->stay},
        {.name = "--json", .kind = ARG_FLAG, .into = &s->json},
        CHAT_TLS_ARGS(&s->tls),
        {0},
    };
    s->lobby = INT64_MIN;
    s->every_ms = -1;
    if (!args_parse(argc, argv, table) || !chat_tls_check(argv[0], &s->tls))
        return false;
    if (s->lobby == INT64_MIN)
        return args_refuse(argv[0], "--lobby is missing");
    if (!strchr(s->manager, ':'))
        return args_refuse(argv[0], "--manager takes HOST:PORT, not '%s'", s->manager);
    int64_t numbers_left = (int64_t)INT32_MAX - s->lobby + 1;
    if (s->count == 0)
        s->count = s->every_ms < 0 ? 1 : numbers_left;
    if (s->every_ms < 0)
        s->every_ms = 0;
    if (s->count > numbers_left)
        return args_refuse(argv[0], "--lobby and --count go past the last lobby number");
    return parse_regions(argv[0], a);
}

int allocate_run(int argc, char **argv)
{
    static struct asker a = {
        .set = {.players = 10, .rating = 1500, .manager = "127.0.0.1:11033", .chat_server = "cli"},
    };
    a.set.token = args_token();
    if (!parse(argc, argv, &a))
        return EXIT_USAGE;
    const char *error = chat_link_open(&a.link, a.set.manager, &a.set.tls, CONNECT_MS);
    if (error && a.link.reached)
        return unreachable("%s: %s", a.set.manager, error);
    if (error)
        return unreachable("cannot reach %s: %s; is 'muster serve' running?", a.set.manager, error);
    a.stop = stop_open();
    int code = greet(&a);
    if (code == EXIT_DONE)
        code = converse(&a);
    chat_link_done(&a.link);
    close(a.stop);
    return code;
}
