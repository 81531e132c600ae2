/* `muster allocate`: a chat server in one command. It greets the manager port, asks for matches
 * (one, or one every so often), prints each answer as it comes and, when told to stay, what happens
 * to the matches afterwards. Where there are several nodes it goes on with the next leader: it
 * greets with the same name and asks again for what is not answered, so each is answered once. */
#include "base/clock.h"
#include "cli/args.h"
#include "cli/chat_link.h"
#include "cli/cli.h"
#include "cli/screen.h"
#include "cli/stop.h"
#include "core/core.h"
#include "core/effect.h"
#include "net/nodes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    CONNECT_MS = 5000,
    CONNECT_ONE_OF_MS = 2000, /* … where another node could be tried meanwhile */
    WAIT_MAX_MS = 2000,
    PATIENT_MS = 15 * 1000, /* while nobody leads; when we had a leader … */
    RETURN_MS = 35 * 1000,  /* … somewhat longer than a ticket lives */
    SHORT_MS = 1000,        /* a conversation that ended sooner is not begun again at once */
    GREETING_MS = 10000,
    GREETING_ONE_OF_MS = 3000,
    SILENCE_MS = 10000, /* of one of several, while it should talk to us */
    ANSWER_MS = 35000,  /* Muster gives a ticket 30 s */
    HEARTBEAT_MS = 30000,
    OPEN_MAX = 1024, /* requests without an answer; the next one waits */
};

/* Beside the exit codes. */
enum { EXIT_STOPPED = -1, EXIT_LOST = -2 };

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
    int64_t due_ms; /* when it is given up */
};

struct region_list {
    uint8_t codes[REGION_CODES];
    size_t n;
};

struct asker {
    struct settings set;
    struct nodes nodes;           /* manager ports */
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
    char why[512]; /* nobody could be met */
    bool leads_on; /* a standby has named the leader */
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
    fprintf(stderr, "muster allocate: %s refused us: %.*s%s\n", a->nodes.now, (int)why.len, why.at,
            other_port ? " (is this the server port? chat servers use the manager port)" : "");
    if (!a->set.json)
        return;
    print_json_text("{\"ok\":false,\"error\":", why);
    putchar('}');
    end_line();
}

/* ── finding who leads ─────────────────────────────────────────────────────────────────────── */

/* What came of a try to meet one of the nodes. */
enum meeting {
    MEETING_GOOD,
    MEETING_FAILED,   /* why says what is wrong with it */
    MEETING_STANDBY,  /* why is its sentence */
    MEETING_UNWANTED, /* it refused us, which was said */
    MEETING_STOPPED,
};

static enum meeting fail(struct asker *a, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static enum meeting fail(struct asker *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    vsnprintf(a->why, sizeof(a->why), format, args);
    va_end(args);
    return MEETING_FAILED;
}

static enum meeting on_greeting(struct asker *a, const struct chat_message *m)
{
    struct str leader;
    bool is_error = m->kind == CHAT_ERROR;
    bool refused = m->kind == CHAT_MGR_HANDSHAKE_RESPONSE && !m->mgr_handshake_response.ok;
    if (!is_error && !refused)
        return m->kind == CHAT_MGR_HANDSHAKE_RESPONSE
                   ? MEETING_GOOD
                   : fail(a, "%s answered with %s; is it Muster's manager port?", a->nodes.now,
                          chat_name(m->kind));
    struct str why = is_error ? m->error.message : m->mgr_handshake_response.error;
    if (refused && nodes_is_standby(why, &leader)) {
        (void)fail(a, "%s: %.*s", a->nodes.now, (int)why.len, why.at);
        a->leads_on = nodes_follow_sentence(&a->nodes, why);
        return MEETING_STANDBY;
    }
    say_unwelcome(a, why);
    return MEETING_UNWANTED;
}

static enum meeting greet(struct asker *a)
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
    int64_t most_ms = nodes_are_several(&a->nodes) ? GREETING_ONE_OF_MS : GREETING_MS;
    switch (chat_link_next(&a->link, a->stop, clock_monotonic_ms() + most_ms, &m)) {
    case LINK_TIMEOUT:
        return fail(a, "%s does not answer; is it Muster's manager port?", a->nodes.now);
    case LINK_STOPPED:
        return MEETING_STOPPED;
    case LINK_BROKEN:
        return fail(a, "%s: %s", a->nodes.now, a->link.error);
    case LINK_MESSAGE:
        break;
    }
    return on_greeting(a, &m);
}

static enum meeting meet_one(struct asker *a)
{
    bool several = nodes_are_several(&a->nodes);
    const char *error = chat_link_open(&a->link, a->nodes.now, &a->set.tls,
                                       several ? CONNECT_ONE_OF_MS : CONNECT_MS);
    if (error && a->link.reached)
        return fail(a, "%s: %s", a->nodes.now, error);
    if (error)
        return fail(a, "cannot reach %s: %s; is 'muster serve' running?", a->nodes.now, error);
    enum meeting result = greet(a);
    if (result != MEETING_GOOD)
        chat_link_done(&a->link);
    return result;
}

