/* `muster game-server`: a game server without a game. It does what a real one does with the SDK and
 * says each thing in one line; its options make it misbehave in the ways Muster must survive. */
#include "base/buf.h"
#include "base/clock.h"
#include "base/machine.h"
#include "cli/args.h"
#include "cli/chat_tls.h"
#include "cli/cli.h"
#include "cli/game_door.h"
#include "cli/stop.h"
#include "muster.h"
#include "net/nodes.h"

#include <arpa/inet.h>
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { LOAD_EVERY_MS = 5000, DUE_NEVER = -1, OWN_LOBBY_FIRST = 1 << 30 };

struct settings {
    const char *region;
    const char *server;
    const char *token;
    const char *ip;
    struct chat_tls_wish tls;
    int64_t port;
    int64_t max;
    int64_t match_seconds;
    int64_t ready_delay_ms;
    int64_t players;
    int64_t cpu;
    int64_t memory;
    int64_t slow_ms;
    int64_t lie_load;
    int64_t drop_after;
    int64_t drain_after_s;
    int64_t moody_percent;
    bool door;
    bool refuse;
    bool silent;
    bool no_list;
    bool no_heartbeat;
};

/* What is to happen with a match the SDK holds; DUE_NEVER where nothing is. */
struct play {
    int32_t lobby; /* 0 = free */
    char *token;
    int64_t began_ms;
    int64_t answer_due_ms;
    int64_t ready_due_ms;
    int64_t end_due_ms;
    bool taken_back; /* by Muster; only the late answer of --slow is still to be sent */
};

struct game {
    struct settings set;
    struct nodes nodes; /* of set.server; which one is asked the SDK decides */
    struct muster_server *muster;
    struct game_door door;
    struct play plays[MUSTER_MAX_MATCHES];
    int8_t region;
    int32_t id; /* the last one Muster gave us; 0 before the first */
    int64_t allocations;
    struct machine machine;
    int64_t load_due_ms;
    int64_t drain_due_ms;
    int64_t now_ms;
};

/* One line per event, at once: people and tests read along. Muster's texts are printed as they are
 * except for control characters. */
