#include "api/resource_allocation.h"

#include "api/resource_room.h"
#include "api/shape_rows.h"
#include "base/err.h"

const char *const allocation_state_words[] = {"open",   "queued",    "done",
                                              "failed", "cancelled", NULL};
static const char *const bus_words[] = {"http", "player", "nats", "pubsub", "nats+pubsub", NULL};
static const char *const version_words[] = {"1.0", NULL};
static const char *const request_words[] = {"allocation-request", NULL};
static const char *const result_words[] = {"allocation-result", NULL};
static const char *const status_words[] = {"Success", "Failure", "Queued", NULL};

/* ── envelopes ─────────────────────────────────────────────────────────────────────────────── */

/* What wire/envelope.c reads and writes: only described here. */
#define KEY(name_, kind_, help_)                                                                   \
    {                                                                                              \
        .name = (name_), .kind = (kind_), .help = (help_)                                          \
    }
#define OPTIONAL(name_, kind_, help_)                                                              \
    {                                                                                              \
        .name = (name_), .kind = (kind_), .may_be_absent = true, .help = (help_)                   \
    }
#define WORDS(name_, absent_, words_)                                                              \
    {                                                                                              \
        .name = (name_), .kind = SHAPE_WORD, .may_be_absent = (absent_), .words = (words_)         \
    }

const struct shape allocation_request_shape = {
    .name = "AllocationRequest",
    .help = "A player wants a place in a fleet. docs/allocator.md says more.",
    .rows =
        (const struct shape_row[]){
            WORDS("envelopeVersion", true, version_words),
            WORDS("type", true, request_words),
            KEY("ticketId", SHAPE_TEXT,
                "its name, at most 128 bytes: a repeat gets the same result and takes nothing "
                "twice"),
            KEY("fleet", SHAPE_TEXT, "the name of the fleet"),
            KEY("playerId", SHAPE_TEXT, "at most 64 bytes"),
            OPTIONAL("joinOnIds", SHAPE_TEXTS, "friends to join, at most 64"),
            OPTIONAL("canJoinNotFound", SHAPE_BOOL, "friends are nowhere: any place will do"),
            OPTIONAL("region", SHAPE_TEXT, "the only region, by its name; else it is chosen"),
            OPTIONAL("latencies", SHAPE_JSON,
                     "milliseconds to regions by their names: the lowest first, and no others"),
            OPTIONAL("priority", SHAPE_INT32,
                     "0 to 100: each step is worth a minute of waiting in line"),
            OPTIONAL("partyIds", SHAPE_TEXTS, "who comes along, at most 63: all or nobody"),
            OPTIONAL("moveParty", SHAPE_BOOL, "those he came with before come along"),
            OPTIONAL("rejoin", SHAPE_BOOL, "who has a seat keeps it; true when absent"),
            OPTIONAL("info", SHAPE_JSON, "what the game server is told of him, at most 4 KiB"),
            {0},
        },
};

const struct shape allocation_member_shape = {
    .name = "AllocationMember",
    .help = "Somebody who came along.",
    .rows =
        (const struct shape_row[]){
            KEY("playerId", SHAPE_TEXT, NULL),
            OPTIONAL("token", SHAPE_TEXT, "what a proxy knows him by"),
            OPTIONAL("key", SHAPE_TEXT, "what his game client shows the game server"),
            {0},
        },
};

const struct shape allocation_error_shape = {
    .name = "AllocationError",
    .help = "Why it failed, as any other error of this API.",
    .rows =
        (const struct shape_row[]){
            KEY("code", SHAPE_TEXT, "a word for programs"),
            KEY("message", SHAPE_TEXT, "a sentence for people"),
            OPTIONAL("retry_after", SHAPE_INT32, "in how many seconds it is worth asking again"),
            {0},
        },
};

