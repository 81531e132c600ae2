#include "cli/demo.h"

#include "base/clock.h"
#include "base/json.h"
#include "cli/cli.h"
#include "cli/client.h"
#include "cli/console_link.h"
#include "cli/demo_rooms.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum {
    START_MS = 20000,
    CLIENT_PORT = 11031,
    SERVER_PORT = 11032,
    MANAGER_PORT = 11033,
    HTTP_PORT = 9508,
    SETTLE_S = 75, /* the matchmaker's time to wait for the last lobbies; longer than loading_ms */
    SETTLE_MS = SETTLE_S * 1000,
};

/* Where rooms are: as the agent does by default, or (--any-port) in one of many ranges below the
 * ports that outgoing connections get. */
enum {
    ROOM_PORTS_FIRST = 38000,
    ROOM_PORTS = 2000,
    ANY_FIRST = 12000,
    ANY_PORTS = 64,
    ANY_RANGES = 140,
};

#define MANAGER "127.0.0.1:11033"

/* ── what they say ─────────────────────────────────────────────────────────────────────────── */

/* "ready http=A:P server=A:P manager=A:P client=A:P" */
static void look_for_addresses(struct demo *d, const char *line)
{
    const struct {
        const char *before;
        char *into;
    } places[] = {{" http=", d->http},
                  {" server=", d->server},
                  {" manager=", d->manager},
                  {" client=", d->client}};
    if (strncmp(line, "ready ", 6) != 0)
        return;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        const char *at = strstr(line, places[i].before);
        if (at)
            snprintf(places[i].into, DEMO_ADDRESS_MAX, "%.*s",
                     (int)strcspn(at + strlen(places[i].before), " "),
                     at + strlen(places[i].before));
    }
    d->ready = true;
}

/* "console http://… (whoever …)". False: it is said among the hints. */
static bool look_for_console(struct demo *d, const char *line)
{
    static const char before[] = "console ";
    if (strncmp(line, before, sizeof(before) - 1) != 0)
        return true;
    line += sizeof(before) - 1;
    snprintf(d->console, sizeof(d->console), "%.*s", (int)strcspn(line, " "), line);
    return false;
}

/* "stats {…}", and the summary, whose other lines are indented. False for what is not to be read.
 */
static bool look_for_numbers(struct demo *d, const char *line)
{
    char why[JSON_WHY_MAX];
    if (strncmp(line, "stats ", 6) == 0) {
        json_free(d->stats);
        d->stats = json_parse(str_of(line + 6), why);
        return false;
    }
    if (strstr(line, " lobbies created: ") || (d->summary.len > 0 && line[0] == ' ')) {
        buf_append(&d->summary, line, strlen(line));
        buf_append(&d->summary, "\n", 1);
    }
    return true;
}

/* "game-server 5 EU: registered, …" */
static void look_for_number(struct demo *d, int i, const char *line)
{
    int number = 0;
    /* NOLINTNEXTLINE(cert-err34-c): a line of our own making */
    if (strstr(line, ": registered") && sscanf(line, "game-server %d", &number) == 1)
        d->registered[i] = number;
}

bool demo_line(struct demo *d, int i, const char *line)
{
    if (i == DEMO_MATCHMAKER)
        return look_for_numbers(d, line);
    if (i == DEMO_SERVE) {
        look_for_addresses(d, line);
        return look_for_console(d, line);
    }
    if (i <= DEMO_GAMES)
        look_for_number(d, i, line);
    return true;
}

const char *demo_prefix(int i)
{
    switch (i) {
    case DEMO_SERVE:
        return "serve: ";
    case DEMO_CHAT:
        return "chat: ";
    case DEMO_AGENT:
        return "agent: ";
    case DEMO_BOTS:
        return "players: ";
    case DEMO_MATCHMAKER:
        return "matchmaker: ";
    default:
        return "";
    }
}

/* ── starting ──────────────────────────────────────────────────────────────────────────────── */

static bool serve_runs(const struct demo *d)
{
    return children_runs(&d->children, DEMO_SERVE);
}