static void say(const struct game *g, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

static void say(const struct game *g, const char *format, ...)
{
    char text[1024];
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    for (char *at = text; *at; at++) {
        if ((unsigned char)*at < 0x20 || *at == 0x7F)
            *at = '?';
    }
    char number[16] = "";
    if (g->id)
        snprintf(number, sizeof(number), "%" PRId32 " ", g->id);
    printf("game-server %s%s: %s\n", number, args_region_name(g->region), text);
    fflush(stdout);
}

static struct play *play_find(struct game *g, int32_t lobby)
{
    for (int64_t i = 0; i < g->set.max; i++) {
        if (g->plays[i].lobby == lobby)
            return &g->plays[i];
    }
    return NULL;
}

static void play_clear(struct play *p)
{
    free(p->token);
    *p = (struct play){0};
}

static struct play *play_add(struct game *g, const struct muster_match *match)
{
    struct play *p = play_find(g, 0);
    if (!p)
        return NULL;
    *p = (struct play){
        .lobby = match->lobby,
        .token = xstrdup(match->token),
        .began_ms = g->now_ms,
        .answer_due_ms = DUE_NEVER,
        .ready_due_ms = DUE_NEVER,
        .end_due_ms = DUE_NEVER,
    };
    return p;
}

static void play_end_later(struct game *g, struct play *p)
{
    double about_ms = (double)g->set.match_seconds * 1000 * (0.4 + 1.2 * drand48());
    if (g->set.match_seconds > 0)
        p->end_due_ms = g->now_ms + (int64_t)about_ms;
}

/* Nobody tells a server that a lobby has started; its players come. */
static bool waits_for_players(const struct game *g, const struct play *p)
{
    return g->set.door && p->lobby >= OWN_LOBBY_FIRST;
}

/* The match was accepted: READY and the end follow by the clock. */
static void play_begin(struct game *g, struct play *p)
{
    if (g->set.ready_delay_ms >= 0)
        p->ready_due_ms = g->now_ms + g->set.ready_delay_ms;
    if (!waits_for_players(g, p))
        play_end_later(g, p);
}

static void on_registered(void *user, int32_t server_id)
{
    struct game *g = user;
    g->id = server_id;
    say(g, "registered, %s:%" PRId64 ", room for %" PRId64 " matches, holding %" PRId32, g->set.ip,
        g->set.port, g->set.max, muster_server_match_count(g->muster));
}

static void on_disconnected(void *user, enum muster_error why, const char *text, int64_t retry_ms)
{
    struct game *g = user;
    const char *address = muster_server_address(g->muster);
    char next[64] = "trying the next address";
    if (retry_ms > 0 || g->nodes.n == 1)
        snprintf(next, sizeof(next), "next try in %.1f s", (double)retry_ms / 1000);
    if (why == MUSTER_E_CONNECT)
        say(g, "cannot reach Muster at %s: %s; is 'muster serve' running? %c%s", address, text,
            toupper((unsigned char)next[0]), next + 1);
    else if (why == MUSTER_E_STANDBY)
        say(g, "%s: %s", address, text);
    else if (why == MUSTER_E_REFUSED)
        say(g, "Muster refused: %s; %s", text, next);
    else if (why == MUSTER_E_TLS)
        say(g, "no TLS with Muster at %s: %s; %s", address, text, next);
    else
        say(g, "connection lost: %s; %s", text, next);
}

static enum muster_answer drop(struct game *g, int32_t lobby)
{
    say(g, "match %" PRId32 " asked for: dropping the connection", lobby);
    muster_server_disconnect(g->muster);
    return MUSTER_REFUSE; /* which nobody will hear */
}

/* One of the ways in which allocations go wrong. */
static enum muster_answer sulk(struct game *g, const struct muster_match *match)
{
    long mood = lrand48() % 4;
    if (mood == 0)
        return drop(g, match->lobby);
    struct play *p = mood == 1 ? NULL : play_add(g, match);
    if (!p) {
        say(g, "match %" PRId32 " refused", match->lobby);
        return MUSTER_REFUSE;
    }
    if (mood == 2) {
        say(g, "match %" PRId32 " asked for: not answering", match->lobby);
        return MUSTER_LATER;
    }
    say(g, "match %" PRId32 " allocated, and never ready", match->lobby);
    return MUSTER_ACCEPT;
}

static enum muster_answer on_allocate(void *user, const struct muster_match *match)
{
    struct game *g = user;
    g->allocations++;
    if (g->set.drop_after >= 0 && g->allocations > g->set.drop_after)
        return drop(g, match->lobby);
    if (lrand48() % 100 < g->set.moody_percent)
        return sulk(g, match);
    struct play *p = g->set.refuse ? NULL : play_add(g, match);
    if (!p) {
        say(g, "match %" PRId32 " refused", match->lobby);
        return MUSTER_REFUSE;
    }
    if (g->set.silent) {
        say(g, "match %" PRId32 " asked for: not answering", match->lobby);
        return MUSTER_LATER;
    }
    if (g->set.slow_ms > 0) {
        say(g, "match %" PRId32 " asked for: answering in %" PRId64 " ms", match->lobby,
            g->set.slow_ms);
        p->answer_due_ms = g->now_ms + g->set.slow_ms;
        return MUSTER_LATER;
    }
    say(g, "match %" PRId32 " allocated", match->lobby);
    play_begin(g, p);
    return MUSTER_ACCEPT;
}

static void on_cancelled(void *user, int32_t lobby, enum muster_cancel why)
{
    struct game *g = user;
    struct play *p = play_find(g, lobby);
    if (p && p->answer_due_ms != DUE_NEVER && why == MUSTER_CANCEL_TOLD)
        p->taken_back = true;
    else if (p)
        play_clear(p);
    say(g, "match %" PRId32 " %s", lobby,
        why == MUSTER_CANCEL_TOLD ? "cancelled by Muster" : "given up: nobody came");
}

static void let_players_in(struct game *g, const struct play *p)
{
    for (int64_t i = 0; i < g->set.players; i++) {
        /* An account of its own in every match: a player has one seat in a fleet. */
        int32_t account = (int32_t)(((int64_t)p->lobby * 100 + i) & INT32_MAX);
        int error = muster_match_validate(g->muster, p->lobby, account, p->token, 0);
        if (error)
            say(g, "match %" PRId32 ": player %" PRId32 ": %s", p->lobby, account,
                muster_error_text(error));
    }
}

static void on_ready_answered(void *user, int32_t lobby, bool yes, const char *error)
{
    struct game *g = user;
    struct play *p = play_find(g, lobby);
    if (!yes)
        say(g, "match %" PRId32 " not ready: %s", lobby, error);
    else
        say(g, "match %" PRId32 " ready", lobby);
    if (yes && p)
        let_players_in(g, p);
}

/* Visitors of the door have numbers that are not 0. */
static void on_validated(void *user, int32_t lobby, int32_t account, uint64_t player, bool yes,
                         const char *error)
{
    struct game *g = user;
    struct play *p = play_find(g, lobby);
    if (yes)
        say(g, "match %" PRId32 ": player %" PRId32 " entered", lobby, account);
    else
        say(g, "match %" PRId32 ": player %" PRId32 " refused: %s", lobby, account, error);
    if (yes && p && p->end_due_ms == DUE_NEVER && waits_for_players(g, p))
        play_end_later(g, p);
    if (player)
        game_door_answer(&g->door, player, yes, error);
}

static void on_knock(void *user, uint64_t visitor, int32_t lobby, int32_t account,
                     const char *token)
{
    struct game *g = user;
    int error = muster_match_validate(g->muster, lobby, account, token, visitor);
    if (error)
        game_door_answer(&g->door, visitor, false, muster_error_text(error));
}

static void on_end_answered(void *user, int32_t lobby, bool yes, const char *error)
{
    if (!yes)
        say(user, "match %" PRId32 " ended, but Muster says: %s", lobby, error);
}

static void on_kick(void *user, int32_t lobby, int32_t account, const char *reason)
{
    say(user, "match %" PRId32 ": player %" PRId32 " kicked: %s", lobby, account, reason);
}

static void on_drain(void *user, bool on)
{
    say(user, on ? "draining: no new matches" : "no longer draining");
}

static const struct muster_callbacks callbacks = {
    .registered = on_registered,
    .disconnected = on_disconnected,
    .allocate = on_allocate,
    .cancelled = on_cancelled,
    .ready_answered = on_ready_answered,
    .validated = on_validated,
    .end_answered = on_end_answered,
    .kick = on_kick,
    .drain = on_drain,
};

static bool is_due(const struct game *g, int64_t due_ms)
{
    return due_ms != DUE_NEVER && g->now_ms >= due_ms;
}

static void play_end(struct game *g, struct play *p)
{
    int32_t lasted_s = (int32_t)((g->now_ms - p->began_ms) / 1000);
    muster_match_end(g->muster, p->lobby, (int8_t)(1 + lrand48() % 2), lasted_s);
    say(g, "match %" PRId32 " ended after %" PRId32 " s", p->lobby, lasted_s);
    play_clear(p);
}

static void play_step(struct game *g, struct play *p)
{
    if (is_due(g, p->answer_due_ms) && p->taken_back) {
        muster_match_answer(g->muster, p->lobby, true);
        say(g, "match %" PRId32 " accepted too late", p->lobby);
        play_clear(p);
        return;
    }
    if (is_due(g, p->answer_due_ms)) {
        p->answer_due_ms = DUE_NEVER;
        muster_match_answer(g->muster, p->lobby, true);
        say(g, "match %" PRId32 " allocated", p->lobby);
        play_begin(g, p);
    }
    if (is_due(g, p->ready_due_ms)) {
        p->ready_due_ms = DUE_NEVER;
        muster_match_ready(g->muster, p->lobby);
    }
    if (is_due(g, p->end_due_ms))
        play_end(g, p);
}

static int64_t earlier(int64_t a, int64_t b)
{
    if (b == DUE_NEVER)
        return a;
    return a == DUE_NEVER || b < a ? b : a;
}

static int64_t next_due(const struct game *g)
{
    int64_t due = earlier(g->load_due_ms, g->drain_due_ms);
    for (int64_t i = 0; i < g->set.max; i++) {
        const struct play *p = &g->plays[i];
        if (p->lobby)
            due = earlier(due, earlier(p->answer_due_ms, earlier(p->ready_due_ms, p->end_due_ms)));
    }
    return due;
}

static void load_step(struct game *g)
{
    if (g->now_ms < g->load_due_ms)
        return;
    g->load_due_ms = g->now_ms + LOAD_EVERY_MS;
    float cpu = machine_cpu_percent(&g->machine);
    muster_server_set_load(g->muster, g->set.cpu >= 0 ? (float)g->set.cpu : cpu,
                           g->set.memory >= 0 ? (float)g->set.memory : machine_memory_percent());
}

static void drain_step(struct game *g)
{
    if (!is_due(g, g->drain_due_ms))
        return;
    g->drain_due_ms = DUE_NEVER;
    muster_server_drain(g->muster, true);
    say(g, "asking Muster for no new matches, holding %" PRId32,
        muster_server_match_count(g->muster));
}

static void run(struct game *g, int stop)
{
    g->drain_due_ms =
        g->set.drain_after_s < 0 ? DUE_NEVER : clock_monotonic_ms() + g->set.drain_after_s * 1000;
    for (;;) {
        g->now_ms = clock_monotonic_ms();
        load_step(g);
        drain_step(g);
        for (int64_t i = 0; i < g->set.max; i++) {
            if (g->plays[i].lobby)
                play_step(g, &g->plays[i]);
        }
        muster_server_poll(g->muster);
        if (g->set.door)
            game_door_turn(&g->door);

        struct pollfd fds[] = {
            {.fd = stop, .events = POLLIN},
            {.fd = muster_server_fd(g->muster), .events = muster_server_events(g->muster)},
            {.fd = g->door.epoll, .events = POLLIN},
        };
        int64_t wait_ms = next_due(g) - g->now_ms;
        int timeout_ms = muster_server_timeout_ms(g->muster);
        if (wait_ms < timeout_ms)
            timeout_ms = wait_ms > 0 ? (int)wait_ms : 0;
        poll(fds, sizeof(fds) / sizeof(fds[0]), timeout_ms);
        if (fds[0].revents)
            return;
    }
}

/* Holds the port of the players, who come only with --door, so that two servers on one machine
 * differ; 0 becomes a free one. That somebody else has it already is no reason not to run. */
static int hold_port(const char *ip, int64_t *port)
{
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)); /* one that died had visitors */
    struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = htons((uint16_t)*port)};
    if (inet_pton(AF_INET, ip, &a.sin_addr) != 1)
        a.sin_addr.s_addr = htonl(INADDR_ANY);
    socklen_t len = sizeof(a);
    if (bind(fd, (struct sockaddr *)&a, len) < 0) {
        a.sin_addr.s_addr = htonl(INADDR_ANY); /* an address of some other machine */
        (void)bind(fd, (struct sockaddr *)&a, len);
    }
    if (*port == 0 && getsockname(fd, (struct sockaddr *)&a, &len) == 0)
        *port = ntohs(a.sin_port);
    return fd;
}