/* Greets whoever leads. A standby that answers is a reason to be patient until then; where nobody
 * is there at all, only `hopes` is. */
static int meet(struct asker *a, bool hopes, int64_t until_ms)
{
    for (;;) {
        int64_t wait_ms = 0;
        a->leads_on = false;
        enum meeting result = meet_one(a);
        if (result == MEETING_GOOD) {
            nodes_succeed(&a->nodes);
            if (nodes_are_several(&a->nodes))
                chat_link_watch(&a->link, SILENCE_MS);
            return EXIT_DONE;
        }
        if (result == MEETING_UNWANTED)
            return EXIT_REFUSED;
        if (result == MEETING_STOPPED)
            return EXIT_STOPPED;
        if (!a->leads_on)
            wait_ms = nodes_fail(&a->nodes, result == MEETING_STANDBY);
        hopes |= result == MEETING_STANDBY;
        if (wait_ms > 0 && (!hopes || clock_monotonic_ms() + wait_ms >= until_ms))
            return unreachable("%s", a->why);
        if (wait_ms > 0 && screen_wait(&a->stop, 1, clock_monotonic_ms() + wait_ms) == 0)
            return EXIT_STOPPED;
    }
}

/* ── asking ────────────────────────────────────────────────────────────────────────────────── */

static bool all_asked(const struct asker *a)
{
    return a->asked >= a->set.count;
}

static void send_request(struct asker *a, struct open_request *open)
{
    size_t turn = (size_t)(open->lobby - a->set.lobby);
    struct chat_message m = {.kind = CHAT_MGR_ALLOCATION_CANCEL,
                             .mgr_allocation_cancel = {open->lobby}};
    if (!a->set.cancel)
        m = (struct chat_message){
            .kind = CHAT_MGR_SERVER_ALLOCATION_REQUEST,
            .mgr_server_allocation_request =
                {
                    .lobby = open->lobby,
                    .game_type = (int8_t)a->set.type,
                    .game_mode = (int8_t)a->set.mode,
                    .region = (int8_t)a->asked_for.codes[turn % a->asked_for.n],
                    .player_count = (int8_t)a->set.players,
                    .average_rating = (int32_t)a->set.rating,
                },
        };
    open->due_ms = clock_monotonic_ms() + ANSWER_MS;
    (void)chat_link_send(&a->link, &m);
}

static void ask(struct asker *a)
{
    struct open_request *open = &a->open[a->n_open++];
    *open = (struct open_request){.lobby = (int32_t)(a->set.lobby + a->asked),
                                  .sent_us = clock_monotonic_us()};
    a->asked++;
    send_request(a, open);
}

/* To the next leader, which knows what the last one has answered. */
static void ask_again(struct asker *a)
{
    for (size_t i = 0; i < a->n_open; i++)
        send_request(a, &a->open[i]);
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
        (void)fail(a, "%s ended the conversation: %.*s", a->nodes.now, (int)m->error.message.len,
                   m->error.message.at);
        return str_eq(m->error.message, STR("Replaced by a new connection"))
                   ? unreachable("%s", a->why)
                   : EXIT_LOST;
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
    if (a->n_open > 0 && a->open[0].due_ms < due)
        due = a->open[0].due_ms;
    return due;
}

/* Until all is answered, or EXIT_LOST. */
static int converse(struct asker *a)
{
    for (;;) {
        int64_t due = act(a, clock_monotonic_ms());
        if (all_asked(a) && a->n_open == 0 && !a->set.stay)
            return a->refused > 0 ? EXIT_REFUSED : EXIT_DONE;
        struct chat_message m;
        enum chat_link_result r = chat_link_next(&a->link, a->stop, due, &m);
        if (r == LINK_STOPPED)
            return EXIT_DONE;
        if (r == LINK_BROKEN) {
            (void)fail(a, "%s: %s", a->nodes.now, a->link.error);
            return EXIT_LOST;
        }
        int code = r == LINK_MESSAGE ? on_message(a, &m) : EXIT_DONE;
        if (code != EXIT_DONE)
            return code;
        if (a->n_open > 0 && clock_monotonic_ms() >= a->open[0].due_ms)
            return unreachable("lobby %" PRId32 ": no answer from %s within %d s", a->open[0].lobby,
                               a->nodes.now, ANSWER_MS / 1000);
    }
}

/* The connection is lost: with one node that is the end, with several the next leader is met. */
static int return_to(struct asker *a, int64_t met_ms)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!nodes_are_several(&a->nodes))
        return unreachable("%s", a->why);
    fprintf(stderr, "muster allocate: %s; looking for the leader\n", a->why);
    if (now_ms - met_ms < SHORT_MS && screen_wait(&a->stop, 1, now_ms + SHORT_MS) == 0)
        return EXIT_STOPPED;
    (void)nodes_fail(&a->nodes, false); /* the others first */
    int code = meet(a, true, now_ms + RETURN_MS);
    if (code == EXIT_DONE)
        ask_again(a);
    return code;
}