const struct shape allocation_result_shape = {
    .name = "AllocationResult",
    .help = "What came of an allocation. What it has not is absent, never null.",
    .rows =
        (const struct shape_row[]){
            WORDS("envelopeVersion", false, version_words),
            WORDS("type", false, result_words),
            KEY("ticketId", SHAPE_TEXT, "whose result it is"),
            WORDS("status", false, status_words),
            OPTIONAL("token", SHAPE_TEXT, "Success: what a proxy knows the player by"),
            OPTIONAL("errorMessage", SHAPE_TEXT, "Failure: a sentence"),
            OPTIONAL("queuePosition", SHAPE_INT32, "Queued: from 1"),
            OPTIONAL("queueId", SHAPE_TEXT, "Queued: in which line"),
            OPTIONAL("etaSeconds", SHAPE_INT64, "Queued: a guess, from how seats came free lately"),
            OPTIONAL("address", SHAPE_TEXT, "Success: where the game server is"),
            OPTIONAL("port", SHAPE_INT32, "Success: its first port"),
            OPTIONAL("ports", SHAPE_INTS, "Success: all, where it has several"),
            OPTIONAL("sessionId", SHAPE_ID, "Success: the room"),
            OPTIONAL("expiresAt", SHAPE_TIME,
                     "Success: when the seat is given back unless the player has joined"),
            OPTIONAL("key", SHAPE_TEXT,
                     "Success: what the game client shows the game server, on fleets of agents"),
            OPTIONAL("partyId", SHAPE_ID, "Success: the party, where he does not come alone"),
            {.name = "party",
             .kind = SHAPE_ITEMS,
             .may_be_absent = true,
             .shape = &allocation_member_shape,
             .help = "Success: those who came along"},
            {.name = "error",
             .kind = SHAPE_OBJECT,
             .may_be_absent = true,
             .shape = &allocation_error_shape,
             .help = "Failure, as an answer of this API: its code"},
            {0},
        },
};

/* ── allocations ───────────────────────────────────────────────────────────────────────────── */

static void write_error(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct view_allocation *v = object;
    (void)config;
    if (v->err == 0)
        json_none(w);
    else
        json_text(w, str_of(err_code(v->err)));
}

static void write_why(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct view_allocation *v = object;
    (void)config;
    if (v->why.len == 0)
        json_none(w);
    else
        json_text(w, v->why);
}

/* The view is the head of every struct that has these. */
_Static_assert(offsetof(struct allocation_answer, view) == 0, "written by the same functions");
_Static_assert(offsetof(struct allocation_why, view) == 0, "written by the same functions");

#define ALLOCATION_ROWS(struct_, at_)                                                              \
    ROW(ID, "id", struct_, at_ id, NULL),                                                          \
        ROW(TEXT, "ticket_id", struct_, at_ name, "what its sender calls it"),                     \
        ROW(TEXT, "fleet", struct_, at_ fleet, NULL),                                              \
        ROW(TEXT, "player", struct_, at_ player, NULL),                                            \
        ROW_WORD("bus", bus_words, struct_, at_ bus,                                               \
                 "the buses that its results go to; http: none; player: he asked himself, by a "   \
                 "name of his own"),                                                               \
        ROW_WORD("state", allocation_state_words, struct_, at_ state, NULL),                       \
        ROW_WRITTEN_OR_NULL(TEXT, "error", write_error, "the code of its failure"),                \
        ROW_WRITTEN_OR_NULL(TEXT, "why", write_why, "… and its sentence"),                         \
        ROW(BOOL, "owed", struct_, at_ owed, "its result has not left yet"),                       \
        ROW(INT32, "priority", struct_, at_ priority, NULL),                                       \
        ROW_OR_NULL(TEXT, "region", struct_, at_ region_name, NULL),                               \
        ROW_OR_NULL(ID, "room", struct_, at_ room,                                                 \
                    "where it was placed, or in whose line it stands; null: in the fleet's"),      \
        ROW(INT32, "position", struct_, at_ position, "queued: from 1"),                           \
        ROW(INT32, "ahead", struct_, at_ ahead, "queued: players who come before"),                \
        ROW(INT64, "eta_ms", struct_, at_ eta_ms,                                                  \
            "queued: a guess, from how seats came free lately; 0: unknown"),                       \
        ROW(INT64, "waited_ms", struct_, at_ waited_ms, "how long it stood in line"),              \
        ROW(INT32, "players", struct_, at_ players, "he and those who come along"),                \
        ROW_OR_NULL(ID, "party", struct_, at_ party, "null: he came alone")