/* Whoever lets players in must have that port himself. */
static bool open_door(struct game *g, int held)
{
    struct sockaddr_in a = {0};
    socklen_t len = sizeof(a);
    errno = EADDRINUSE;
    return getsockname(held, (struct sockaddr *)&a, &len) == 0 &&
           ntohs(a.sin_port) == g->set.port && game_door_open(&g->door, held);
}

/* One verb runs per process. */
static struct game game = {
    .set = {.server = "127.0.0.1:11032",
            .ip = "127.0.0.1",
            .max = 4,
            .cpu = -1,
            .memory = -1,
            .lie_load = -1,
            .drop_after = -1,
            .drain_after_s = -1},
    .door = {.epoll = -1, .knock = on_knock, .user = &game},
};

const struct arg game_server_options[] = {
    {.name = "--region",
     .kind = ARG_TEXT,
     .into = &game.set.region,
     .value = "R",
     .help = "name (USE USW EU SG MY PH TH ID VN RU KR AU LAT DX CN BR TR) or number"},
    {.name = "--max",
     .kind = ARG_NUMBER,
     .into = &game.set.max,
     .min = 1,
     .max = MUSTER_MAX_MATCHES,
     .value = "N",
     .help = "matches at a time (4)"},
    {.name = "--server",
     .kind = ARG_TEXT,
     .into = &game.set.server,
     .value = "HOST:PORT",
     .help = "Muster's server port (127.0.0.1:11032); several nodes with commas between them"},
    {.name = "--token",
     .kind = ARG_TEXT,
     .into = &game.set.token,
     .value = "T",
     .help = "enrolment token (none is needed where Muster runs with --dev); better in the "
             "environment variable MUSTER_ENROL_TOKEN: others see options in ps"},
    {.name = "--ip",
     .kind = ARG_TEXT,
     .into = &game.set.ip,
     .value = "A",
     .help = "address players are sent to (127.0.0.1)"},
    {.name = "--port",
     .kind = ARG_NUMBER,
     .into = &game.set.port,
     .min = 1024,
     .max = 65535,
     .value = "N",
     .help = "port players are sent to (a free one)"},
    {.name = "--match-seconds",
     .kind = ARG_NUMBER,
     .into = &game.set.match_seconds,
     .min = 0,
     .max = 86400,
     .value = "S",
     .help = "a match ends after 0.4 to 1.6 times this; 0 = never (0)"},
    {.name = "--ready-delay",
     .kind = ARG_NUMBER,
     .into = &game.set.ready_delay_ms,
     .min = -1,
     .max = 3600000,
     .value = "MS",
     .help = "between accepting a match and READY (0); -1 = READY is never said"},
    {.name = "--players",
     .kind = ARG_NUMBER,
     .into = &game.set.players,
     .min = 0,
     .max = 100,
     .value = "N",
     .help = "so many players enter each match when it is ready (0)"},
    {.name = "--door",
     .kind = ARG_FLAG,
     .into = &game.set.door,
     .help = "lets players of Muster's own lobbies in: whoever connects to its port and shows a "
             "line 'LOBBY ACCOUNT TOKEN' hears 'welcome' or 'refused: WHY'; such a match's time "
             "begins with the first who enters"},
    {.name = "--drain-after",
     .kind = ARG_NUMBER,
     .into = &game.set.drain_after_s,
     .min = 0,
     .max = 86400,
     .value = "S",
     .help = "takes no new matches after S seconds"},
    {.name = "--cpu",
     .kind = ARG_NUMBER,
     .into = &game.set.cpu,
     .min = 0,
     .max = 100,
     .value = "P",
     .help = "processor to report, in percent (the machine's own)"},
    {.name = "--memory",
     .kind = ARG_NUMBER,
     .into = &game.set.memory,
     .min = 0,
     .max = 100,
     .value = "P",
     .help = "memory to report, in percent (the machine's own)"},
    CHAT_TLS_ARGS(&game.set.tls),
    {.name = "Misbehaviour", .kind = ARG_TITLE},
    {.name = "--slow",
     .kind = ARG_NUMBER,
     .into = &game.set.slow_ms,
     .min = 0,
     .max = 3600000,
     .value = "MS",
     .help = "answers an allocation after MS, also one that Muster took back meanwhile"},
    {.name = "--refuse",
     .kind = ARG_FLAG,
     .into = &game.set.refuse,
     .help = "refuses every allocation"},
    {.name = "--silent",
     .kind = ARG_FLAG,
     .into = &game.set.silent,
     .help = "never answers an allocation"},
    {.name = "--moody",
     .kind = ARG_NUMBER,
     .into = &game.set.moody_percent,
     .min = 0,
     .max = 100,
     .value = "P",
     .help = "at P in a hundred allocations it refuses, or is silent, or never gets ready, or "
             "drops its connection"},
    {.name = "--lie-load",
     .kind = ARG_NUMBER,
     .into = &game.set.lie_load,
     .min = 0,
     .max = 1000000,
     .value = "N",
     .help = "reports N matches whatever it holds"},
    {.name = "--drop-after",
     .kind = ARG_NUMBER,
     .into = &game.set.drop_after,
     .min = 0,
     .max = 1000000,
     .value = "N",
     .help = "answers N allocations, then drops its connection at each further one"},
    {.name = "--no-list",
     .kind = ARG_FLAG,
     .into = &game.set.no_list,
     .help = "does not know the match list"},
    {.name = "--no-heartbeat",
     .kind = ARG_FLAG,
     .into = &game.set.no_heartbeat,
     .help = "sends none"},
    {0},
};