static bool port_is_free(int64_t port)
{
    struct sockaddr_in a = {.sin_family = AF_INET,
                            .sin_port = htons((uint16_t)port),
                            .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int on = 1;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    bool is_free = bind(fd, (struct sockaddr *)&a, sizeof(a)) == 0;
    close(fd);
    return is_free;
}

/* The one it had before; else the ordinary one where that is free, so that commands need no
 * address; otherwise any. */
static const char *door_port(const struct demo *d, const char *before, int port, char dst[8])
{
    const char *colon = strrchr(before, ':');
    if (colon)
        snprintf(dst, 8, "%s", colon + 1);
    else
        snprintf(dst, 8, "%d", !d->any_port && port_is_free(port) ? port : 0);
    return dst;
}

static void note(struct demo *d, const char *sentence)
{
    d->children.on_note(d->children.user, sentence);
}

static enum demo_start start_serve(struct demo *d, bool *ret_arena)
{
    char http[32], http_port[8], server_port[8], manager_port[8], client_port[8];
    char config[DEMO_PATH_MAX], why[DEMO_WHY_MAX];
    if (!demo_rooms_configure(d->data, d->faults, config, ret_arena, why)) {
        note(d, why);
        note(d, "Muster did not start");
        return DEMO_FAILED;
    }
    snprintf(http, sizeof(http), "127.0.0.1:%s", door_port(d, d->http, HTTP_PORT, http_port));
    door_port(d, d->server, SERVER_PORT, server_port);
    door_port(d, d->manager, MANAGER_PORT, manager_port);
    door_port(d, d->client, CLIENT_PORT, client_port);
    /* The course of things is told by those it happens to; Muster adds what is out of order. */
    const char *args[] = {"serve",
                          "--dev",
                          "--data",
                          d->data,
                          "--server-port",
                          server_port,
                          "--client-port",
                          client_port,
                          "--manager-port",
                          manager_port,
                          "--http",
                          http,
                          "--log-level",
                          "warn",
                          "--config",
                          config,
                          NULL};
    d->ready = false;
    if (!children_start(&d->children, DEMO_SERVE, "serve", args))
        return DEMO_FAILED;
    int64_t deadline = clock_monotonic_ms() + START_MS;
    while (serve_runs(d) && !d->ready && clock_monotonic_ms() < deadline) {
        if (children_turn(&d->children, deadline))
            return DEMO_STOPPED;
    }
    if (d->ready && serve_runs(d))
        return DEMO_STARTED;
    note(d, "Muster did not start; what it said stands above");
    return DEMO_FAILED;
}

/* With a matchmaker they let players in, have room for its matches too, and play for less long. */
static bool start_game(struct demo *d, int i)
{
    static const char *const regions[] = {"EU", "USE", "SG"};
    const char *region = regions[i / 2];
    char name[24], port[24];
    snprintf(name, sizeof(name), "game-server %s", region);
    snprintf(port, sizeof(port), "%" PRId64, d->game_ports[i]);
    const char *args[CHILD_ARGS_MAX] = {"game-server",
                                        "--region",
                                        region,
                                        "--server",
                                        d->server,
                                        "--port",
                                        port,
                                        "--ready-delay",
                                        "100",
                                        "--max",
                                        d->lobbies ? "10" : "4",
                                        "--match-seconds",
                                        d->lobbies ? "6" : "12"};
    int n = 0;
    while (args[n])
        n++;
    if (d->lobbies)
        args[n++] = "--door";
    if (d->faults) {
        args[n++] = "--moody";
        args[n++] = "15";
    }
    return children_start(&d->children, 1 + i, name, args);
}

/* Two servers in each of three regions, all registered before anybody asks for a match. Muster
 * knows a server by its address, so each start uses the same ports: the servers of the last one
 * come back instead of staying Offline beside six new ones. */
static enum demo_start start_games(struct demo *d)
{
    int64_t port = d->game_port;
    for (int i = 0; i < DEMO_GAMES; i++) {
        while (port < UINT16_MAX && !port_is_free(port))
            port++;
        d->game_ports[i] = port++;
        if (!start_game(d, i))
            return DEMO_FAILED;
    }
    int64_t deadline = clock_monotonic_ms() + START_MS;
    for (int i = 1; i <= DEMO_GAMES && serve_runs(d) && clock_monotonic_ms() < deadline;) {
        if (d->registered[i] || !children_runs(&d->children, i))
            i++;
        else if (children_turn(&d->children, deadline))
            return DEMO_STOPPED;
    }
    return DEMO_STARTED;
}

/* A lobby number means one match for as long as Muster remembers it, so a second start must not use
 * the first one's numbers: they come from the clock, ten for each second of which one is used. They
 * begin above what a person would type. */
static bool start_chat(struct demo *d)
{
    char lobby[16];
    int64_t first = 1000000 + clock_wall_ms() / 100 % 10000000;
    snprintf(lobby, sizeof(lobby), "%" PRId64, first);
    const char *args[] = {"allocate",      "--lobby",  lobby,     "--region", "EU,USE,SG",
                          "--manager",     d->manager, "--every", "1000",     "--stay",
                          "--chat-server", "demo",     NULL};
    return children_start(&d->children, DEMO_CHAT, "chat", args);
}

static bool start_bots(struct demo *d)
{
    char url[DEMO_ADDRESS_MAX + 16];
    snprintf(url, sizeof(url), "http://%s", d->http);
    const char *args[] = {"bots", "arena", "--url", url, "--data", d->data, NULL};
    return children_start(&d->children, DEMO_BOTS, "players", args);
}

static bool start_matchmaker(struct demo *d)
{
    char url[DEMO_ADDRESS_MAX + 16], settle[16];
    snprintf(url, sizeof(url), "http://%s", d->http);
    snprintf(settle, sizeof(settle), "%ds", SETTLE_S);
    const char *args[] = {"matchmaker", "--url",    url,       "--data",
                          d->data,      "--client", d->client, "--settle",
                          settle,       "--enter",  "--stats", d->faults ? "--faults" : NULL,
                          NULL};
    /* It says at its end whether all was well, which takes as long as the last lobby. */
    d->children.all[DEMO_MATCHMAKER].patience_ms = SETTLE_MS + 15000;
    return children_start(&d->children, DEMO_MATCHMAKER, "matchmaker", args);
}

/* Without them the rest is still worth looking at, so what is wrong is only said. */
static void start_rooms(struct demo *d)
{
    char ports[32];
    char why[DEMO_WHY_MAX], token[DEMO_TOKEN_MAX], url[DEMO_ADDRESS_MAX + 16];
    char folder[DEMO_PATH_MAX];
    if (!d->rooms) {
        note(d, "there are no rooms: the example game server 'arena' is not beside this program");
        return;
    }
    d->rooms = demo_rooms_token(d->http, d->data, token, why);
    if (!d->rooms) {
        note(d, why);
        return;
    }
    snprintf(url, sizeof(url), "http://%s", d->http);
    snprintf(folder, sizeof(folder), "%s/agent", d->data);
    /* Several may run beside each other, and one agent does not know what another has just given.
     */
    int first = d->any_port ? ANY_FIRST + getpid() % ANY_RANGES * ANY_PORTS : ROOM_PORTS_FIRST;
    snprintf(ports, sizeof(ports), "%d-%d", first,
             first + (d->any_port ? ANY_PORTS : ROOM_PORTS) - 1);
    /* Ended with us, also when we crash: nobody would look for them. And as our own user: nobody
     * else may enter the folders that people try things out in. */
    const char *agent[] = {
        "agent",       "--control", url,        "--region",    "EU",     "--name", "dev",
        "--data",      folder,      "--listen", "127.0.0.1:0", "--uids", "none",   "--end-servers",
        "--log-level", "warn",      "--ports",  ports,         NULL};
    setenv("MUSTER_TOKEN", token, 1); /* others would see it in ps */
    d->rooms = children_start(&d->children, DEMO_AGENT, "agent", agent);
    unsetenv("MUSTER_TOKEN");
    explicit_bzero(token, sizeof(token));
    if (d->rooms)
        d->rooms = start_bots(d);
}

enum demo_start demo_start(struct demo *d, void (*ready)(void *user), void *user)
{
    /* Differs from start to start: each lobby number is good for one match. */
    d->lobby = 1000 + clock_wall_ms() / 1000 % 900000;
    enum demo_start s = start_serve(d, &d->rooms);
    if (s == DEMO_STARTED)
        s = start_games(d);
    if (s == DEMO_STARTED && serve_runs(d)) {
        ready(user);
        s = start_chat(d) ? DEMO_STARTED : DEMO_FAILED;
        start_rooms(d);
        if (d->lobbies && !start_matchmaker(d))
            s = DEMO_FAILED;
    }
    return s;
}

enum demo_start demo_restart(struct demo *d, int i)
{
    bool arena; /* whether there are rooms was decided at the first start */
    if (i == DEMO_SERVE)
        return start_serve(d, &arena);
    return start_game(d, i - 1) ? DEMO_STARTED : DEMO_FAILED;
}

void demo_revive(struct demo *d)
{
    if (!children_runs(&d->children, DEMO_CHAT))
        (void)start_chat(d);
    if (d->rooms && !children_runs(&d->children, DEMO_BOTS))
        (void)start_bots(d);
}

bool demo_end(struct demo *d)
{
    children_end(&d->children, DEMO_MATCHMAKER, DEMO_MATCHMAKER);
    children_end(&d->children, DEMO_BOTS, DEMO_BOTS);
    children_end(&d->children, DEMO_CHAT, DEMO_CHAT);
    children_end(&d->children, 1, DEMO_AGENT); /* with the game servers, or those would babble */
    children_end(&d->children, DEMO_SERVE, DEMO_SERVE);
    return d->children.all[DEMO_MATCHMAKER].code == 0;
}

void demo_done(struct demo *d)
{
    json_free(d->stats);
    buf_done(&d->summary);
    children_done(&d->children);
}

/* ── commands to try ───────────────────────────────────────────────────────────────────────── */

/* What verbs over HTTP need to be told: nothing where everything is as usual. */
static const char *http_options(const struct demo *d, char dst[DEMO_COMMAND_MAX])
{
    char url[DEMO_ADDRESS_MAX + 16];
    bool usual_folder = strcmp(d->data, "data") == 0;
    snprintf(url, sizeof(url), "http://%s", d->http);
    bool usual_url = strcmp(url, CLIENT_URL) == 0;
    snprintf(dst, DEMO_COMMAND_MAX, "%s%s%s%.300s", usual_url ? "" : " --url ",
             usual_url ? "" : url, usual_folder ? "" : " --data ", usual_folder ? "" : d->data);
    return dst;
}

const char *demo_console(const struct demo *d, char dst[DEMO_COMMAND_MAX])
{
    char options[DEMO_COMMAND_MAX];
    snprintf(dst, DEMO_COMMAND_MAX, "%.100s console%.390s", cli_program, http_options(d, options));
    return dst;
}

const char *demo_allocate(const struct demo *d, char dst[DEMO_COMMAND_MAX])
{
    bool usual = strcmp(d->manager, MANAGER) == 0;
    snprintf(dst, DEMO_COMMAND_MAX, "%.200s allocate --lobby %" PRId64 " --region EU%s%s",
             cli_program, d->lobby, usual ? "" : " --manager ", usual ? "" : d->manager);
    return dst;
}

const char *demo_why(const struct demo *d, char dst[DEMO_COMMAND_MAX])
{
    char options[DEMO_COMMAND_MAX];
    snprintf(dst, DEMO_COMMAND_MAX, "%.100s why --lobby %" PRId64 "%.380s", cli_program, d->lobby,
             http_options(d, options));
    return dst;
}

const char *demo_drain(const struct demo *d, char dst[DEMO_COMMAND_MAX])
{
    char options[DEMO_COMMAND_MAX];
    snprintf(dst, DEMO_COMMAND_MAX, "%.100s drain %d%.390s", cli_program, d->registered[1],
             http_options(d, options));
    return dst;
}

const char *demo_room(const struct demo *d, char dst[DEMO_COMMAND_MAX])
{
    char options[DEMO_COMMAND_MAX];
    snprintf(dst, DEMO_COMMAND_MAX, "%.100s room create arena --watch%.380s", cli_program,
             http_options(d, options));
    return dst;
}

#define ROOMS                                                                                      \
    "An agent starts a game server for each room of the arena, where players come and go.\n"

static void print_room_hints(const struct demo *d, FILE *to)
{
    char text[DEMO_COMMAND_MAX];
    fprintf(to,
            "  %s\n"
            "      a room on a process of its own, and the key that lets you in: type it into\n"
            "      'nc HOST PORT' and chat with the players\n",
            demo_room(d, text));
}

static void print_console(const struct demo *d, FILE *to)
{
    char text[DEMO_COMMAND_MAX];
    if (d->console[0])
        fprintf(to,
                "Look at it in a browser (" CONSOLE_LINK_WARNING "):\n"
                "\n"
                "  %s\n"
                "\n",
                d->console);
    else
        fprintf(to, "Look at it in a browser: %s\n", demo_console(d, text));
}

void demo_print_hints(const struct demo *d, FILE *to)
{
    char text[DEMO_COMMAND_MAX];
    fprintf(
        to,
        "\n"
        "Muster runs with six game servers (two in each of EU, USE and SG) and a chat server that\n"
        "asks for a match every second. Its HTTP API is at http://%s\n"
        "%s\n",
        d->http, d->rooms ? ROOMS : "");
    print_console(d, to);
    fprintf(to,
            "Try in another terminal:\n"
            "\n"
            "  %s\n"
            "      asks for a match; asked again while it is played, here 5 to 19 s: same server, "
            "same\n"
            "      token; afterwards the number is used up, so take another\n",
            demo_allocate(d, text));
    fprintf(to,
            "  %s\n"
            "      which server it was given, and why that one\n",
            demo_why(d, text));
    fprintf(to,
            "  %s\n"
            "      one of the two EU servers is given no more matches; waits until its last has "
            "ended;\n"
            "      'undrain' takes it back\n",
            demo_drain(d, text));
    if (d->rooms)
        print_room_hints(d, to);
    fprintf(
        to,
        "  kill -9 %d\n"
        "      that server dies: new matches go to the other at once, and after 30 s without a\n"
        "      heartbeat the dead one's matches are reported lost\n"
        "  ctrl-c here, then start again\n"
        "      the game servers get their old numbers back: what Muster knows is on disk\n"
        "\n",
        d->children.all[1].pid);
    fflush(to);
}
