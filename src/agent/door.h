/* The agent's door: the HTTP server on which the control plane says what is to be done here.
 * docs/agent-protocol.md is the contract. Owned by the agent. */
#pragma once

#include "net/address.h"

#include <stdint.h>

struct door;
struct games;
struct loop;

enum { DOOR_WHY_MAX = 256, DOOR_TOKENS = 3 };

/* token: what --token said; whoever shows it is let in. 0, or ERR_IO with a sentence. */
int door_open(struct loop *loop, struct games *games, const char *ip, uint16_t port,
              const char *token, struct door **ret, char why[DOOR_WHY_MAX]);
void door_close(struct door *d); /* NULL is fine */

/* "address:port" as bound. Returns dst. */
const char *door_address(const struct door *d, char dst[ADDRESS_MAX]);

/* The control plane will show this token. The one before it is still let in: it may be under way.
 */
void door_admit(struct door *d, const char *token);

/* From the loop's tick. */
void door_tick(struct door *d, int64_t monotonic_ms);
