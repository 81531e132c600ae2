/* The agent: everything that runs on a host, tied together on one loop. Made by `muster agent`. */
#pragma once

#include "agent/control.h"
#include "agent/process.h"
#include "net/address.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct agent;

enum { AGENT_WHY_MAX = 512, AGENT_NAME_MAX = 64 };

struct agent_config {
    struct control_config control;
    const char *region;
    const char *address; /* where players find this host */
    const char *listen_ip;
    uint16_t listen_port; /* 0 picks a free one */
    const char *data;     /* made when absent */
    const char *shim;     /* the path of muster-shim */
    struct process_limits limits;
    bool end_servers; /* when we are told to stop, game servers are, too */
};

/* Listens, and takes over what the agent before us left. config is borrowed for as long as the
 * agent lives. 0, or an error with a sentence. */
int agent_start(const struct agent_config *config, struct agent **ret, char why[AGENT_WHY_MAX]);

/* Runs until SIGTERM or SIGINT; game servers run on, unless end_servers. */
void agent_run(struct agent *a);
void agent_free(struct agent *a); /* NULL is fine */

/* "address:port" of its door. Returns dst. */
const char *agent_address(const struct agent *a, char dst[ADDRESS_MAX]);
size_t agent_servers(const struct agent *a);

/* What of the sandbox this kernel does not give, as a sentence; "" = all is there. */
const char *agent_missing(const struct agent *a);
