/* A standby: a node while another leads. It has the ports it would lead with and says on each where
 * the leader is, follows the cell, and fetches the archives of its deployments. When nobody leads
 * it has the core that goes on; then a service takes its place, on the same sockets.
 *
 *   FOLLOWING ──nobody leads──▶ LEADS        SIGTERM, SIGINT ──▶ STOPPED
 *       └───the follower cannot go on──▶ FAILED
 *
 * Owned by whoever started it. */
#pragma once

#include "api/service.h"
#include "store/cell.h"

struct standby;

struct standby_config {
    const struct service_config *service; /* not needed after standby_start, but for what it says
                                             is borrowed */
    const struct cell_config *cell; /* this and the next must stay as they are until the end */
    const struct core_config *core;
    int64_t hold_off_ms; /* others go first for so long, see follower_start */
    const char *ca_file; /* who may sign other nodes' certificates; "" = whom the system trusts */
};

enum standby_end { STANDBY_STOPPED, STANDBY_LEADS, STANDBY_FAILED };

/* Listens and begins to follow. 0, or ERR_IO with a sentence for the operator. */
int standby_start(const struct standby_config *config, struct standby **ret,
                  char why[SERVICE_WHY_MAX]);

void standby_ports(const struct standby *s, struct service_ports *ret);

/* Stands by until it leads, a SIGTERM or SIGINT, or there is no going on. */
enum standby_end standby_run(struct standby *s);

/* After STANDBY_FAILED: a sentence, valid until standby_free. */
const char *standby_why(const struct standby *s);

/* After STANDBY_LEADS, once: as follower_take. */
void standby_take(struct standby *s, struct core **ret_core, struct store_tip *ret_tip,
                  struct cell_term *ret_term);

/* NULL is fine. */
void standby_free(struct standby *s);
