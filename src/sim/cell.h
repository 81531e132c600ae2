/* A cell: the database that two nodes share. Its journal is the world's store; beside it stand the
 * head, which says who may write, and the lease. Whatever a node wants of it is an errand, which
 * travels there and back over the node's own line: late, out of reach, or lost on either way.
 * Owned by the world. */
#pragma once

#include "store/lease.h"
#include "store/store.h"

#include <stdbool.h>
#include <stdint.h>

struct core;
struct happening;
struct node;
struct world;

enum cell_verb {
    CELL_COMMIT,
    CELL_CLAIM, /* the head, for another connection of who leads; and where the journal ends */
    CELL_RENEW,
    CELL_TAKE,
    CELL_GIVE_BACK,
    CELL_LOAD,  /* everything */
    CELL_WATCH, /* the lease, and where the journal ends */
};

struct errand {
    enum cell_verb verb;
    bool back; /* on its way back, with the answer */
    int node;
    int64_t life;    /* of the node that sent it */
    int64_t reign;   /* COMMIT: … in which it did */
    int64_t number;  /* of all its errands */
    int64_t sent_ms; /* on its own clock */

    int64_t epoch;            /* under which; TAKE: that was granted, 0 = somebody was faster */
    int64_t writer;           /* COMMIT, TAKE; CLAIM: as whom we are known now */
    int64_t line;             /* COMMIT, CLAIM: the connection it goes over */
    struct store_batch batch; /* COMMIT; with bytes of its own */
    int64_t before_ms;        /* … when the one before it was sent */
    struct lease_row row;     /* TAKE: as it was seen; WATCH: as it stands */

    /* The answer. */
    int err;
    bool refused; /* it is not his (any more) */
    bool unsaid;  /* it was done, and then the database broke down */
    struct store_tip tip;
    struct core *core;  /* LOAD */
    int64_t configured; /* LOAD: the configuration it was made with */
};

/* How a node reaches the cell. */
struct cell_link {
    int64_t cut_until_ms;
    bool cut_loses;   /* what would get through is lost, else it comes when the cut ends */
    bool cut_one_way; /* answers get through */
    int64_t slow_until_ms;
    int64_t lossy_until_ms; /* some answers get lost */
    bool grants_late;       /* the next renewal is heard of late, and is the last for long */
    bool loses_request;     /* the next commit does */
    bool loses_answer;      /* … its answer does */
    int64_t line;           /* the connection for commits; raised when it is given up */
    int64_t lost_line;      /* what goes over this one, or one before it, is lost */
    int64_t resolved_line;  /* of those before this one the node knows what became of them */
    int64_t to_cell_ms;     /* arrival of the newest commit, each way */
    int64_t to_node_ms;
};

struct cell {
    int64_t lease_ms;
    int64_t epoch;   /* of the head: in whose epoch … */
    int64_t writer;  /* … and by whom it may be moved */
    int64_t writers; /* there were so far */
    struct lease_row lease;
    int64_t moved_ms; /* when the lease was taken, renewed or given back last */
    int64_t led_ms;   /* when somebody led last */

    /* The newest batch: the time of core in it, and when it was stored. */
    int64_t core_ms;
    int64_t stored_ms;
};

void cell_init(struct world *w);

/* The store that node n has when it leads. */
void cell_open(struct node *n, int depth);

/* What it does with an errand, which then has its answer. */
void cell_run(struct world *w, struct errand *e);

/* errand.c: the line of a node, and what goes over it. A cut: one way, answers get through. What
 * its node decides is told later until then. */
bool link_is_cut(const struct node *n);
bool link_is_lossy(const struct node *n);
int64_t link_delay_ms(const struct node *n);
void link_cut(struct node *n, int64_t length_ms, bool loses, bool one_way);
void link_holds_up(const struct node *n, int64_t until_ms);

struct errand *errand_new(struct node *n, enum cell_verb verb);
void errand_send(struct world *w, struct errand *e);
void errand_free(struct errand *e);

/* It arrives, at the cell or back. True when it waits instead, for the end of a cut. */
bool errand_waits(const struct world *w, struct happening *h);
void errand_arrive(struct world *w, struct happening *h);

/* I8: nothing leaves a node whose lease has run out, or while another has it. */
void cell_judge_voice(const struct node *n);

/* What a node begins to lead with is all there is. */
void cell_judge_start(struct node *n);

/* Now and then: somebody leads, when somebody can. */
void cell_look(struct world *w);

/* cell_fault.c */
void cell_fault(struct world *w);
void cell_heal(struct world *w);