static bool parse(int argc, char **argv, const struct settings *s)
{
    char why[NODES_WHY_MAX];
    if (!args_parse(argc, argv, game_server_options) || !chat_tls_check(argv[0], &s->tls))
        return false;
    if (!s->region)
        return args_refuse(argv[0], "--region is missing");
    if (nodes_read_addresses(&game.nodes, s->server, why) != 0)
        return args_refuse(argv[0], "--server takes %s", why);
    int8_t region = args_region(s->region);
    if (region < 0 || strcmp(args_region_name(region), "AUTO") == 0)
        return args_refuse(argv[0], "there is no region '%s'; there are %s", s->region,
                           args_region_names());
    return true;
}

static int start(struct game *g)
{
    struct muster_options options = {
        .server = g->set.server,
        .token = g->set.token,
        .ip = g->set.ip,
        .port = (int32_t)g->set.port,
        .region = g->region,
        .max_matches = (int32_t)g->set.max,
        .heartbeat_ms = g->set.no_heartbeat ? -1 : 0,
        .unconfirmed_ms = g->set.ready_delay_ms < 0 && g->set.players == 0 ? -1 : 0,
        .no_match_list = g->set.no_list,
        .late_answers = g->set.slow_ms > 0,
        .tls_ca = g->set.tls.ca,
        .tls_certificate = g->set.tls.certificate,
        .tls_key = g->set.tls.key,
        .tls_server_name = g->set.tls.server_name,
    };
    int error = muster_server_new(&options, &callbacks, g, &g->muster);
    if (error == MUSTER_E_OPTIONS) {
        args_refuse("game-server", "--server, --token or --ip will not do");
        return EXIT_USAGE;
    }
    if (error) {
        fprintf(stderr, "muster game-server: %s: %s\n", g->set.server, muster_error_text(error));
        return EXIT_UNREACHABLE;
    }
    muster_server_set_match_count(g->muster, (int32_t)g->set.lie_load);
    return EXIT_DONE;
}

int game_server_run(int argc, char **argv)
{
    struct game *g = &game;
    g->set.token = args_token();
    if (!parse(argc, argv, &g->set))
        return EXIT_USAGE;
    g->region = args_region(g->set.region);
    srand48((long)getpid() ^ (long)clock_wall_ms());
    int held = hold_port(g->set.ip, &g->set.port);
    if (g->set.door && !open_door(g, held)) {
        fprintf(stderr, "muster game-server: port %" PRId64 ": %s\n", g->set.port, strerror(errno));
        return EXIT_REFUSED;
    }
    int code = start(g);
    if (code == EXIT_DONE) {
        int stop = stop_open();
        run(g, stop);
        say(g, "goodbye, matches left: %" PRId32, muster_server_match_count(g->muster));
        close(stop);
    }
    muster_server_free(g->muster);
    game_door_close(&g->door);
    for (int64_t i = 0; i < g->set.max; i++)
        play_clear(&g->plays[i]);
    if (held >= 0)
        close(held);
    return code;
}