static int run(struct asker *a)
{
    int64_t met_ms = clock_monotonic_ms();
    int code = meet(a, false, met_ms + PATIENT_MS);
    if (code == EXIT_STOPPED)
        return EXIT_UNREACHABLE; /* nothing was asked */
    a->next_ask_ms = clock_monotonic_ms();
    a->next_heartbeat_ms = a->next_ask_ms + HEARTBEAT_MS;
    while (code == EXIT_DONE) {
        met_ms = clock_monotonic_ms();
        int end = converse(a);
        chat_link_done(&a->link);
        if (end != EXIT_LOST)
            return end;
        code = return_to(a, met_ms);
    }
    return code == EXIT_STOPPED ? EXIT_DONE : code;
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

/* One verb runs per process. */
static struct asker asker = {.set = {.lobby = INT64_MIN,
                                     .every_ms = -1,
                                     .players = 10,
                                     .rating = 1500,
                                     .manager = "127.0.0.1:11033",
                                     .chat_server = "cli"}};

const struct arg allocate_options[] = {
    {.name = "--lobby",
     .kind = ARG_NUMBER,
     .into = &asker.set.lobby,
     .min = INT32_MIN,
     .max = INT32_MAX,
     .value = "N",
     .help = "the match's number; asking again for it gives the same answer"},
    {.name = "--region",
     .kind = ARG_TEXT,
     .into = &asker.set.region,
     .value = "R[,R...]",
     .help = "where to play, by name or number; several take turns; AUTO is the best of --regions"},
    {.name = "--regions",
     .kind = ARG_TEXT,
     .into = &asker.set.regions,
     .value = "R[,R...]",
     .help = "which regions this chat server speaks for; Muster must have them and the token allow "
             "them (those of --region)"},
    {.name = "--type",
     .kind = ARG_NUMBER,
     .into = &asker.set.type,
     .min = INT8_MIN,
     .max = INT8_MAX,
     .value = "T",
     .help = "game type 0-10 (0)"},
    {.name = "--mode",
     .kind = ARG_NUMBER,
     .into = &asker.set.mode,
     .min = INT8_MIN,
     .max = INT8_MAX,
     .value = "M",
     .help = "and mode 0-24 (0)"},
    {.name = "--players",
     .kind = ARG_NUMBER,
     .into = &asker.set.players,
     .min = INT8_MIN,
     .max = INT8_MAX,
     .value = "N",
     .help = "how many will come (10)"},
    {.name = "--rating",
     .kind = ARG_NUMBER,
     .into = &asker.set.rating,
     .min = INT32_MIN,
     .max = INT32_MAX,
     .value = "N",
     .help = "their average rating (1500)"},
    {.name = "--manager",
     .kind = ARG_TEXT,
     .into = &asker.set.manager,
     .value = "HOST:PORT",
     .help = "Muster's manager port (127.0.0.1:11033); several nodes with commas between them"},
    {.name = "--token",
     .kind = ARG_TEXT,
     .into = &asker.set.token,
     .value = "T",
     .help = "service token (none is needed where Muster runs with --dev); better in the "
             "environment variable MUSTER_ENROL_TOKEN: others see options in ps"},
    {.name = "--chat-server",
     .kind = ARG_TEXT,
     .into = &asker.set.chat_server,
     .value = "ID",
     .help = "who asks (cli)"},
    {.name = "--cancel",
     .kind = ARG_FLAG,
     .into = &asker.set.cancel,
     .help = "gives the match of that lobby up instead, wherever it is; --region is then any one "
             "that Muster lets this chat server speak for"},
    {.name = "--every",
     .kind = ARG_NUMBER,
     .into = &asker.set.every_ms,
     .min = 0,
     .max = 86400000,
     .value = "MS",
     .help = "asks for the next lobby number every MS milliseconds ..."},
    {.name = "--count",
     .kind = ARG_NUMBER,
     .into = &asker.set.count,
     .min = 1,
     .max = INT32_MAX,
     .value = "N",
     .help = "... N times in all (without it, until stopped)"},
    {.name = "--stay",
     .kind = ARG_FLAG,
     .into = &asker.set.stay,
     .help = "keeps the connection and prints what happens to the matches"},
    {.name = "--json",
     .kind = ARG_FLAG,
     .into = &asker.set.json,
     .help = "one JSON object per line"},
    CHAT_TLS_ARGS(&asker.set.tls),
    {0},
};

static bool parse(int argc, char **argv, struct asker *a)
{
    struct settings *s = &a->set;
    char why[NODES_WHY_MAX];
    if (!args_parse(argc, argv, allocate_options) || !chat_tls_check(argv[0], &s->tls))
        return false;
    if (s->lobby == INT64_MIN)
        return args_refuse(argv[0], "--lobby is missing");
    a->nodes.wait_max_ms = WAIT_MAX_MS;
    if (nodes_read_addresses(&a->nodes, s->manager, why) != 0)
        return args_refuse(argv[0], "--manager takes %s", why);
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
    struct asker *a = &asker;
    a->set.token = args_token();
    if (!parse(argc, argv, a))
        return EXIT_USAGE;
    a->stop = stop_open();
    int code = run(a);
    close(a->stop);
    return code;
}