#define ALLOCATION_TIMES(struct_, at_)                                                             \
    ROW(TIME, "opened_at", struct_, at_ opened_wall_ms, NULL),                                     \
        ROW_OR_NULL(TIME, "queued_at", struct_, at_ queued_wall_ms, "null: it never was"),         \
        ROW_OR_NULL(TIME, "answered_at", struct_, at_ answered_wall_ms, NULL),                     \
        ROW_OR_NULL(TIME, "deadline_at", struct_, at_ deadline_wall_ms,                            \
                    "when its state ends by itself")

const struct shape allocation_shape = {
    .name = "Allocation",
    .help = "One request of a player for a place in a fleet.",
    .rows =
        (const struct shape_row[]){
            ALLOCATION_ROWS(struct view_allocation, ),
            ALLOCATION_TIMES(struct view_allocation, ),
            {0},
        },
};

static void write_result(struct json_writer *w, const void *object,
                         const struct core_config *config)
{
    const struct allocation_answer *v = object;
    (void)config;
    if (v->result.len == 0)
        json_none(w);
    else
        json_raw(w, v->result);
}

const struct shape allocation_whole_shape = {
    .name = "AllocationWithResult",
    .help = "An allocation and its result.",
    .rows =
        (const struct shape_row[]){
            ALLOCATION_ROWS(struct allocation_answer, view.),
            ALLOCATION_TIMES(struct allocation_answer, view.),
            {.name = "result",
             .kind = SHAPE_OBJECT,
             .may_be_null = true,
             .shape = &allocation_result_shape,
             .write = write_result,
             .help = "null while it is open"},
            {0},
        },
};

const struct shape allocation_why_shape = {
    .name = "AllocationWhy",
    .help = "Why an allocation stands as it does.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "sentence", struct allocation_why, sentence, "for people"),
            ALLOCATION_ROWS(struct allocation_why, view.),
            ALLOCATION_TIMES(struct allocation_why, view.),
            {0},
        },
};

/* ── queues, parties, routes ───────────────────────────────────────────────────────────────── */

const struct shape queue_shape = {
    .name = "Queue",
    .help = "A line of allocations that wait for seats, of one room or of a fleet.",
    .rows =
        (const struct shape_row[]){
            ROW(TEXT, "fleet", struct view_queue, fleet, NULL),
            ROW_OR_NULL(ID, "room", struct view_queue, room, "null: for any room of the fleet"),
            ROW(INT32, "entries", struct view_queue, entries, "allocations that wait"),
            ROW(INT32, "players", struct view_queue, players, "players who wait with them"),
            ROW(INT32, "held", struct view_queue, held, "empty seats kept for the oldest of them"),
            ROW(INT64, "oldest_ms", struct view_queue, oldest_ms, "how long the oldest waits"),
            ROW(DOUBLE, "freed_per_min", struct view_queue, freed_per_min,
                "seats that came free lately"),
            {0},
        },
};

static void write_seats(struct json_writer *w, const void *object, const struct core_config *config)
{
    const struct party_answer *v = object;
    json_open_array(w);
    for (size_t i = 0; i < v->n_seats; i++)
        shape_write(w, &room_seat_shape, &v->seats[i], config);
    json_close_array(w);
}

const struct shape party_shape = {
    .name = "Party",
    .help = "Players who came together and are still there.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "id", struct party_answer, id, NULL),
            ROW(TEXT, "fleet", struct party_answer, fleet, NULL),
            ROW(ID, "room", struct party_answer, room, "where the first of them sits"),
            ROW_ITEMS("seats", room_seat_shape, write_seats, NULL),
            {0},
        },
};

static void write_port(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    json_int(w, ((const struct view_route *)object)->port);
}

static void write_token(struct json_writer *w, const void *object, const struct core_config *config)
{
    (void)config;
    json_text(w, str_of(((const struct view_route *)object)->token));
}

const struct shape route_shape = {
    .name = "Route",
    .help = "A routing token and the endpoint that a proxy sends its packets to.",
    .rows =
        (const struct shape_row[]){
            ROW(ID, "seat", struct view_route, seat, NULL),
            ROW(ID, "room", struct view_route, room, NULL),
            ROW(TEXT, "fleet", struct view_route, fleet, NULL),
            ROW(TEXT, "player", struct view_route, player, NULL),
            ROW(TEXT, "address", struct view_route, address, NULL),
            ROW_WRITTEN(INT32, "port", write_port, NULL),
            ROW_WRITTEN(TEXT, "token", write_token, "16 bytes in base64"),
            {0},
        },
};
